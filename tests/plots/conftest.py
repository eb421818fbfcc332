"""Runs to be drawn, of rows written out."""

import pytest

from gnnbench.results import reader, writer
from gnnbench.results.schema import CELLS, METRICS


@pytest.fixture
def run(tmp_path):
    def make(cells, metrics):
        writer.write_csv(tmp_path / "cells.csv", CELLS, cells)
        writer.write_csv(tmp_path / "metrics.csv", METRICS, metrics)
        return reader.read(tmp_path)

    return make
