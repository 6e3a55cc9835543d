"""The join of an EXISTS with the knowledge base uses the bindings of the row, in every position."""

from __future__ import annotations

import pytest

import spaseq
from spaseq.gpm import algebra

QUERY = (
    "PREFIX : <http://example.org/> SELECT * WITHIN 1 MINUTE FROM STREAM S :S "
    "WHERE {{ SEQ(A) DEFINE GPM A ON S {{ {pattern} }} }}"
)


def keys(pattern: str) -> list[list[str]]:
    """The variables of the joins with the knowledge base, of one EXISTS after the other."""
    native = spaseq.compile(QUERY.format(pattern=pattern)).tasks[0].native
    assert native is not None
    return [
        [native.slots[slot] for slot in node.keys]
        for answer in native.exists.values()
        for node in algebra.walk(answer)
        if isinstance(node, algebra.Join) and isinstance(node.right, algebra.KbTable)
    ]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("?s :v ?v FILTER EXISTS { GRAPH :kb { ?s :in ?r } }", [["s"]]),
        ("?s :v ?v FILTER EXISTS { GRAPH :kb { ?s :in ?v } }", [["s", "v"]]),
        ("?s :v ?v FILTER EXISTS { GRAPH :kb { ?q :in ?r } }", [[]]),
        (
            "?s :v ?v { ?s :u ?u OPTIONAL { ?s :w ?w } FILTER EXISTS { GRAPH :kb { ?s :in ?w } } }",
            [["s"]],
        ),
        ("?s :v ?v FILTER EXISTS { ?s :w ?w GRAPH :kb { ?w :in ?r } }", [["w"]]),
        # Only what both of its rows bind for sure.
        (
            "{ ?s :v ?v OPTIONAL { ?s :w ?w FILTER EXISTS { GRAPH :kb { ?s :in ?w } } } "
            "FILTER EXISTS { GRAPH :kb { ?s :in ?w } } }",
            [["s"]],
        ),
        ("?s :v ?v OPTIONAL { ?s :w ?w FILTER EXISTS { GRAPH :kb { ?s :in ?w } } }", [["s", "w"]]),
        ("?s :v ?v { ?s :w ?w FILTER EXISTS { GRAPH :kb { ?s :in ?v } } }", [["s"]]),
        # A service that fails may have bound nothing.
        (
            "{ ?s :v ?v SERVICE SILENT <http://e.org/> { ?s :w ?w } "
            "FILTER EXISTS { GRAPH :kb { ?s :in ?w } } }",
            [[]],
        ),
        ("?s :v ?v FILTER(?v > 1 || EXISTS { GRAPH :kb { ?s :in ?r } })", [["s"]]),
        ("{ ?s :v ?v BIND(EXISTS { GRAPH :kb { ?s :in ?r } } AS ?known) }", [["s"]]),
    ],
)
def test_by_what_its_row_binds(pattern: str, expected: list[list[str]]) -> None:
    assert keys(pattern) == expected
