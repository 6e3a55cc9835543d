"""The HTTP response to a SELECT → rows of terms.

pyoxigraph parses SPARQL's JSON, XML and TSV results while they arrive, including the
`typed-literal` of older servers. It refuses invalid labels of blank nodes (Virtuoso's
`nodeID://b1`); the client then repeats the request and parses the answer as a whole (`lenient`).
Limits on bytes, rows and time apply while reading. Each answer has its own blank nodes.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Sequence
from time import monotonic
from typing import IO, Any, TypeAlias, cast

import pyoxigraph as ox

from spaseq.rdf.event import Term, with_nodes
from spaseq.rdf.syntax import parser_message

Row: TypeAlias = "tuple[Term | None, ...]"

ACCEPT = (
    "application/sparql-results+json, application/sparql-results+xml;q=0.8, "
    "text/tab-separated-values;q=0.6"
)
FORMATS = {
    "application/sparql-results+json": ox.QueryResultsFormat.JSON,
    "application/json": ox.QueryResultsFormat.JSON,
    "application/sparql-results+xml": ox.QueryResultsFormat.XML,
    "application/xml": ox.QueryResultsFormat.XML,
    "text/xml": ox.QueryResultsFormat.XML,
    "text/tab-separated-values": ox.QueryResultsFormat.TSV,
}


class UnreadableAnswer(Exception):
    """The response is not a valid answer to a SELECT."""


class QuirkyAnswer(Exception):
    """Only the lenient parser can read the answer."""


class TooManyRows(Exception):
    """The answer has more rows than allowed."""


class AnswerTooLarge(Exception):
    """The answer has more bytes than allowed."""


class Body:
    """The bytes of an answer as a file-like object, limited in bytes and time."""

    def __init__(self, chunks: Iterator[bytes], size: int, deadline: float):
        self._chunks = chunks
        self._left = b""
        self._size = size
        self._deadline = deadline
        self.failure: Exception | None = None
        """The exception that `read` raised; the parser may replace it with another one."""

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes; empty at the end."""
        try:
            return self._read(size)
        except Exception as error:
            self.failure = error
            raise

    def _read(self, size: int) -> bytes:
        while not self._left:
            if monotonic() > self._deadline:
                raise TimeoutError("the answer took too long")
            chunk = next(self._chunks, None)
            if chunk is None:
                return b""
            self._size -= len(chunk)
            if self._size < 0:
                raise AnswerTooLarge
            self._left = chunk
        if size < 0:
            size = len(self._left)
        part, self._left = self._left[:size], self._left[size:]
        return part

    def mend_header(self) -> None:
        """Rewrite the names in the first line of a TSV as `?name`; some servers omit the `?`."""
        line = b""
        while b"\n" not in line and (more := self.read()):
            line += more
        line, end, rest = line.partition(b"\n")
        names = [name.strip(b'"\r ?$') for name in line.split(b"\t")]
        self._left = b"\t".join(b"?" + name for name in names if name) + end + rest

    def whole(self) -> bytes:
        """The remaining bytes."""
        return b"".join(iter(self.read, b""))


def read_rows(
    body: Body, media_type: str, variables: Sequence[str], bound: int, prefix: str, lenient: bool
) -> list[Row]:
    """The rows of an answer, with columns in the order of `variables`.

    Args:
        body: The bytes of the answer.
        media_type: Its `Content-Type`.
        variables: The columns to return.
        bound: The maximum number of rows.
        prefix: Prefix of the labels of blank nodes, unique to the answer.
        lenient: Whether to accept invalid labels of blank nodes, at the cost of reading the
            whole answer before the first row.

    Raises:
        UnreadableAnswer: if the answer is not a table of these variables.
        TooManyRows: if there are more than `bound` rows.
        QuirkyAnswer: if the answer needs `lenient`.
    """
    kind = media_type.partition(";")[0].strip().lower()
    form = FORMATS.get(kind)
    if form is None:
        start = body.read(160).decode("utf-8", "replace")
        raise UnreadableAnswer(f"it is {kind or 'of no stated type'}: {' '.join(start.split())!r}")
    rows: list[Row] = []
    parsed = (
        _lenient(body, variables)
        if lenient and form == ox.QueryResultsFormat.JSON
        else _parsed(body, form, variables)
    )
    try:
        for row in parsed:
            if len(rows) == bound:
                raise TooManyRows
            rows.append(tuple(_own(term, prefix) for term in row))
    except (SyntaxError, ValueError, KeyError, TypeError, AttributeError) as error:
        if body.failure is not None:
            raise body.failure from None
        if "bnode" in str(error).lower() and not lenient:
            raise QuirkyAnswer from None
        said = parser_message(error) if isinstance(error, SyntaxError) else str(error)
        raise UnreadableAnswer(f"it is not {form.name}: {said}") from None
    except OSError:
        if body.failure is not None:
            raise body.failure from None
        raise
    finally:
        parsed.close()
    return rows


def _own(term: Term | None, prefix: str) -> Term | None:
    if term is None:
        return None
    return with_nodes(term, lambda node: ox.BlankNode(f"{prefix}.{node.value}"))


def _parsed(
    body: Body, form: ox.QueryResultsFormat, variables: Sequence[str]
) -> Generator[Row, None, None]:
    if form == ox.QueryResultsFormat.TSV:
        body.mend_header()
    results = ox.parse_query_results(cast(IO[bytes], body), format=form)
    if not isinstance(results, ox.QuerySolutions):
        raise UnreadableAnswer("it is the answer to an ASK")
    try:
        columns = {name.value: n for n, name in enumerate(results.variables)}
        places = _places(columns, variables)
        for solution in results:
            yield tuple([cast("Term | None", solution[place]) for place in places])
    finally:
        # pyoxigraph requires destruction in the creating thread; a traceback might outlive it.
        del results


def _places(columns: dict[str, int], variables: Sequence[str]) -> list[int]:
    for name in variables:
        if name not in columns:
            raise UnreadableAnswer(f"it has no column ?{name}")
    return [columns[name] for name in variables]


def _lenient(body: Body, variables: Sequence[str]) -> Generator[Row, None, None]:
    data = json.loads(body.whole())
    _places({name: n for n, name in enumerate(data["head"]["vars"])}, variables)
    labels: dict[str, str] = {}
    for solution in data["results"]["bindings"]:
        yield tuple(
            [_term(solution[name], labels) if name in solution else None for name in variables]
        )


def _term(cell: dict[str, Any], labels: dict[str, str]) -> Term:
    kind, value = cell["type"], cell["value"]
    if kind == "uri":
        return ox.NamedNode(value)
    if kind == "bnode":
        return ox.BlankNode(labels.setdefault(value, f"n{len(labels)}"))
    if "xml:lang" in cell:
        direction = cell.get("its:dir")
        return ox.Literal(
            value,
            language=cell["xml:lang"],
            direction=None if direction is None else ox.BaseDirection(direction),
        )
    if "datatype" in cell:
        return ox.Literal(value, datatype=ox.NamedNode(cell["datatype"]))
    return ox.Literal(value)
