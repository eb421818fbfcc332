"""Runs to be drawn, of rows written out."""

import pytest

from gnnbench.schema import TABLES, reader, writer


@pytest.fixture
def run(tmp_path):
    """``run(cells, metrics, stages=...)``: a run with these tables."""

    def make(cells, metrics=(), **others):
        for name, rows in {"cells": cells, "metrics": metrics, **others}.items():
            writer.write_csv(tmp_path / f"{name}.csv", TABLES[f"{name}.csv"][1], rows)
        return reader.read(tmp_path)

    return make
