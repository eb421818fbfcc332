"""Runs to be drawn, of rows written out."""

import pytest

from gnnbench.schema import CELLS, METRICS, reader, writer


@pytest.fixture
def run(tmp_path):
    def make(cells, metrics):
        writer.write_csv(tmp_path / "cells.csv", CELLS, cells)
        writer.write_csv(tmp_path / "metrics.csv", METRICS, metrics)
        return reader.read(tmp_path)

    return make
