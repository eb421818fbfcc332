"""Finding and loading the native libraries."""

from pathlib import Path

import pytest
import torch

from gnnbench.core.errors import DataError, MissingError, UsageError
from gnnbench.kernels import library


def test_libraries_are_loaded_once() -> None:
    folder = library.load_native()
    assert library.load_native() == folder
    assert (folder / "libgnnbench_cpu.so").is_file()
    for name in ("philox", "sample_hop", "id_map", "hop_by_hop", "gather", "gather_out"):
        assert hasattr(torch.ops.gnnbench, name)


def test_info_reports_what_is_available() -> None:
    info = library.native_info()
    assert info["cpu_built"] is True
    assert info["folder"] == str(library.load_native())
    assert info["cuda_usable"] == library.has_cuda_library()
    assert info["torch"] == torch.__version__
    if torch.version.cuda is None:
        assert library.has_cuda_library() is False


def test_missing_library_error_names_the_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GNNBENCH_NATIVE_DIR", str(tmp_path))
    with pytest.raises(MissingError, match=r"is not built .* run 'make install'"):
        library.load_native.__wrapped__()
    assert library.native_info()["cpu_built"] is False
    assert library.has_cuda_library() is False


def test_unloadable_library_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "libgnnbench_cpu.so").write_bytes(b"not a library")
    monkeypatch.setenv("GNNBENCH_NATIVE_DIR", str(tmp_path))
    with pytest.raises(MissingError, match="does not load under torch"):
        library.load_native.__wrapped__()


def test_errors_of_operators_are_translated() -> None:
    with pytest.raises(UsageError, match=r"^fanout is wrong$"), library.native_operators():
        raise RuntimeError("gnnbench: fanout is wrong")
    with pytest.raises(DataError, match=r"^indptr is broken$"), library.native_operators():
        raise RuntimeError("gnnbench data: indptr is broken")
    with pytest.raises(MemoryError, match=r"^8 bytes$"), library.native_operators():
        raise RuntimeError("gnnbench memory: 8 bytes")
    with pytest.raises(RuntimeError, match="another"), library.native_operators():
        raise RuntimeError("another")


def test_torch_stub_is_not_installed() -> None:
    folder = library.load_native()
    built = folder / "libgnnbench_cuda.so"
    if not built.is_file():
        pytest.skip("the CUDA library is not built")
    assert b"\0libtorch_cuda.so\0" in built.read_bytes()  # linked by name, resolved at load time
    assert not (folder / "libtorch_cuda.so").exists()
