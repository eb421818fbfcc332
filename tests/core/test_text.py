"""Any text is escaped for each kind of output."""

import csv
import io
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnnbench.core import terminal, text

ANY = st.text(st.characters())  # surrogates as well
HOSTILE = st.lists(
    st.sampled_from(list("\x1b]0;\a\r\n\x7f\x9b\u202e\u200b\udce9<>&|`*_[](){}$^%#~\\=+-@\"' x1")),
    max_size=30,
).map("".join)
TEXTS = st.one_of(ANY, HOSTILE)


@pytest.mark.parametrize(
    ("given_text", "shown"),
    [
        ("plain", "plain"),
        ("caf\u00e9 \u56fe", "caf\u00e9 \u56fe"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("a\r\n\tb", r"a\r\n\tb"),
        ("\x9b2J", r"\x9b2J"),
        ("\u202egnp", r"\u202egnp"),
        ("\u2028", r"\u2028"),
        ("caf\udce9.txt", r"caf\xe9.txt"),
        ("\ud800", r"\ud800"),
        ("\U000e0041", r"\U000e0041"),
        ("no\u00a0break", "no\u00a0break"),
    ],
)
def test_unprintable_characters_are_escaped(given_text, shown):
    assert text.printable(given_text) == shown


@given(TEXTS)
def test_printable_text_is_one_line_and_can_be_encoded(given_text):
    shown = text.printable(given_text)
    shown.encode()
    assert all(sign.isprintable() or sign.isspace() for sign in shown)
    assert len(shown.splitlines()) <= 1
    assert text.printable(shown) == shown


@given(TEXTS)
def test_markdown_has_no_tags_no_links_and_no_further_cells(given_text):
    shown = text.markdown(given_text)
    assert "\n" not in shown and "<" not in shown and ">" not in shown
    bare = re.sub(r"\\.", " ", shown)  # the rest is not escaped
    assert not re.search(r"[`*|$]|\]\(|\]\[|~.*~", bare)


@pytest.mark.parametrize(
    ("given_text", "shown"),
    [
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("a | b", r"a \| b"),
        ("[x](javascript:y)", r"[x\](javascript:y)"),
        ("1.10x [0.90, 1.30]", "1.10x [0.90, 1.30]"),
        ("hop_by_hop _x_", r"hop_by_hop \_x\_"),
        ("reddit~twin", "reddit~twin"),
    ],
)
def test_markdown_examples(given_text, shown):
    assert text.markdown(given_text) == shown


@pytest.mark.parametrize(
    ("given_text", "shown"),
    [
        ("# x", r"\# x"),
        ("1. x", r"1\. x"),
        ("- x", r"\- x"),
        ("---", r"\---"),
        ("1 core", "1 core"),
    ],
)
def test_markdown_line_does_not_begin_a_block(given_text, shown):
    assert text.markdown_line(given_text) == shown


@given(TEXTS)
def test_code_in_markdown_ends_with_its_fence(given_text):
    shown = text.code(given_text)
    fence = re.match("`+", shown)[0]
    inner = shown[len(fence) : -len(fence)]
    assert shown.endswith(fence)
    assert fence not in re.findall("`+", inner)
    assert text.printable(given_text) in inner


@given(TEXTS)
def test_latex_has_balanced_groups_and_no_commands_of_the_text(given_text):
    shown = text.latex(given_text)
    assert "\n" not in shown
    known = r"\\(textbackslash|textasciitilde|textasciicircum)\{\}|\\[&%$#_{}]|\$[<>|]\$"
    bare = re.sub(known, "", shown)
    bare = re.sub(r"\{(\[|\]|\*|'')\}|-\{\}", "", bare)
    assert not re.search(r"[\\&%$#_{}~^\[\]]", bare)


@given(st.one_of(TEXTS, st.floats(), st.integers(), st.none()))
def test_csv_has_no_formula(value):
    out = io.StringIO()
    csv.writer(out).writerow([text.csv_cell(value), "end"])
    (row,) = csv.reader(io.StringIO(out.getvalue()))
    assert row[1] == "end"
    if row[0].lstrip()[:1] in ("=", "+", "-", "@"):
        float(row[0].rstrip("%"))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("=1+1", "'=1+1"), ("@SUM(A1)", "'@SUM(A1)"), ("+-", "'+-"), ("-5", "-5"), (-5, -5),
        ("-1.5e-3", "-1.5e-3"), ("\t=1", r"'\t=1"), (" =1", "' =1"), ("a-b", "a-b"), (None, None),
    ],
)  # fmt: skip
def test_csv_examples(value, shown):
    assert text.csv_cell(value) == shown


def test_matplotlib_draws_any_text():
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    hostile = ["$x^{$", "$$", r"\$x^{$", "a$b$c", "\x1b\x00", "\udce9", "x" * 100_000]
    for label in hostile:
        figure = Figure(figsize=(1, 1))
        figure.suptitle(text.figure(label))
        FigureCanvasAgg(figure).draw()


@given(TEXTS)
def test_figure_label_is_never_a_formula(given_text):
    from matplotlib.cbook import is_math_text

    assert not is_math_text(text.figure(given_text))


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self):
        return True


def test_console_styles_headers_but_escapes_texts(monkeypatch):
    from rich.table import Table

    screen = Screen()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys, "stdout", terminal.Guarded(screen))
    table = Table("head", header_style="bold")
    table.add_row("[bold]\x1b[31mred\x1b]0;t\x07")
    terminal.console(width=80).print(table)
    shown = screen.getvalue()
    assert "\x1b[1m" in shown  # of the head
    assert "\x1b[31m" not in shown and "\x07" not in shown
    assert r"[bold]\x1b[31mred" in shown


def ascii_streams(monkeypatch):
    """Replace standard output and error, after pytest has set them; return the written bytes."""
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    terminal.guard_streams()
    return raw


@given(TEXTS)
def test_printing_never_fails(given_text):
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii", errors="backslashreplace")
    print(given_text, file=terminal.Guarded(stream), flush=True)
    shown = raw.getvalue().decode("ascii")
    assert all(sign.isprintable() or sign in "\n\t" for sign in shown)


def test_ascii_stream_escapes_other_letters(monkeypatch):
    raw = ascii_streams(monkeypatch)
    print("caf\u00e9 \udce9 \x1b")
    sys.stdout.flush()
    assert raw.getvalue() == b"caf\\xe9 \\xe9 \\x1b\n"


@pytest.mark.parametrize(
    ("given_text", "markdown", "html", "plain"),
    [
        ("a `b` c", "a `b` c", "a <code>b</code> c", "a b c"),
        ("`a|b`, x~y `c` z~", "`a\\|b`, x\\~y `c` z\\~", "<code>a|b</code>, x~y <code>c</code> z~",
         "a|b, x~y c z~"),
        ("<i> `<b>`", "&lt;i&gt; `<b>`", "&lt;i&gt; <code>&lt;b&gt;</code>", "<i> <b>"),
        ("one ` alone", "one \\` alone", "one ` alone", "one ` alone"),
        ("`a` and ` alone", "`a` and \\` alone", "<code>a</code> and ` alone", "a and ` alone"),
    ],
)  # fmt: skip
def test_marked_text_has_code_between_backticks(given_text, markdown, html, plain):
    assert text.markdown(text.Marked(given_text)) == markdown
    assert text.html_spans(given_text) == html
    assert text.unmarked(given_text) == plain
