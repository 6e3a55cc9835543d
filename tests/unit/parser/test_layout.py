"""Layout of query texts: the tree and the comments stay, and a second pass changes nothing."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from spaseq.errors import QuerySyntaxError
from spaseq.parser import parse
from spaseq.parser.layout import laid_out

ROOT = Path(__file__).parents[3]


def written_queries() -> Iterator[tuple[str, str]]:
    """The queries of the examples, the documents and the suite that parse as they are."""
    for path in sorted(ROOT.glob("examples/**/*.rq")):
        yield str(path.relative_to(ROOT)), path.read_text("utf-8")
    for path in (ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))):
        found = re.finditer(r"^```sparql[^\n]*\n(.*?)^```$", path.read_text("utf-8"), re.M | re.S)
        for number, block in enumerate(found):
            yield f"{path.name}-{number}", block[1]
    for path in sorted(ROOT.glob("tests/suite/*.toml")):
        with path.open("rb") as file:
            for case in tomllib.load(file).get("case", ()):
                # The other cases leave the prefix to those that read them (tests/cases.py).
                if "PREFIX" in case.get("query", ""):
                    yield f"{path.stem}-{case['name']}", case["query"]


def parses(text: str) -> bool:
    try:
        parse(text)
    except QuerySyntaxError:
        return False
    return True


QUERIES = {name: text for name, text in written_queries() if parses(text)}


def comments(text: str) -> list[str]:
    return [line.rstrip() for line in re.findall(r"(?:^|\s)(#.*)$", text, re.MULTILINE)]


def test_there_are_queries() -> None:
    assert len(QUERIES) > 50


@pytest.mark.parametrize("name", QUERIES)
def test_the_meaning_stays(name: str) -> None:
    text = QUERIES[name]
    once = laid_out(text)
    assert parse(once) == parse(text)
    assert comments(once) == comments(text)
    assert laid_out(once) == once


@pytest.mark.parametrize("name", QUERIES)
def test_line_breaks_can_be_anywhere(name: str) -> None:
    """A text on few lines is laid out, and so is one that has a line for each word."""
    text = re.sub(r"(^|\s)#.*$", "", QUERIES[name], flags=re.MULTILINE)
    for words in (re.sub(r"\s+(?=[^\"']*$)", " ", text), re.sub(r" (?=[^\"']*$)", "\n", text)):
        if parses(words):
            once = laid_out(words)
            assert parse(once) == parse(text)
            assert laid_out(once) == once


BEFORE = """\
# first
PREFIX : <http://example.org/>


SELECT ?x   (max(?y)   AS ?z) within 2 minutes
from stream s :s where {

  seq(A;B{2,3} , !( C&D )
     ; E WITHIN 5 seconds)
    # about A
  define gpm A  on s { [ ] :a ?x; # a
          :b "  kept  " . filter (?x>1 &&
     ?x in (1,2,3)) optional {?x a :B} }
  define gpm B on s { ?e :b\t?y } define gpm C on s {} define gpm D on s { ?c (:a|^:b)/:c* ?y }
  define gpm E on s {
      ?e :e ?x
      bind(strlen(str(?x)) as ?n)
      } } group by ?x over 1 hour let (count(*) as ?n) having(?n>2)
 # last"""
AFTER = """\
# first
PREFIX : <http://example.org/>

SELECT ?x (MAX(?y) AS ?z)
WITHIN 2 MINUTES
FROM STREAM s :s
WHERE {
  SEQ(A ; B{2,3} , !(C&D)
     ; E WITHIN 5 SECONDS)
  # about A
  DEFINE GPM A ON s { [] :a ?x ;  # a
          :b "  kept  " . FILTER(?x>1 &&
     ?x IN (1, 2, 3)) OPTIONAL { ?x a :B } }
  DEFINE GPM B ON s { ?e :b ?y }
  DEFINE GPM C ON s {}
  DEFINE GPM D ON s { ?c (:a|^:b)/:c* ?y }
  DEFINE GPM E ON s {
    ?e :e ?x
    BIND(strlen(str(?x)) AS ?n)
  }
}
GROUP BY ?x OVER 1 HOUR LET (COUNT(*) AS ?n) HAVING (?n>2)
# last
"""


def test_what_changes_and_what_stays() -> None:
    assert laid_out(BEFORE) == AFTER
    assert laid_out(AFTER) == AFTER


def test_mappings_of_rows_are_laid_out() -> None:
    text = "prefix : <urn:>\nconstruct { [] :a ?x } where { bind(?row_x as ?x) }"
    assert laid_out(text) == (
        "PREFIX : <urn:>\nCONSTRUCT { [] :a ?x }\nWHERE {\n  BIND(?row_x AS ?x)\n}\n"
    )


def test_an_error_is_that_of_the_query() -> None:
    with pytest.raises(QuerySyntaxError, match="unknown word SELEKT"):
        laid_out("SELEKT ?x")


@pytest.mark.parametrize("path", sorted(ROOT.glob("examples/**/*.rq")), ids=lambda path: path.name)
def test_the_examples_are_laid_out(path: Path) -> None:
    text = path.read_text("utf-8")
    assert laid_out(text) == text
