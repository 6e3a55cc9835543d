"""A page of a Linked Data Event Stream → its members, and its relations to other pages.

A member consists of the page's statements about the object of `tree:member`, those about blank
nodes that they lead to, and the named graph with its name. The bounds of a relation over the path
of timestamps restrict the times of another page's members.

Source: TREE hypermedia specification and Linked Data Event Streams, SEMIC and TREE community group.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

import pyoxigraph as ox

from spaseq.errors import EventError, InputError
from spaseq.rdf.bounded import parse_document
from spaseq.rdf.formats import syntax_of_media_type
from spaseq.rdf.syntax import LimitError
from spaseq.rdf.time import from_literal
from spaseq.records import dataclass

_TREE = "https://w3id.org/tree#"
_LDES = "https://w3id.org/ldes#"
_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
_LOWER = ("GreaterThanRelation", "GreaterThanOrEqualToRelation", "EqualToRelation")
_UPPER = ("LessThanRelation", "LessThanOrEqualToRelation", "EqualToRelation")


@dataclass(frozen=True, slots=True)
class Member:
    """A member; `micros` is its time since 1970."""

    micros: int
    identifier: str
    data: bytes
    """Its statements in N-Quads."""


@dataclass(slots=True)
class Relation:
    """A link to a page, with the least and the greatest time that its members can have."""

    url: str
    least: int | None = None
    greatest: int | None = None


@dataclass(slots=True)
class Page:
    """The content of a page."""

    members: list[Member] = field(default_factory=list)
    relations: list[Relation] = field(default_factory=list)
    views: list[str] = field(default_factory=list)
    """The first pages of a collection."""
    timestamp_path: str | None = None


class _Index:
    """The statements of a page by subject."""

    def __init__(self, quads: Sequence[ox.Quad]):
        self.by_subject: dict[object, list[ox.Quad]] = defaultdict(list)
        self.by_graph: dict[object, list[ox.Quad]] = defaultdict(list)
        for quad in quads:
            if isinstance(quad.graph_name, ox.DefaultGraph):
                self.by_subject[quad.subject].append(quad)
            else:
                self.by_graph[quad.graph_name].append(quad)

    def objects(self, subject: object, predicate: str) -> Iterator[object]:
        for quad in self.by_subject.get(subject, ()):
            if quad.predicate.value == predicate:
                yield quad.object


def read_page(data: bytes, media_type: str, url: str, path: str | None) -> Page:
    """Read a page.

    Args:
        data: The document.
        media_type: Its media type.
        url: Its URL, which resolves relative IRIs.
        path: The predicate of timestamps, if it is known from another page.

    Raises:
        InputError: if it cannot be read, or a member has no time.
    """
    syntax = syntax_of_media_type(media_type)
    if syntax is None:
        raise InputError(f"the media type {media_type or 'none'} names no RDF syntax", url)
    try:
        quads = list(parse_document(data, syntax, url))
    except (LimitError, SyntaxError, ValueError) as error:
        raise InputError(f"not {syntax.title}: {error}", url) from error
    index, page = _Index(quads), Page(timestamp_path=path)
    for quads_ in index.by_subject.values():
        for quad in quads_:
            predicate = quad.predicate.value
            if predicate == f"{_LDES}timestampPath":
                if not isinstance(quad.object, ox.NamedNode):
                    raise InputError("the ldes:timestampPath is not a predicate", url)
                page.timestamp_path = quad.object.value
            elif predicate == f"{_TREE}view" and isinstance(quad.object, ox.NamedNode):
                page.views.append(quad.object.value)
    names = [
        quad.object
        for quads_ in index.by_subject.values()
        for quad in quads_
        if quad.predicate.value == f"{_TREE}member"
    ]
    known: set[object] = set(names)
    for name in dict.fromkeys(names):
        page.members.append(_member(index, name, known, page.timestamp_path, url))
    for quads_ in list(index.by_subject.values()):
        for quad in quads_:
            if quad.predicate.value == f"{_TREE}relation":
                page.relations += _relations(index, quad.object, page.timestamp_path)
    return page


def _member(index: _Index, name: object, known: set[object], path: str | None, url: str) -> Member:
    """A member, with the statements that belong to it."""
    if path is None:
        raise InputError(
            "the event stream has no ldes:timestampPath, which orders its members", url
        )
    quads: list[ox.Quad] = []
    waiting, seen = [name], {name}
    while waiting:
        subject = waiting.pop()
        for quad in index.by_subject.get(subject, ()):
            quads.append(quad)
            value = quad.object
            if isinstance(value, ox.BlankNode) and value not in seen and value not in known:
                seen.add(value)
                waiting.append(value)
    quads += index.by_graph.get(name, ())
    times = [t for quad in quads if quad.predicate.value == path for t in _times(quad.object)]
    shown = name.value if isinstance(name, ox.NamedNode) else str(name)
    if not times:
        raise InputError(f"the member {shown} has no time (<{path}>)", url)
    identifier = shown if isinstance(name, ox.NamedNode) else f"{url} {shown}"
    return Member(min(times), identifier, ox.serialize(quads, format=ox.RdfFormat.N_QUADS) or b"")


def _times(value: object) -> Iterator[int]:
    """The time that a term denotes, in microseconds."""
    if isinstance(value, ox.Literal):
        try:
            yield from_literal(value).micros
        except EventError:
            return


def _relations(index: _Index, relation: object, path: str | None) -> Iterator[Relation]:
    """The links of a relation, with its bounds of times."""
    of_times = any(
        isinstance(each, ox.NamedNode) and each.value == path
        for each in index.objects(relation, f"{_TREE}path")
    )
    kinds = {
        each.value.removeprefix(_TREE)
        for each in index.objects(relation, _TYPE)
        if isinstance(each, ox.NamedNode)
    }
    values = [t for each in index.objects(relation, f"{_TREE}value") for t in _times(each)]
    least = greatest = None
    if of_times and len(values) == 1:
        least = values[0] if kinds & set(_LOWER) else None
        greatest = values[0] if kinds & set(_UPPER) else None
    for node in index.objects(relation, f"{_TREE}node"):
        if isinstance(node, ox.NamedNode):
            yield Relation(node.value, least, greatest)


def merged(relations: Sequence[Relation]) -> Mapping[str, Relation]:
    """The links of a page by URL, without fragments; all bounds of a link apply."""
    found: dict[str, Relation] = {}
    for each in relations:
        url = each.url.partition("#")[0]
        known = found.setdefault(url, Relation(url))
        known.least = max((t for t in (known.least, each.least) if t is not None), default=None)
        known.greatest = min(
            (t for t in (known.greatest, each.greatest) if t is not None), default=None
        )
    return found
