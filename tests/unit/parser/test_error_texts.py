"""What people read when a query is wrong: one golden file per mistake.

A file holds the text, a line of dashes, and the rendered errors; a text that begins with a
brace is a pattern. `pytest --update-golden` rewrites what stands below the dashes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from spaseq.errors import QuerySyntaxError
from spaseq.parser import parse, parse_pattern

_DIRECTORY = Path(__file__).parents[2] / "golden" / "errors"
_DASHES = "-" * 72


@pytest.mark.parametrize("path", sorted(_DIRECTORY.glob("*.txt")), ids=lambda path: path.stem)
def test_error_text(path: Path, update_golden: bool) -> None:
    text, _, expected = path.read_text("utf-8").partition(f"\n{_DASHES}\n")
    read = parse_pattern if text.lstrip().startswith("{") else parse
    with pytest.raises(QuerySyntaxError) as caught:
        read(text)
    rendered = f"{caught.value}\n"
    if update_golden:
        path.write_text(f"{text}\n{_DASHES}\n{rendered}", "utf-8")
    else:
        assert rendered == expected


def test_every_finding_has_a_place_and_advice() -> None:
    for path in sorted(_DIRECTORY.glob("*.txt")):
        text = path.read_text("utf-8").partition(f"\n{_DASHES}\n")[0]
        read = parse_pattern if text.lstrip().startswith("{") else parse
        with pytest.raises(QuerySyntaxError) as caught:
            read(text)
        for finding in caught.value.diagnostics:
            assert 0 <= finding.span.start <= finding.span.end <= len(text), path.stem
            assert finding.hint, path.stem


@pytest.mark.parametrize(
    ("before", "width"),
    [("ascii", 5), ("温度", 4), ("Ａ", 2), ("e\u0301", 1), ("é", 1), ("\t", 1)],
)
def test_the_caret_stands_below_its_character(before: str, width: int) -> None:
    prefix = f"{{ ?s :p '{before}' "
    with pytest.raises(QuerySyntaxError) as caught:
        parse_pattern(prefix + "温 }")
    _, line, carets = str(caught.value).splitlines()[:3]
    gutter = len(line) - len(prefix + "温 }")
    assert carets == " " * (gutter + len(prefix) - len(before) + width) + "^^"
    assert caught.value.column == len(prefix) + 1
