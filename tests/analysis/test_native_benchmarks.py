import json

import pytest

from gnnbench.analysis.native_benchmarks import bench_table


def table_of(tmp_path, name, content):
    path = tmp_path / f"{name}.json"
    path.write_text(json.dumps(content))
    return bench_table(path)


def test_fastest_launch_shape_of_a_reader_is_shown(tmp_path):
    row = {"memory": "vmm", "window": 1, "share": 1.0, "ms": 2.0}
    shapes = [
        row | {"way": "page-ordered", "blocks": 8, "depth": 1, "page_bytes": 512, "gb_per_s": 30.0},
        row
        | {"way": "page-ordered", "blocks": 16, "depth": 4, "page_bytes": 512, "gb_per_s": 40.0},
        row | {"way": "naive", "gb_per_s": 10.0},
    ]
    results = [
        {"way": "pinned copy", "gb_per_s": 50.0},
        {"memory": "vmm", "way": "locking", "s": 1},
    ]
    content = {
        "device": "a GPU", "torch": "2", "table_rows": 1 << 22, "row_bytes": 512,
        "results": [*results, *shapes],
    }  # fmt: skip
    about, part = table_of(tmp_path, "memory_io_2gib", content)
    assert "memory_io.py" in about and "out of 2 GiB" in about and "50.0 GB/s" in about
    assert [(r["way"], r["GB/s"], r["of a copy"]) for r in part.lines] == [
        ("page-ordered", "40.0", "0.80"),
        ("naive", "10.0", "0.20"),
    ]
    assert part.lines[0]["best shape"] == "blocks 16, depth 4, page_bytes 512"
    assert (part.lines[0]["shapes"], part.lines[0]["slowest GB/s"]) == ("2", "30.0")


@pytest.mark.parametrize("with_torch", [True, False])
def test_host_gather_is_compared_with_torch(tmp_path, with_torch):
    results = [{"name": "gather", "wall_ms": 2.0, "wall_gb_per_s": 5.0}]
    if with_torch:
        name = "index_select + pinned copy"
        results.append({"name": name, "wall_ms": 3.0, "wall_gb_per_s": 3.3})
    content = {"torch": "2", "threads": 2, "rows": 9, "row_bytes": 8, "table_bytes": 1 << 30}
    about, part = table_of(tmp_path, "host_gather", content | {"results": results})
    assert "no GPU" in about and part.lines[0]["GB/s"] == "5.0"
    assert part.lines[0].get("over torch's two") == ("1.50" if with_torch else None)


def test_fastest_launch_shape_of_a_sharded_table_is_shown(tmp_path):
    row = {"case": "all", "depth": 1, "blocks_per_sm": 0, "ms": 2.0, "peer_rows": 5, "gb_s": 300.0}
    results = [
        row | {"peer_gb_s": 150.0, "peer_of_copy": 0.375},
        row | {"depth": 2, "ms": 1.0, "gb_s": 600.0, "peer_gb_s": 300.0, "peer_of_copy": 0.75},
        {"case": "gather", "ms": 0.5, "peer_rows": 0, "gb_s": 1200.0, "peer_gb_s": 0.0,
         "peer_of_copy": 0.0},
    ]  # fmt: skip
    content = {
        "device": "a GPU", "torch": "2", "gpus": 2, "ids": 10, "row_bytes": 512, "rows": 1 << 22,
        "copy_gb_s": 400.0, "results": results,
    }  # fmt: skip
    about, part = table_of(tmp_path, "sharded_2", content)
    assert "2 x a GPU" in about and "out of 2 GiB" in about and "400.0 GB/s into each" in about
    keys = ("case", "GB/s", "from peers GB/s", "of a peer copy", "best shape", "slowest GB/s")
    assert [tuple(line[key] for key in keys) for line in part.lines] == [
        ("all", "600.0", "300.0", "0.75", "depth 2", "300.0"),
        ("gather", "1200.0", "0.0", "", "", ""),
    ]


@pytest.mark.parametrize("name", ["run", "calibrate", "memory", "operatorsx"])
def test_files_of_other_programs_have_no_table(tmp_path, name):
    assert table_of(tmp_path, name, {}) is None


def test_name_of_a_program_may_begin_with_that_of_another(tmp_path):
    row = {"name": "tuned", "dim": 128, "ms": 0.07, "what": "forward", "floor_ms": 0.05}
    about, part = table_of(
        tmp_path, "aggregate_gpu", {"device": "a GPU", "torch": "2", "results": [row]}
    )
    assert "aggregate_gpu.py" in about and part.lines[0]["floor ms"] == "0.0500"
    content = {"torch": "2", "threads": 2, "clock": "wall", "dst": 1, "src": 2, "edges": 3}
    row = {"name": "forward", "dim": 64, "ms": 2.0, "other_ms": 5.0, "ratio": 2.5}
    about, part = table_of(tmp_path, "aggregate_attention", content | {"results": [row]})
    assert "aggregate.py" in about and part.lines[0]["ratio"] == "2.50"
