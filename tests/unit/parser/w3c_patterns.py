"""W3C SPARQL tests as graph pattern matchers: each query becomes the pattern of one GPM.

A SELECT query stands in the pattern as a sub-query, modifiers and all; of an ASK or CONSTRUCT
query only its pattern does. What SPARQL says of whole queries (dataset clauses, the prologue's
place, DESCRIBE) has no counterpart in a pattern, and such tests are left out by `adapted`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pyoxigraph

_MF = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
_QT = "http://www.w3.org/2001/sw/DataAccess/tests/test-query#"
_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
BASE = "http://base.example/dir/query"

_PROLOGUE = re.compile(r"(?:\s|#[^\n]*|(?:BASE\s*|PREFIX\s+[^\s:<]*:\s*)<[^>]*>)*", re.IGNORECASE)
_DATASET = re.compile(r"\bFROM\s+(?:NAMED\s+)?(?:<[^>]*>|\S*:\S*)", re.IGNORECASE)
_FORM = re.compile(r"(SELECT|ASK|CONSTRUCT)\b", re.IGNORECASE)


@dataclass(frozen=True)
class W3cTest:
    name: str
    query: Path
    positive: bool
    data: tuple[Path, ...] = ()
    graphs: tuple[Path, ...] = ()
    evaluation: bool = False

    def __str__(self) -> str:
        return f"{self.query.parent.name}/{self.query.name}"


def read_manifest(path: Path) -> list[W3cTest]:
    """The query tests of one manifest: syntax and evaluation."""
    store = pyoxigraph.Store()
    store.load(path=str(path), format=pyoxigraph.RdfFormat.TURTLE, base_iri=path.as_uri())
    tests = []
    kinds = {
        "PositiveSyntaxTest": True,
        "PositiveSyntaxTest11": True,
        "NegativeSyntaxTest": False,
        "NegativeSyntaxTest11": False,
        "QueryEvaluationTest": True,
    }
    for kind, positive in kinds.items():
        for quad in store.quads_for_pattern(None, _node(_TYPE), _node(_MF + kind)):
            action = _objects(store, quad.subject, _MF + "action")[0]
            evaluation = kind == "QueryEvaluationTest"
            query = _objects(store, action, _QT + "query")[0] if evaluation else action
            tests.append(
                W3cTest(
                    str(quad.subject),
                    _path(query),
                    positive,
                    tuple(map(_path, _objects(store, action, _QT + "data"))),
                    tuple(map(_path, _objects(store, action, _QT + "graphData"))),
                    evaluation,
                )
            )
    return sorted(tests, key=str)


def adapted(text: str) -> tuple[str, str] | None:
    """The prologue and `{ … }` of the pattern, or None for a query that has no such form."""
    prologue = _PROLOGUE.match(text)
    assert prologue is not None  # it matches the empty text, too
    head, body = prologue[0], text[prologue.end() :]
    form = _FORM.match(body)
    if form is None:
        return None
    if form[1].upper() == "SELECT":
        parts = body.partition("{")
        body = _DATASET.sub("", parts[0]) + parts[1] + parts[2]
        return head, f"{{ {body}\n}}"
    body = _DATASET.sub("", body[form.end() :])
    if form[1].upper() == "CONSTRUCT":
        body = re.sub(r"^\s*\{[^{}]*\}", "", body)
    body = re.sub(r"^\s*WHERE\b", "", body, flags=re.IGNORECASE)
    return head, body


def as_query(prologue: str, pattern: str) -> str:
    """A SPAseq query of one step with that pattern."""
    return (
        f"BASE <{BASE}>\n{prologue}\n"
        "ASK WITHIN UNBOUNDED FROM STREAM S <urn:s> "
        f"WHERE {{ SEQ (A) DEFINE GPM A ON S {pattern}\n}}"
    )


def _node(iri: str) -> pyoxigraph.NamedNode:
    return pyoxigraph.NamedNode(iri)


def _objects(store: pyoxigraph.Store, subject: object, predicate: str) -> list[object]:
    return [quad.object for quad in store.quads_for_pattern(subject, _node(predicate), None)]


def _path(node: object) -> Path:
    assert isinstance(node, pyoxigraph.NamedNode)
    return Path(node.value.removeprefix("file://"))
