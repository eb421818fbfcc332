"""What ``gnnbench doctor`` says of PyG's sampling extensions."""

import pytest

from gnnbench import doctor
from gnnbench.foreign import pyg_import


@pytest.mark.parametrize(
    ("here", "ok", "words"),
    [
        (["pyg-lib", "torch-sparse"], "yes", ("pyg-lib", "torch-sparse")),
        (["torch-sparse"], "no", ("torch-sparse",)),
        ([], "no", ("none is installed", "pyg-native-sampler")),
    ],
)
def test_pygs_extensions_and_how_to_get_the_better_one(here, ok, words, monkeypatch):
    monkeypatch.setattr(pyg_import, "extensions", lambda: here)
    (entry,) = [e for e in doctor._packages() if e["what"] == "PyG sampling extension"]
    assert entry["ok"] == ok
    assert all(word in entry["found"] for word in words)
    assert ("https://data.pyg.org/whl/torch-" in entry["fix"]) == (ok == "no")
