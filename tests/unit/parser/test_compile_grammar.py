"""The tables beside the grammar are the grammar's, and reading a query needs nothing else."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.parser.compile_grammar import GRAMMAR, TABLES, compile_grammar
from spaseq.parser.keywords import FAMILIES
from spaseq.parser.lalr import tables
from spaseq.parser.lexer import _expressions


def test_the_tables_belong_to_the_grammar() -> None:
    assert TABLES.read_text("utf-8") == compile_grammar(GRAMMAR.read_text("utf-8")), (
        "run python -m spaseq.parser.compile_grammar"
    )


def test_a_conflict_is_refused() -> None:
    text = 'query: "x" | query query\npattern: "y"\nexpression: "z"\nmapping: "m"\n'
    with pytest.raises(ValueError, match="conflict"):
        compile_grammar(text)


def test_reading_a_query_does_not_load_lark() -> None:
    code = "import sys; from spaseq.parser import parse_pattern as p; p('{}'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "spaseq.parser.lexer" in done.stdout.split()
    assert "lark" not in done.stdout.split()


def test_every_family_of_words_is_a_terminal() -> None:
    symbols = {symbol for state in tables().states for symbol in state}
    assert symbols >= FAMILIES.keys()
    assert not symbols & {"PARTITIONS"}


@given(
    st.text(st.characters(max_codepoint=127) | st.sampled_from(":_<>?\"'\\.@+-0eE"), max_size=12)
)
def test_the_expression_for_ascii_reads_ascii_alike(text: str) -> None:
    for small, full in zip(_expressions(True), _expressions(False), strict=True):
        one, other = small.match(text), full.match(text)
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            assert (one.span(), one.lastgroup) == (other.span(), other.lastgroup)


def test_keywords_are_words() -> None:
    name = re.compile(dict(tables().patterns)["NAME"])
    assert all(name.fullmatch(word) for word in tables().keywords)
