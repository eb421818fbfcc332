"""Another Python environment, made without a network: torch and numpy of this one, no more."""

import subprocess
import sys
import sysconfig
from importlib.metadata import distribution
from pathlib import Path

# What `import torch` wants, wherever torch is from.
SEEN = (
    "torch", "torchgen", "functorch", "numpy", "numpy.libs", "nvidia", "triton", "filelock",
    "sympy", "mpmath", "networkx", "jinja2", "markupsafe", "fsspec", "typing_extensions.py",
)  # fmt: skip


def site_of(package):
    """The folder in which a distribution of this environment lies."""
    return Path(str(distribution(package).locate_file("")))


def make_environment(folder):
    """A virtual environment; returns its folder of packages, for more to be put there."""
    words = ["-m", "venv", "--without-pip", str(folder)]
    subprocess.run([sys.executable, *words], check=True)
    scheme = sysconfig.get_path("purelib", "venv", {"base": str(folder)})
    site = Path(scheme)
    for package in ("torch", "numpy"):
        for entry in site_of(package).iterdir():
            name = entry.name
            info = name.endswith(".dist-info") and name.partition("-")[0] in ("torch", "numpy")
            if (name in SEEN or info) and not (site / name).exists():
                (site / name).symlink_to(entry)
    return site


def install(site, name, version, module, text, entry_points):
    """A distribution of one module in a folder of packages, as pip leaves it."""
    site.mkdir(parents=True, exist_ok=True)
    (site / f"{module}.py").write_text(text)
    info = site / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(entry_points)
