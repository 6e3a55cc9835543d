"""The findings as a newcomer reads them: golden texts beside the queries they are about."""

from __future__ import annotations

from pathlib import Path

import pytest

from spaseq.errors import render
from spaseq.parser import parse
from spaseq.plan.check import check

GOLDEN = Path(__file__).parents[2] / "golden" / "checks"
QUERIES = sorted(GOLDEN.glob("*.rq"))


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_findings_read_as_before(path: Path, update_golden: bool) -> None:
    text = path.read_text("utf-8")
    shown = render(check(parse(text)), text, path.name) + "\n"
    expected = path.with_suffix(".txt")
    if update_golden:
        expected.write_text(shown, "utf-8")
    assert shown == expected.read_text("utf-8")


def test_every_finding_says_what_to_do() -> None:
    for path in QUERIES:
        for finding in check(parse(path.read_text("utf-8"))):
            assert finding.hint, finding
            assert (finding.other is None) == (not finding.other_label), finding
