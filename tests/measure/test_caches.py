"""Cache sizes of selected cores, read from files in the kernel's format."""

from gnnbench.measure.caches import cpu_caches


def write(root, core, index, **files):
    folder = root / f"cpu{core}" / "cache" / f"index{index}"
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(f"{text}\n")


def test_shared_cache_is_counted_once(tmp_path):
    for core in range(4):
        pair = f"{core // 2 * 2}-{core // 2 * 2 + 1}"
        write(tmp_path, core, 0, type="Data", level=1, size="48K", shared_cpu_list=core)
        write(tmp_path, core, 1, type="Instruction", level=1, size="32K", shared_cpu_list=core)
        write(tmp_path, core, 2, type="Unified", level=2, size="2048K", shared_cpu_list=pair)
        write(tmp_path, core, 3, type="Unified", level=3, size="16M", shared_cpu_list="0-3")
    kib, mib = 2**10, 2**20
    assert cpu_caches(tmp_path, range(4)) == {1: 4 * 48 * kib, 2: 4 * mib, 3: 16 * mib}
    assert cpu_caches(tmp_path, [1]) == {1: 48 * kib, 2: 2 * mib, 3: 16 * mib}


def test_unreported_caches_are_left_out(tmp_path):
    assert cpu_caches(tmp_path, [0]) == {}
    write(tmp_path, 0, 0, type="Data", level=1, size="48K", shared_cpu_list=0)
    write(tmp_path, 0, 1, type="Unified", level=2, size="many", shared_cpu_list=0)
    write(tmp_path, 0, 2, type="Unified", level=3)
    assert cpu_caches(tmp_path, [0]) == {1: 48 * 2**10}
