"""Texts of many findings about one query, and of findings in long lines."""

from __future__ import annotations

import pytest

import spaseq
from spaseq.errors import LINE_MAX_CHARACTERS, Diagnostic, Span, render

QUERY = (
    "PREFIX : <http://example.org/> SELECT %s WITHIN 9 SECONDS FROM STREAM s :s "
    "WHERE { SEQ(A) DEFINE GPM A ON s { ?x :p ?y } }"
)


def texts(count: int) -> spaseq.QueryError:
    with pytest.raises(spaseq.QueryError) as caught:
        spaseq.compile(QUERY % " ".join(f"?unbound{number:04}" for number in range(count)))
    return caught.value


def test_the_text_of_many_errors_in_one_line_grows_with_their_number() -> None:
    few, many = texts(50), texts(500)
    assert len(many.diagnostics) == 500
    assert len(str(many)) < 12 * len(str(few))


def pointed(text: str, start: int, end: int, end_line: int = 1) -> tuple[str, str]:
    """The quoted line, and what is above the carets."""
    finding = Diagnostic("no", Span(start, end, 1, start + 1, end_line, end + 1))
    _, quoted, carets = render([finding], text).splitlines()
    first = carets.index("^")
    return quoted, quoted[first : first + carets.count("^")]


@pytest.mark.parametrize("at", [0, 50, 400, 700, 994])
def test_a_long_line_is_quoted_around_the_position(at: int) -> None:
    text = "x" * at + "WRONG" + "x" * (999 - at - 5)
    quoted, shown = pointed(text, at, at + 5)
    assert shown == "WRONG"
    assert len(quoted) <= LINE_MAX_CHARACTERS + len("    1 | ……")
    assert ("| …" in quoted) == (at > 80)
    assert quoted.endswith("…") == (at < 800)


def test_a_span_longer_than_the_quoted_part_ends_there() -> None:
    quoted, shown = pointed("y" * 50 + "W" * 900 + "y" * 50, 50, 950)
    assert set(shown) == {"W"}
    assert quoted.endswith(shown + "…")
    quoted, shown = pointed("y" * 500 + "W" * 500 + "\nW", 500, 1, end_line=2)
    assert quoted.endswith(shown + "…")


def test_a_line_that_is_not_long_is_quoted_whole() -> None:
    text = "z" * LINE_MAX_CHARACTERS
    quoted, shown = pointed(text, 3, 7)
    assert quoted == f"    1 | {text}"
    assert shown == "zzzz"
