"""MkDocs hooks: pages made from the code and from documents outside ``docs/``; relinking."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
# Documents outside docs/ and the pages that show them.
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "tests/README.md": "tests.md",
    "results/SCHEMA.md": "columns.md",
}
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!\w+:)([^)#\s]+)(#[^)\s]*)?\)")
FIGURES = (".png", ".svg")


def on_config(config: Any) -> Any:
    """Add to the navigation the folders of generated pages, and the packages' own pages."""
    for title, folder in (("Verdicts by paper", "verdicts"), ("Runs", "results")):
        found = sorted((ROOT / "docs" / folder).glob("*.md"))
        _add(config, title, [f"{folder}/{page.name}" for page in found])
    _add(config, "Packages", [page for source, page in _pages().items() if source not in PAGES])
    return config


def _add(config: Any, title: str, pages: list[str]) -> None:
    if pages:
        config.nav.append({title: pages})


def on_files(files: Files, config: Any) -> Files:
    """Add the pages of other documents and packages, their figures, and the command reference."""
    pages = _pages()
    figures: set[str] = set()
    for source, page in pages.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        figures |= set(_figures(text, source))
        files.append(File.generated(config, page, content=_relinked(text, source, page)))
    for file in list(files.documentation_pages()):
        if file.abs_src_path is not None:
            text = Path(file.abs_src_path).read_text(encoding="utf-8")
            figures |= set(_figures(text, f"docs/{file.src_uri}"))
    for figure in sorted(figures):
        path = str(ROOT / figure)
        files.append(File.generated(config, f"figures/{figure}", abs_src_path=path))
    files.append(File.generated(config, "command-line.md", content=command_reference()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Relink a page of ``docs/``; generated ones are relinked already."""
    if page.file.generated_by is not None:
        return markdown
    return _relinked(markdown, f"docs/{page.file.src_uri}", page.file.src_uri)


def _pages() -> dict[str, str]:
    """Documents outside ``docs/``, relative to the repository, and the pages that show them."""
    found = dict(PAGES)
    for readme in sorted((ROOT / "gnnbench").glob("**/README.md")):
        package = readme.parent.relative_to(ROOT / "gnnbench").as_posix().replace("/", ".")
        found[readme.relative_to(ROOT).as_posix()] = f"packages/{package}.md"
    return found


def _figures(text: str, source: str) -> Iterator[str]:
    """Figures outside ``docs/`` that a document shows, relative to the repository."""
    for mark, _, target, _ in LINK.findall(text):
        path = normpath(PurePosixPath(source).parent / target)
        if mark and path.endswith(FIGURES) and not path.startswith("docs/"):
            yield path


def _relinked(text: str, source: str, page: str) -> str:
    """Point links at pages of the site; a target that has none leaves its text."""
    pages = _pages()

    def relinked(link: re.Match[str]) -> str:
        mark, words, target, anchor = link.groups(default="")
        path = normpath(PurePosixPath(source).parent / target)
        if path.startswith("docs/"):
            to = path.removeprefix("docs/")
        elif path in pages:
            to = pages[path]
        elif mark:
            to = f"figures/{path}"
        else:
            return words
        return f"{mark}[{words}]({relpath(to, PurePosixPath(page).parent.as_posix())}{anchor})"

    return LINK.sub(relinked, text)


def command_reference() -> str:
    """The page of all commands and options, from the Typer application."""
    from typer.main import get_command

    from gnnbench.cli import app

    lines = [
        "# Command line",
        "",
        "Output formats, names of runs and exit codes: [output.md](output.md).",
    ]
    for name, command in _commands("gnnbench", get_command(app)):
        context = command.make_context(name, [], resilient_parsing=True)
        lines += ["", f"## {name}", "", *_paragraphs(command.help or ""), ""]
        lines += ["```text", command.get_usage(context), "```"]
        records = [r for p in command.get_params(context) if (r := p.get_help_record(context))]
        records = [(names, text) for names, text in records if names != "--help"]
        if records:
            lines += ["", "| argument or option | meaning |", "|---|---|"]
            lines += [f"| `{names}` | {_cell(text)} |" for names, text in records]
    return "\n".join(lines) + "\n"


def _commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    children = getattr(command, "commands", {})
    if not children or name == "gnnbench":
        yield name, command
    for child, found in children.items():
        if not found.hidden:
            yield from _commands(f"{name} {child}", found)


def _paragraphs(text: str) -> list[str]:
    return [line.strip().replace("<", "&lt;") for line in text.splitlines()]


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
