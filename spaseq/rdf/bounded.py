"""Documents for parsers whose cost grows faster than their input: bounded before they read it.

pyoxigraph, Python and pyarrow recurse into nested JSON. In JSON-LD, pyoxigraph also copies contexts
into the objects below them. In RDF/XML, it replaces entities where they are declared. `Bounded`
passes the bytes of a document on to a parser, after a scanner (spaseq/rdf/native/_bounds.pyx) has
read them. Every reader of JSON, JSON-LD and RDF/XML uses this module.

Cost: linear in the bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any

import pyoxigraph as ox

from spaseq.rdf.formats import JSON_LD, N3, RDF_XML, TRIG, TURTLE, RdfSyntax, parser_format
from spaseq.rdf.native._bounds import JsonScanner, TurtleScanner, XmlScanner
from spaseq.rdf.syntax import Expansion, LimitError, nesting, parser_failure

MAX_NESTED_JSON = 500
"""Nesting depth of arrays and objects. Python's reader allows about 1,000 levels, pyarrow's a few
thousand."""
MAX_NESTED_JSON_LD = 100
"""The same for JSON-LD: the parser's memory for 1,000 levels is about 200 MB."""
MAX_ENTITY_BYTES = 1 << 20
"""What all entities of an XML document may expand to, beyond the text of their declarations."""
MAX_CONTEXT_IRI_BYTES = 4096
"""The longest IRI in a context of JSON-LD."""
_PART_BYTES = 1 << 12
"""The fewest bytes of an incomplete token that are passed on to a parser."""
MAX_TERM_CHAIN = 32
"""How many terms of a context may be defined by each other; the parser recurses."""


CUT_OFF = "the file ends before its root element is closed"


def check_json(data: bytes) -> None:
    """Check that a JSON text, or lines of JSON, can be parsed.

    Raises:
        LimitError: if it is nested more than `MAX_NESTED_JSON` deep.
    """
    JsonScanner(MAX_NESTED_JSON).read(data)


def parse_json(data: bytes | str, **options: Any) -> Any:
    """The value of a JSON text; `options` are those of `json.loads`.

    Raises:
        ValueError: if it is malformed, or nested more than `MAX_NESTED_JSON` deep.
    """
    text = data if isinstance(data, bytes) else data.encode(errors="surrogatepass")
    try:
        check_json(text)
        return json.loads(data, **options)
    except (LimitError, RecursionError) as error:
        raise ValueError(str(error)) from None


class Scanner:
    """What a scanner of a syntax does."""

    def __init__(self, syntax: RdfSyntax):
        self._read: Callable[[bytes], None] | None = None
        self._xml: XmlScanner | None = None
        self._brackets: TurtleScanner | None = None
        if syntax is RDF_XML:
            self._xml = XmlScanner(_entities)
            self._read = self._xml.read
        elif syntax is JSON_LD:
            self._read = JsonScanner(MAX_NESTED_JSON_LD, ContextBounds().read).read
        elif syntax in (TURTLE, TRIG, N3):
            self._brackets = TurtleScanner()
        self._open_triples = 0
        self._end = b""

    @property
    def is_open(self) -> bool:
        """Whether a token has begun that the parser would read again with each part of it."""
        return self._xml is not None and self._xml.is_open

    @property
    def is_cut_off(self) -> bool:
        """Whether an XML document has ended before its root element; pyoxigraph accepts it."""
        return self._xml is not None and self._xml.is_cut_off

    def read(self, data: bytes) -> None:
        """Read the next bytes of the document.

        Raises:
            LimitError: if they exceed a bound.
        """
        if self._read is not None:
            self._read(data)
            return
        if self._brackets is not None:
            self._brackets.read(data)
        # A bracket split between two reads is counted with the second.
        self._open_triples = nesting(self._end + data, self._open_triples)
        self._end = data[-2:] if data[-1:] in (b"<", b"(", b")", b">") else b""


class Bounded:
    """A binary file for a parser, whose `read` raises LimitError before the parser is overtaxed.

    The parser of XML reads an incomplete token again whenever it receives more bytes of it. Such a
    token is passed on in parts that double in size.
    """

    def __init__(self, file: IO[bytes], syntax: RdfSyntax):
        self._file = file
        self.scanner = Scanner(syntax)
        self._text, self._at = b"", 0
        self._open_bytes = 0
        self.expansion = Expansion()
        """What `count` compares the statements with."""

    def read(self, size: int = -1) -> bytes:
        """Read up to `size` bytes."""
        if self._at == len(self._text):
            self._text, self._at = self._next(size), 0
        end = len(self._text) if size < 0 else min(self._at + size, len(self._text))
        part = self._text[self._at : end]
        self._at = end
        return part

    def _next(self, size: int) -> bytes:
        parts: list[bytes] = []
        read, least = 0, self._open_bytes
        while data := self._file.read(size):
            self.scanner.read(data)
            parts.append(data)
            read += len(data)
            if not self.scanner.is_open:
                self._open_bytes = 0
                break
            if read >= least and read >= _PART_BYTES:
                self._open_bytes = 2 * read
                break
        self.expansion.size += read
        return parts[0] if len(parts) == 1 else b"".join(parts)


def parse_document(data: bytes, syntax: RdfSyntax, base: str | None = None) -> Iterator[ox.Quad]:
    """The statements of a whole document, by pyoxigraph.

    Raises:
        SyntaxError: if it is malformed.
        LimitError: if it exceeds a bound.
    """
    Scanner(syntax).read(data)
    expansion = Expansion(len(data))
    parser = ox.parse(data, format=parser_format(syntax), base_iri=base)
    while True:
        try:
            quad = next(parser, None)
        except SyntaxError:
            raise
        except BaseException as error:
            failure = parser_failure(error)
            if failure is None:
                raise
            raise LimitError(failure) from None
        if quad is None:
            return
        expansion.count(quad)
        yield quad


# ------------------------------------------------------------------ entities

_MAX_NAME_BYTES = 256
_REFERENCE = re.compile(rb"&([^;&]{1,256});")
_SPACE = re.compile(r"[ \t\n\f\r]")
_QUOTED = re.compile(rb"<!--(.*?)-->|\"([^\"]*)\"|'([^']*)'", re.DOTALL)


def _entities(declaration: bytes, known: Mapping[bytes, int]) -> Mapping[bytes, int]:
    """The bytes that each entity expands to, those of a further declaration included.

    The parser divides a document type by its brackets, so strings with brackets are refused: where
    the declaration ends must be certain.

    Raises:
        LimitError: if they expand to more than `MAX_ENTITY_BYTES` beyond the declaration.
    """
    for quoted in _QUOTED.finditer(declaration):
        if any(part and (b"<" in part or b">" in part) for part in quoted.groups()):
            raise LimitError("its document type has a string or comment with < or >")
    sizes = dict(known)
    total, most = 0, MAX_ENTITY_BYTES + len(declaration)
    # As the parser finds them: between brackets and quotes.
    for part in declaration.split(b"<"):
        if not part.startswith(b"!ENTITY"):
            continue
        front, _, rest = part.removeprefix(b"!ENTITY").partition(b'"')
        shown = front.decode(errors="replace").lstrip().removeprefix("%").lstrip()
        name = _SPACE.split(shown, maxsplit=1)[0].encode()
        if len(name) > _MAX_NAME_BYTES:
            raise LimitError(f"the name of an entity has more than {_MAX_NAME_BYTES} bytes")
        value = rest.partition(b'"')[0]
        size = len(value)
        size += sum(sizes.get(other, 0) for other in _REFERENCE.findall(value))
        total += size
        if total > most:
            raise LimitError(
                f"the entity {name.decode()} expands to {size:,} bytes; entities may expand to "
                f"{MAX_ENTITY_BYTES:,} bytes in all"
            )
        sizes[name] = size
    return sizes


# ------------------------------------------------------------------ contexts


class ContextBounds:
    """The contexts of a JSON-LD document: what the parser writes and reads in place of terms."""

    def __init__(self) -> None:
        self._lengths: dict[str, int] = {}
        """The most bytes of the IRI of each term."""
        self._vocabulary = self._base = self._longest = 0

    def read(self, text: bytes) -> tuple[Mapping[bytes, int], int]:
        """The bytes of the context of each term that has one, and those of the longest IRI.

        Raises:
            LimitError: if an IRI is too long, or too many terms are defined by each other.
        """
        try:
            # Objects are tuples of members: the parser may use any of several with one name.
            context = json.loads(text.decode(), object_pairs_hook=tuple)
        except (ValueError, RecursionError):
            return {}, self._longest  # the parser refuses it
        scoped: dict[bytes, int] = {}
        for one in context if isinstance(context, list) else [context]:
            defined: dict[str, list[str]] = {}
            self._collect(one, scoped, defined)
            depths: dict[str, int] = {}
            for term in defined:
                self._measure(term, defined, depths, 1)
        return scoped, max(self._longest, self._vocabulary, self._base)

    def _collect(
        self, context: Any, scoped: dict[bytes, int], defined: dict[str, list[str]]
    ) -> int:
        """Collect definitions of terms. Returns about the number of bytes of the context."""
        if isinstance(context, list):
            return 2 + sum(self._collect(one, scoped, defined) for one in context)
        if not isinstance(context, tuple):
            return len(context) + 3 if isinstance(context, str) else 6
        size = 2
        for name, value in context:
            size += len(name) + 4
            if name == "@vocab" and isinstance(value, str):
                self._vocabulary = max(self._vocabulary, self._resolved(value, self._vocabulary))
            elif name == "@base" and isinstance(value, str):
                self._base = max(self._base, self._resolved(value, self._base))
            if isinstance(value, tuple):
                size += self._collect_definition(name, value, scoped, defined)
                continue
            size += self._collect(value, {}, {})
            if not name.startswith("@"):
                defined.setdefault(name, []).append(value if isinstance(value, str) else name)
        return size

    def _collect_definition(
        self, name: str, members: Any, scoped: dict[bytes, int], defined: dict[str, list[str]]
    ) -> int:
        """Collect the definition of one term by an object. Returns about its number of bytes."""
        iri, size = name, 2
        for key, value in members:
            size += len(key) + 4
            if key in ("@id", "@reverse") and isinstance(value, str):
                iri = value
            if key != "@context":
                size += self._collect(value, {}, {})
                continue
            inner = self._collect(value, scoped, defined)
            term = name.encode(errors="replace")
            scoped[term] = scoped.get(term, 0) + inner
            size += inner
        if not name.startswith("@"):
            defined.setdefault(name, []).append(iri)
        return size

    def _measure(
        self, term: str, defined: Mapping[str, list[str]], depths: dict[str, int], level: int
    ) -> int:
        """Store the most bytes of the IRI of a term. Returns how many terms it is defined by."""
        if level > MAX_TERM_CHAIN:
            raise LimitError(f"more than {MAX_TERM_CHAIN} terms of a context define each other")
        if term in depths:
            return depths[term]
        depths[term] = depth = 1
        longest = self._lengths.get(term, 0)
        for iri in defined[term]:
            prefix, colon, _ = iri.partition(":")
            if prefix in defined and prefix != term:
                depth = max(depth, 1 + self._measure(prefix, defined, depths, level + 1))
            longest = max(longest, self._resolved(iri, 0 if colon else self._vocabulary))
        if depth > MAX_TERM_CHAIN:
            raise LimitError(f"more than {MAX_TERM_CHAIN} terms of a context define each other")
        depths[term], self._lengths[term] = depth, longest
        self._longest = max(self._longest, longest)
        return depth

    def _resolved(self, iri: str, front: int) -> int:
        """The most bytes of an IRI that may be a term, have one as its prefix, or be relative.

        Raises:
            LimitError: if the IRI itself is too long.
        """
        size = len(iri.encode(errors="replace"))
        if size > MAX_CONTEXT_IRI_BYTES:
            raise LimitError(f"an IRI of a context has more than {MAX_CONTEXT_IRI_BYTES:,} bytes")
        prefix, colon, _ = iri.partition(":")
        return size + max(self._lengths.get(prefix, 0), 0 if colon else front)
