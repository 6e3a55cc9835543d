"""The RDF syntaxes that pyoxigraph parses: one entry of `SYNTAXES` each.

Readers of knowledge bases (spaseq/kb/files.py) and of streams (spaseq/io/formats.py) derive
extensions, names in messages and the way to feed the parser from this table. It is in `rdf`
because `kb` precedes `io` in the order of stages; the readers of streams, and the syntaxes that
only they know, are in spaseq/io/formats.py.

This module does not import pyoxigraph: the command line names the syntaxes without that cost.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from spaseq.errors import SpaseqError
from spaseq.records import dataclass

if TYPE_CHECKING:
    import pyoxigraph as ox

LineFeeding: TypeAlias = Literal["always", "on failure", "never"]
"""When a document is handed to the parser line by line: "always" if the parser does not locate its
errors, "on failure" if it does, and "never" if the lines of a document have no meaning."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RdfSyntax:
    """The properties of a syntax, apart from its grammar."""

    name: str
    """The first of its file extensions, which is also its name in options."""
    title: str
    """Its name in messages."""
    media_type: str
    line_based: bool = False
    """Whether each line is one statement, a comment or blank."""
    named_graphs: bool = False
    line_feeding: LineFeeding = "on failure"
    other_extensions: tuple[str, ...] = ()
    other_media_types: tuple[str, ...] = ()

    @property
    def extensions(self) -> tuple[str, ...]:
        """All file extensions, its name first."""
        return (self.name, *self.other_extensions)

    @property
    def media_types(self) -> tuple[str, ...]:
        """All media types, the registered one first."""
        return (self.media_type, *self.other_media_types)


N_QUADS = RdfSyntax("nq", "N-Quads", "application/n-quads", line_based=True, named_graphs=True)
N_TRIPLES = RdfSyntax(
    "nt", "N-Triples", "application/n-triples", line_based=True, other_extensions=("txt",)
)
TRIG = RdfSyntax("trig", "TriG", "application/trig", named_graphs=True)
TURTLE = RdfSyntax("ttl", "Turtle", "text/turtle", other_media_types=("application/x-turtle",))
RDF_XML = RdfSyntax(
    "rdf",
    "RDF/XML",
    "application/rdf+xml",
    line_feeding="always",
    other_extensions=("owl", "xml"),
    other_media_types=("application/xml",),
)
JSON_LD = RdfSyntax(
    "jsonld",
    "JSON-LD",
    "application/ld+json",
    named_graphs=True,
    line_feeding="never",
    other_extensions=("json",),
    other_media_types=("application/json",),
)
N3 = RdfSyntax("n3", "N3", "text/n3")

SYNTAXES: Mapping[str, RdfSyntax] = {
    syntax.name: syntax for syntax in (N_QUADS, N_TRIPLES, TRIG, TURTLE, RDF_XML, JSON_LD, N3)
}


@cache
def parser_format(syntax: RdfSyntax) -> ox.RdfFormat:
    """The syntax as pyoxigraph names it."""
    import pyoxigraph as ox

    found = ox.RdfFormat.from_media_type(syntax.media_type)
    assert found is not None, f"pyoxigraph does not parse {syntax.title}"
    return found


def syntax_of_extension(extension: str) -> RdfSyntax | None:
    """The syntax with a file extension, in letters of either case; None if no syntax has it."""
    small = extension.lower()
    return next((known for known in SYNTAXES.values() if small in known.extensions), None)


def syntax_of_media_type(media_type: str) -> RdfSyntax | None:
    """The syntax with a media type, without regard to its parameters; None if no syntax has it."""
    essence = media_type.partition(";")[0].strip().lower()
    return next((known for known in SYNTAXES.values() if essence in known.media_types), None)


def entry(table: Mapping[str, T], name: str, what: str) -> T:
    """The entry of a table of formats; `what` says in the message what the table holds.

    Raises:
        SpaseqError: if the table has no such entry. The message lists the names it has.
    """
    if name not in table:
        raise SpaseqError(f"{name!r} is not a {what}; use {one_of(table)}")
    return table[name]


def one_of(names: Collection[str], prefix: str = "") -> str:
    """The names in a list with `or`, each after a prefix: `.nq, .nt or .trig`."""
    *some, last = [prefix + name for name in names]
    return f"{', '.join(some)} or {last}" if some else last
