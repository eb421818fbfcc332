"""The run folders that are committed below ``results/``."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
RUNS = sorted(
    path.parent
    for path in (ROOT / "results").rglob("cells.csv")
    if not any(part.startswith("run-") for part in path.parts)
)


def name(folder: Path) -> str:
    """The path of a folder below ``results/``."""
    return folder.relative_to(ROOT / "results").as_posix()
