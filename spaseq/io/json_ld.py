"""JSON-LD, lines of JSON-LD and NGSI-LD notifications → statements.

pyoxigraph parses the documents. This module replaces references to remote contexts with the files
that the option `contexts` names; a context is never fetched. NGSI-LD's own context is built in.

* JSON-LD: one document, whose statements are yielded when the document is complete, since a later
  context may change the meaning of earlier members.
* Lines of JSON-LD: each line is a document and a message.
* NGSI-LD: each entity of a notification is a message. The reader adds its time as
  prov:generatedAtTime: the latest `observedAt` of its attributes, else the notification's
  `notifiedAt`. An entity in temporal representation is a message for each time, and the messages of
  such a document are in the order of their times.

Only a malformed line is skipped; a malformed document ends its file.

Source: W3C, *JSON-LD 1.1*; ETSI GS CIM 009, *NGSI-LD API*, sections 5.2 and 5.3.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import IO, TYPE_CHECKING, Any, cast

import pyoxigraph as ox

from spaseq.errors import EventError, InputError
from spaseq.io.statements import Statement
from spaseq.io.time_path import GENERATED_AT
from spaseq.rdf import time
from spaseq.rdf.bounded import Scanner, parse_document, parse_json
from spaseq.rdf.formats import JSON_LD, parser_format
from spaseq.rdf.syntax import LimitError, parser_failure, parser_message

if TYPE_CHECKING:
    from spaseq.io.lines import Lines
    from spaseq.io.read_options import Troubles

_CONTEXT = re.compile(r'"@context"\s*:\s*(?=["\[])')
_PLACE = re.compile(r"^Parser error at line \d+ column \d+(?: to (?:line \d+ )?column \d+)?: ")
_FIRST_BYTES = 1 << 16
_MAX_CONTEXTS = 100
"""The most contexts of one list: each may be replaced with a file."""
_MEMBER = re.compile(rb'"[^"@][^"]*"\s*:')
"""A member that is not a keyword of JSON-LD."""
_NO_IRIS = (
    "no member of it has an IRI, so there is no statement; a context names the IRIs "
    "(--context FILE)"
)
_PROV_TIME = ox.NamedNode(GENERATED_AT)
_DATE_TIME = ox.NamedNode(time.XSD + "dateTime")

NGSI_LD_URL = "https://uri.etsi.org/ngsi-ld/"
_NGSI_NAMES = {
    "value": "hasValue", "valueList": "hasValueList", "previousValue": "hasPreviousValue",
    "unitCode": "unitCode", "datasetId": "datasetId", "instanceId": "instanceId",
    "location": "location", "observationSpace": "observationSpace",
    "operationSpace": "operationSpace", "Property": "Property", "Relationship": "Relationship",
    "GeoProperty": "GeoProperty", "LanguageProperty": "LanguageProperty",
    "ListProperty": "ListProperty", "JsonProperty": "JsonProperty",
    "VocabProperty": "VocabProperty", "ListRelationship": "ListRelationship",
    "DateTime": "DateTime", "Date": "Date", "Time": "Time",
}  # fmt: skip
_NGSI_TIMES = ("createdAt", "deletedAt", "modifiedAt", "notifiedAt", "observedAt")
_OF_ENTITIES = ("id", "@id", "type", "@type", "@context")
"""The members of an entity that are no attributes."""
_TEMPORAL_VALUES = {
    "values": "value", "objects": "object", "languageMaps": "languageMap", "vocabs": "vocab",
    "jsons": "json", "valueLists": "valueList", "objectLists": "objectList",
}  # fmt: skip
"""The list of [value, time] of the simplified temporal representation → the member of one value."""
_GEOJSON = "https://purl.org/geojson/vocab#"
NGSI_LD_CONTEXT: dict[str, Any] = {
    "@version": 1.1,
    "id": "@id",
    "type": "@type",
    **{name: NGSI_LD_URL + term for name, term in _NGSI_NAMES.items()},
    **{
        name: {"@id": NGSI_LD_URL + name, "@type": NGSI_LD_URL + "DateTime"} for name in _NGSI_TIMES
    },
    "datasetId": {"@id": NGSI_LD_URL + "datasetId", "@type": "@id"},
    "instanceId": {"@id": NGSI_LD_URL + "instanceId", "@type": "@id"},
    "object": {"@id": NGSI_LD_URL + "hasObject", "@type": "@id"},
    "objectList": {"@id": NGSI_LD_URL + "hasObjectList", "@container": "@list"},
    "vocab": {"@id": NGSI_LD_URL + "hasVocab", "@type": "@vocab"},
    "json": {"@id": NGSI_LD_URL + "hasJSON", "@type": "@json"},
    "languageMap": {"@id": NGSI_LD_URL + "hasLanguageMap", "@container": "@language"},
    "coordinates": {"@id": _GEOJSON + "coordinates", "@container": "@list"},
    **{
        name: _GEOJSON + name
        for name in (
            "Point", "LineString", "Polygon", "MultiPoint", "MultiLineString", "MultiPolygon",
        )
    },
    "@vocab": NGSI_LD_URL + "default-context/",
}  # fmt: skip
"""The terms of NGSI-LD's core context that entities and their attributes use."""


class Contexts:
    """The contexts that replace remote ones, by their URLs; "" is for every other URL."""

    def __init__(self, files: Mapping[str, str]):
        self._files = files
        self._loaded: dict[str, Any] = {}

    def resolved(self, context: Any) -> Any:
        """A context without remote references.

        Raises:
            InputError: for a reference to a context that no file gives.
        """
        if isinstance(context, list):
            if len(context) > _MAX_CONTEXTS:
                raise InputError(f"a list of more than {_MAX_CONTEXTS} contexts")
            return [self.resolved(one) for one in context]
        if not isinstance(context, str):
            return context
        if context not in self._files and context.startswith(NGSI_LD_URL):
            return NGSI_LD_CONTEXT
        path = self._files.get(context, self._files.get(""))
        if path is None:
            raise InputError(
                f"its @context {context} is remote, and contexts are never fetched: "
                f"--context {context}=FILE names a copy"
            )
        if path not in self._loaded:
            self._loaded[path] = _read_context(path)
        return self._loaded[path]

    def default(self) -> Any:
        """The context of documents without one, or None."""
        return self.resolved("") if "" in self._files else None

    def inlined(self, text: str) -> str:
        """A document, or its beginning, without remote references in its contexts."""
        if '"@context"' not in text:
            context = self.default()
            start = text.find("{") + 1
            if context is None or not start or text[:start].strip() != "{":
                return text
            rest = text[start:].lstrip()
            comma = "" if rest.startswith("}") else ", "
            return f'{{"@context": {json.dumps(context)}{comma}{rest}'
        parts, position = [], 0
        for found in _CONTEXT.finditer(text):
            if found.start() < position:
                continue
            try:
                context, end = json.JSONDecoder().raw_decode(text, found.end())
            except ValueError:
                break
            parts += [text[position : found.end()], json.dumps(self.resolved(context))]
            position = end
        return "".join((*parts, text[position:]))


def _read_context(path: str) -> Any:
    """The context in a file: the value of its `@context`, or the whole file."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            content = json.load(file)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", path) from error
    except ValueError as error:
        raise InputError(f"not a JSON-LD context: {error}", path) from error
    if not isinstance(content, dict):
        raise InputError("not a JSON-LD context: it is not an object", path)
    return content.get("@context", content)


class _Feed:
    """The lines of a document for the parser."""

    def __init__(self, lines: Lines, contexts: Contexts):
        self._lines = lines
        self._contexts = contexts
        self._scanner = Scanner(JSON_LD)
        self._text = b""
        self._at = 0
        self._is_first = True
        self.has_members = False
        """Whether the beginning has members that a context could map."""

    def read(self, size: int = -1) -> bytes:
        if self._at == len(self._text):
            self._text, self._at = self._next(), 0
            self._scanner.read(self._text)
        end = len(self._text) if size < 0 else min(self._at + size, len(self._text))
        part = self._text[self._at : end]
        self._at = end
        return part

    def _next(self) -> bytes:
        if not self._is_first:
            return self._lines.readline()
        self._is_first = False
        parts, size = [], 0
        while size < _FIRST_BYTES and (line := self._lines.readline()):
            parts.append(line)
            size += len(line)
        text = b"".join(parts)
        self.has_members = _MEMBER.search(text) is not None
        try:
            return self._contexts.inlined(text.decode()).encode()
        except UnicodeDecodeError:
            return text


def json_ld_statements(lines: Lines, troubles: Troubles) -> Iterator[Statement]:
    """The statements of one document, each with the number of the last line read."""
    feed = _Feed(lines, _contexts(lines))
    try:
        parser = ox.parse(
            cast(IO[bytes], feed), format=parser_format(JSON_LD), base_iri=lines.base()
        )
        is_empty = True
        for quad in parser:
            is_empty = False
            yield quad, lines.number
        if is_empty and feed.has_members:
            troubles.report(_NO_IRIS, lines.name, lines.number)
    except SyntaxError as error:
        troubles.report(explained(error), lines.name, error.lineno or lines.number)
    except LimitError as error:
        troubles.report(str(error), lines.name, lines.number)
    except InputError as error:
        number = None if error.file else lines.number
        troubles.report(error.message, error.file or lines.name, number)
    except BaseException as error:
        failure = parser_failure(error)
        if failure is None:
            raise
        troubles.report(failure, lines.name, lines.number)


def json_ld_lines(lines: Lines, troubles: Troubles, marked: bool) -> Iterator[Statement]:
    """The statements of a document on each line; `marked`: `(None, line)` follows each."""
    contexts = _contexts(lines)
    while line := lines.readline():
        if line.isspace():
            continue
        quads = _parsed(line, lines, contexts, troubles)
        for quad in quads:
            yield quad, lines.number
        if marked:
            yield None, lines.number


def ngsi_ld_statements(lines: Lines, troubles: Troubles, marked: bool) -> Iterator[Statement]:
    """The statements of each entity; `marked`: `(None, line)` follows each."""
    contexts = _contexts(lines)
    for value in _values(lines, troubles):
        for entity, notification in _states_in_order(value):
            try:
                quads = _entity_quads(entity, notification, contexts, lines)
            except SyntaxError as error:
                troubles.report(explained(error), lines.name, lines.number)
                continue
            except (EventError, InputError, LimitError, ValueError) as error:
                said = error.message if isinstance(error, InputError) else str(error)
                troubles.report(said, lines.name, lines.number)
                continue
            for quad in quads:
                yield quad, lines.number
            if marked:
                yield None, lines.number


def _contexts(lines: Lines) -> Contexts:
    return Contexts({} if lines.options is None else dict(lines.options.contexts))


def _parsed(line: bytes, lines: Lines, contexts: Contexts, troubles: Troubles) -> list[ox.Quad]:
    """The statements of a document on one line; none if it is malformed, which is reported."""
    try:
        text = contexts.inlined(line.decode()).encode()
        quads = list(parse_document(text, JSON_LD, lines.base()))
        if quads or _MEMBER.search(line) is None:
            return quads
        said = _NO_IRIS
    except SyntaxError as error:
        said = explained(error)
    except UnicodeDecodeError:
        said = "not JSON-LD: the line is not UTF-8"
    except LimitError as error:
        said = str(error)
    except InputError as error:
        said = error.message
    except BaseException as error:
        failure = parser_failure(error)
        if failure is None:
            raise
        said = failure
    troubles.report(said, lines.name, lines.number)
    return []


def explained(error: SyntaxError) -> str:
    """The parser's message without its position."""
    said = _PLACE.sub("", parser_message(error))
    if "LoadDocumentCallback" in said:
        said = "its @context is remote, and contexts are never fetched: --context FILE names a copy"
    column = f", column {error.offset}" if error.offset else ""
    return f"not JSON-LD{column}: {said}"


def _values(lines: Lines, troubles: Troubles) -> Iterator[Any]:
    """The JSON values of a file: one on each line, or the whole file is one."""
    first = True
    while line := lines.readline():
        if line.isspace():
            continue
        try:
            yield parse_json(line)
        except ValueError as error:
            if not first:
                troubles.report(f"not NGSI-LD: {error}", lines.name, lines.number)
                continue
            text = line + b"".join(iter(lines.readline, b""))
            try:
                yield parse_json(text)
            except ValueError as another:
                number = getattr(another, "lineno", lines.number)
                troubles.report(f"not NGSI-LD: {another}", lines.name, number)
        first = False


def _entities(value: Any) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The entities of a notification, or of a list, each with its notification."""
    for one in value if isinstance(value, list) else [value]:
        if not isinstance(one, dict):
            yield {"value": one}, {}
        elif one.get("type") == "Notification":
            data = one.get("data", [])
            for entity in data if isinstance(data, list) else [data]:
                yield (entity if isinstance(entity, dict) else {"value": entity}), one
        else:
            yield one, {}


def _states_in_order(value: Any) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The entities of a value, with each state of an entity in temporal representation."""
    found, is_temporal = list[tuple[dict[str, Any], dict[str, Any]]](), False
    for entity, notification in _entities(value):
        try:
            states = _states(entity)
        except EventError:
            states = [entity]  # its one message reports the malformed time
        is_temporal |= len(states) > 1
        found += [(state, notification) for state in states]
    if is_temporal:
        found.sort(key=lambda each: _sort_key(each[0]))
    return found


def _sort_key(entity: dict[str, Any]) -> float:
    """The time of an entity in microseconds; entities without a time come first."""
    try:
        stamp = _latest(entity)
        return float("-inf") if stamp is None else _moment(stamp)
    except EventError:
        return float("-inf")


def _states(entity: dict[str, Any]) -> list[dict[str, Any]]:
    """The states of an entity in temporal representation, one for each time; else the entity.

    An attribute with instances of several times and of one dataset is a history. Attributes without
    a time belong to the last state.

    Raises:
        EventError: for a time that is not one.
    """
    states: dict[int, dict[str, list[Any]]] = {}
    untimed: dict[str, Any] = {}
    is_temporal = False
    for name, attribute in entity.items():
        datasets: dict[str, int] = {}
        for instance in _instances(attribute):
            text = instance.get("observedAt") if isinstance(instance, dict) else None
            if name in _OF_ENTITIES or not isinstance(text, str):
                untimed.setdefault(name, []).append(instance)
                continue
            moment = _moment(text)
            dataset = str(instance.get("datasetId", ""))
            is_temporal |= datasets.setdefault(dataset, moment) != moment
            states.setdefault(moment, {}).setdefault(name, []).append(instance)
    if not is_temporal:
        return [entity]
    own = {name: entity[name] for name in _OF_ENTITIES if name in entity}
    rest = {name: value for name, value in untimed.items() if name not in own}
    last = states[max(states)]
    for name, instances in rest.items():
        last.setdefault(name, []).extend(instances)
    return [
        own | {name: found[0] if len(found) == 1 else found for name, found in states[at].items()}
        for at in sorted(states)
    ]


def _instances(attribute: Any) -> list[Any]:
    """The instances of an attribute, also in the simplified temporal representation."""
    if isinstance(attribute, list):
        return attribute
    if isinstance(attribute, dict):
        for several, one in _TEMPORAL_VALUES.items():
            pairs = attribute.get(several)
            if isinstance(pairs, list) and pairs and all(map(_is_timed_value, pairs)):
                rest = {name: value for name, value in attribute.items() if name != several}
                return [rest | {one: value, "observedAt": at} for value, at in pairs]
    return [attribute]


def _is_timed_value(pair: Any) -> bool:
    return isinstance(pair, list) and len(pair) == 2 and isinstance(pair[1], str)


def _entity_quads(
    entity: dict[str, Any], notification: dict[str, Any], contexts: Contexts, lines: Lines
) -> list[ox.Quad]:
    name = entity.get("id", entity.get("@id"))
    if not isinstance(name, str):
        raise ValueError("not NGSI-LD: an entity without an id")
    own = entity.get("@context", notification.get("@context", contexts.default()))
    others = [] if own is None else own if isinstance(own, list) else [own]
    context = [*contexts.resolved(others), NGSI_LD_CONTEXT]
    text = json.dumps({**entity, "@context": context}).encode()
    quads = list(parse_document(text, JSON_LD, lines.base()))
    stamp = _latest(entity) or notification.get("notifiedAt")
    if isinstance(stamp, str):
        literal = ox.Literal(stamp, datatype=_DATE_TIME)
        quads.append(ox.Quad(ox.NamedNode(name), _PROV_TIME, literal, ox.DefaultGraph()))
    return quads


def _latest(entity: dict[str, Any]) -> str | None:
    """The latest `observedAt` of the attributes of an entity."""
    found: dict[str, int] = {}
    for attribute in entity.values():
        for instance in attribute if isinstance(attribute, list) else [attribute]:
            text = instance.get("observedAt") if isinstance(instance, dict) else None
            if isinstance(text, str) and text not in found:
                found[text] = _moment(text)
    return max(found, key=lambda text: found[text], default=None)


def _moment(text: str) -> int:
    """A time in microseconds.

    Raises:
        EventError: for a text that is not a time.
    """
    return time.from_literal(ox.Literal(text, datatype=_DATE_TIME), precision="truncate").micros
