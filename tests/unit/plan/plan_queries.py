"""Queries for the tests of the checks, and findings in a form that is easy to compare."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from spaseq.errors import Diagnostic
from spaseq.parser import ast, parse
from spaseq.plan.check import check

PREFIX = "PREFIX : <http://example.org/> "


def query_text(
    seq: str,
    gpms: Mapping[str, str] | None = None,
    head: str = "SELECT *",
    clauses: str = "WITHIN 10 SECONDS",
) -> str:
    """A query over one stream; GPM X that `gpms` leaves out is `{ [] :x ?x }`."""
    bodies = dict(gpms or {})
    for name in re.findall(r"\b[A-Z]\b", seq):
        bodies.setdefault(name, f"{{ [] :{name.lower()} ?{name.lower()} }}")
    defines = " ".join(
        f"DEFINE GPM {name} ON s {body}" if body.startswith(("{", "AT")) else body
        for name, body in sorted(bodies.items())
    )
    return f"{PREFIX}{head} {clauses} FROM STREAM s :s WHERE {{ SEQ({seq}) {defines} }}"


def query(
    seq: str,
    gpms: Mapping[str, str] | None = None,
    head: str = "SELECT *",
    clauses: str = "WITHIN 10 SECONDS",
) -> ast.Query:
    return parse(query_text(seq, gpms, head, clauses))


def marked(finding: Diagnostic, text: str) -> str:
    """The text a finding points at."""
    return text[finding.span.start : finding.span.end]


def findings(text: str, severity: str = "error") -> list[tuple[str, str]]:
    """(text pointed at, message) of each finding of one severity."""
    return [
        (marked(found, text), found.message)
        for found in check(parse(text))
        if found.severity == severity
    ]


def only(found: Iterable[tuple[str, str]], where: str, fragment: str) -> None:
    """Fails unless there is one finding, at `where`, and its message holds `fragment`."""
    listed = list(found)
    assert [place for place, _ in listed] == [where], listed
    assert fragment in listed[0][1], listed
