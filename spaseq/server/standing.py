"""A query of the server: its definition, as JSON and compiled, and its status."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, field
from hashlib import sha256
from typing import Any

import pyoxigraph as ox

from spaseq.engine.checkpoint import without_collection
from spaseq.parser import ast
from spaseq.program import Program, compile_each
from spaseq.rdf.event import Parameter
from spaseq.records import dataclass
from spaseq.server.problems import Problem
from spaseq.server.run_options import RunOptions, RunSettings, checked_entailment, checked_limits
from spaseq.server.urls import AllowedUrls

NAME = re.compile(r"[A-Za-z0-9_.~-]{1,128}")
_VARIABLE = re.compile(r"[?$]?[A-Za-z_][A-Za-z0-9_]{0,127}")
_KEYS = ("text", "kb", "bind", "entail", "limits", "sinks", "paused")


@dataclass(frozen=True, slots=True)
class Definition:
    """A standing query as a client defined it.

    Args:
        name: Its name in URLs and matches.
        text: The query.
        bind: Variable → plain JSON value, or a term as in SPARQL JSON results.
        kb: IRI of a KB graph → URL of the endpoint that is queried for it.
        paused: Whether it currently sees no events.
        folder: Whether it comes from a file of the folder that the server watches.
        sinks: The names of the sinks that its matches go to.
        entail: Its entailment regime, or `none`; None: that of the server.
        limits: Name of a limit of `Program.start` → its value; the others are those of the server.
    """

    name: str
    text: str
    bind: Mapping[str, Any] = field(default_factory=dict)
    kb: Mapping[str, str] = field(default_factory=dict)
    paused: bool = False
    folder: bool = False
    sinks: Sequence[str] = field(default_factory=list)
    entail: str | None = None
    limits: Mapping[str, Any] = field(default_factory=dict)

    @property
    def etag(self) -> str:
        """A strong entity tag: equal iff everything that a client can set is equal."""
        text = json.dumps(self.to_dict(), sort_keys=True, ensure_ascii=False)
        return f'"{sha256(text.encode()).hexdigest()[:32]}"'

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Definition:
        """A definition of the journal or a checkpoint."""
        return Definition(**data)

    def terms(self) -> dict[str, Parameter]:
        """The bound variables as terms."""
        return {name.lstrip("?$"): term_of(name, value) for name, value in self.bind.items()}

    def compile(self) -> Program:
        """The program of this query alone.

        Raises:
            QueryError, SpaseqError: if it does not compile.
            Problem: for a value that is not a term.
        """
        return compile_all([self])


@dataclass(frozen=True, slots=True)
class Standing:
    """A query of the server.

    Args:
        definition: The client's definition.
        revision: The record of the journal that made it.
        streams: Name in the query → IRI of the streams that it reads.
        born: The record that registered it; its later versions have the same one.
        options: Those of its run.
        failure: The error that took it out of the run; empty: none.
        draining: Its name in the run while it finishes its partial matches and begins no others;
            empty: it does not drain.
        until: When it must have drained, in seconds since 1970; None: at any time.
        run: The serial number of its run; -1 if it has never had one.
        registers: The IRI of the stream that it registers, if any.
    """

    definition: Definition
    revision: int
    streams: Mapping[str, str]
    born: int
    options: RunOptions
    failure: str = ""
    draining: str = ""
    until: float | None = None
    run: int = -1
    registers: str | None = None

    @property
    def is_running(self) -> bool:
        return not self.definition.paused and not self.failure

    @property
    def status(self) -> str:
        if self.failure:
            return "failed"
        if self.draining:
            return "draining"
        return "paused" if self.definition.paused else "running"

    @property
    def name_in_run(self) -> str:
        """Its name in its run."""
        return self.draining or self.definition.name

    @property
    def connects(self) -> set[str]:
        """The IRIs of the streams that it reads or registers."""
        return {*self.streams.values(), *([] if self.registers is None else [self.registers])}

    @property
    def etag(self) -> str:
        return self.definition.etag

    def state(self) -> list[Any]:
        """The query as data for `restored`."""
        return [
            self.definition.to_dict(),
            self.revision,
            dict(self.streams),
            self.born,
            self.options.to_list(),
            self.failure,
            self.draining,
            self.until,
            self.run,
            self.registers,
        ]

    @staticmethod
    def restored(data: Sequence[Any]) -> Standing:
        """The query that `state` returned."""
        definition, revision, streams, born, options, *rest = data
        return Standing(
            Definition.from_dict(definition), revision, streams, born,
            RunOptions.of_list(options), *rest,
        )  # fmt: skip


def compile_all(definitions: Iterable[Definition]) -> Program:
    """One program of several queries, in order."""
    return compile_named((one.name, one) for one in definitions)


def compile_named(definitions: Iterable[tuple[str, Definition]]) -> Program:
    """As `compile_all`, with the name of each query in the run; one that drains has another one."""
    listed = list(definitions)
    shown = {name: one.name for name, one in listed if name != one.name}
    # Collections would visit the many objects of earlier queries, and find nothing.
    with without_collection():
        return compile_each([(name, one.text, one.terms()) for name, one in listed], shown)


def check_name(name: str) -> str:
    """The name of a query, which is a part of URLs.

    Raises:
        Problem: for a name with other characters, or too long.
    """
    if not NAME.fullmatch(name) or name in (".", ".."):
        raise Problem(422, "a name has 1 to 128 of the characters A-Z a-z 0-9 _ . ~ -", "name")
    return name


def definition_of(
    name: str,
    data: Any,
    urls: AllowedUrls,
    settings: RunSettings,
    known_sinks: Collection[str] = (),
) -> Definition:
    """The definition in the JSON body of a PUT.

    Args:
        name: The name of the query.
        data: The body.
        urls: Checks the URLs in it.
        settings: What holds for all queries.
        known_sinks: The names of the sinks that the operator has declared.

    Raises:
        Problem: if it is not as it should be.
    """
    if not isinstance(data, dict):
        raise Problem(422, "the body is a JSON object, or the text of a query", "definition")
    unknown = data.keys() - {*_KEYS, "state"}
    if unknown:
        raise Problem(
            422, f"there is no member {min(unknown)} (known are {', '.join(_KEYS)})", "definition"
        )
    text = data.get("text")
    if not isinstance(text, str):
        raise Problem(422, "text: the query, a string, is missing", "definition")
    sinks = data.get("sinks") or []
    _check(
        isinstance(sinks, list) and all(isinstance(one, str) for one in sinks),
        "sinks: a list of names that --sink declares",
    )
    unknown_sinks = set(sinks) - set(known_sinks)
    if unknown_sinks:
        raise Problem(
            422, f"there is no sink {min(unknown_sinks)!r}: the operator declares sinks by --sink",
            "sinks", known=sorted(known_sinks),
        )  # fmt: skip
    kb = data.get("kb") or {}
    _check(
        isinstance(kb, dict) and all(isinstance(v, str) for v in kb.values()),
        "kb: an object whose keys are IRIs of graphs and whose values are URLs",
    )
    for url in kb.values():
        urls.check(url)
    paused = data.get("paused", False)
    _check(isinstance(paused, bool), "paused: true or false")
    return Definition(
        name,
        text,
        bindings_of(data.get("bind")),
        kb,
        paused,
        sinks=list(dict.fromkeys(sinks)),
        entail=checked_entailment(data.get("entail")),
        limits=checked_limits(data.get("limits"), settings),
    )


def bindings_of(data: Any) -> dict[str, Any]:
    """Checked values of variables."""
    if data is None:
        return {}
    _check(isinstance(data, dict), "bind: an object whose keys are variables")
    for name, value in data.items():
        _check(_VARIABLE.fullmatch(name) is not None, f"bind: {name!r} is not a variable")
        term_of(name, value)
    return {name.lstrip("?$"): value for name, value in data.items()}


def _check(holds: bool, message: str) -> None:
    if not holds:
        raise Problem(422, message, "definition")


def term_of(name: str, value: Any) -> Any:
    """A plain JSON value, or a term as in SPARQL JSON results, as a value of `Program.bind`.

    Raises:
        Problem: for anything else.
    """
    if isinstance(value, bool | int | float | str):
        return value
    try:
        if value["type"] == "uri":
            return ox.NamedNode(value["value"])
        if value["type"] in ("literal", "typed-literal"):
            datatype = value.get("datatype")
            return ox.Literal(
                value["value"],
                datatype=None if datatype is None else ox.NamedNode(datatype),
                language=value.get("xml:lang"),
            )
    except (TypeError, KeyError, ValueError, AttributeError):
        pass
    raise Problem(
        422,
        f"bind: {name}: a number, a string, true, false, or a term such as "
        '{"type": "uri", "value": "http://example.org/a"}',
        "definition",
    )


def refused_by(program: Program, definition: Definition) -> str | None:
    """Why the server cannot run a program that compiles; None if it can."""
    shown = [query.plan.name for query in program.queries]
    if shown != [definition.name]:
        return f"the query registers the name {shown[0]}: use it in the URL as well"
    return None


def checked_services(program: Program, urls: AllowedUrls) -> None:
    """Check the endpoints that a query uses.

    Raises:
        Problem: if one is not in the allow-list, or is known only at run time.
    """
    for name in _service_names(program):
        if not isinstance(name, ast.Iri):
            raise Problem(422, "SERVICE with a variable: name the endpoint", "url")
        urls.check(name.value)


def services_of(program: Program) -> list[str]:
    """The endpoints that queries use by `SERVICE`."""
    return [name.value for name in _service_names(program) if isinstance(name, ast.Iri)]


def _service_names(program: Program) -> list[ast.Iri | ast.Var]:
    nodes = ast.walk(tuple(program.sources))
    return [node.name for node in nodes if isinstance(node, ast.Service)]
