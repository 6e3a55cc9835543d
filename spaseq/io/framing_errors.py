"""Messages about malformed events, and other work that the compiled reader leaves to Python.

spaseq/rdf/native/framing/framing.pxi builds the events. It calls a `Questions` object for the
wording of errors, the clock, and timestamps of unusual form. Every error is reported to
`Troubles.report`, which raises, or counts it and returns, and then the reader continues.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

import pyoxigraph as ox

from spaseq.errors import EventError, input_place
from spaseq.io.read_options import ReadOptions, TimeDomain, Troubles
from spaseq.io.statements import Malformed, RawTerm
from spaseq.io.time_path import GENERATED_AT
from spaseq.rdf import time
from spaseq.rdf.event import DATE_TIME, NUMBER, Term, Timestamp, n_triples

_BEGUN = re.compile(rb"\s*(<[^>]*>|_:\S+)\s+(<\S*)")
"""The beginning of a statement: its subject, and the beginning of its predicate."""

Stamp: TypeAlias = tuple[RawTerm, int]
"""The object of a timestamp triple, and the line of the triple."""

_DOMAINS = (NUMBER, DATE_TIME)
_TOGETHER = (
    "; the statements of a graph and its timestamp must be consecutive (--events dataset reads all "
    "files first and collects graphs wherever they are)"
)
_CONSECUTIVE = "; the statements of a subject and its blank nodes must be consecutive"
_MESSAGES_HINT = (
    '; such a file begins with VERSION "1.1-messages", or is read with --events message'
)


class Questions:
    """Answers about the events of one source; `file` is the file that is being read."""

    def __init__(self, options: ReadOptions, domain: TimeDomain, troubles: Troubles):
        self.file = ""
        self._options = options
        self._domain = domain
        self._troubles = troubles
        self.given: int | None = None
        """The time that a channel gives to the message being read, in microseconds."""
        self.times: Iterator[int] | None = None
        """The times that a channel gives to several messages, one event each."""
        self._line: int | None = None
        self._clock: int | None = None
        self._parsed: tuple[RawTerm, Timestamp] | None = None  # consecutive stamps are often equal

    def at(self, file: str, line: int | None) -> None:
        """Report all errors at a line of a file; None: at the line of each error."""
        self.file = file
        self._line = line

    def report(self, message: str, line: int) -> None:
        self._troubles.report(message, self.file, line if self._line is None else self._line)

    # ------------------------------------------------------------ framings

    def closed_graph(self, name: Term, begun: tuple[str, int], line: int) -> None:
        if self._options.framing.kind == "subject":
            what, together = f"a statement of the subject {name}", _CONSECUTIVE
        else:
            what, together = f"a quad of the graph {name}", _TOGETHER
        self.report(f"{what}{self._complete(begun)}{together}", line)

    def closed_time(self, name: Term, begun: tuple[str, int], line: int) -> None:
        again = " (--reuse-graph-names: a name that occurs again with a time is another event)"
        self.report(f"a timestamp of {name}{self._complete(begun)}{_TOGETHER}{again}", line)

    def _complete(self, begun: tuple[str, int]) -> str:
        """The part of a message that says why a graph is complete, and where it began."""
        file, line = begun
        place = input_place(file, line, self._troubles.unit)
        where = place if file != self.file else f"{self._troubles.unit} {line}"
        return f", which began at {where} and is already complete"

    def untimed_graph(self, name: Term, about_inside: bool, line: int) -> None:
        """`about_inside`: whether a fact of the graph has the predicate of timestamps."""
        kind = self._options.framing.kind
        if kind in ("subject", "member") or self._options.time_steps():
            what = kind if kind in ("subject", "member") else "graph"
            named = " or ".join(f"<{iri}>" for iri in self._options.time_predicates())
            text = (
                f"the {what} {name} has no timestamp: no {named or self._path()} among its triples"
            )
            self.report(text + ("" if what != "graph" or kind == "dataset" else _TOGETHER), line)
            return
        about = f"<{self._options.time_predicate or GENERATED_AT}>"
        text = f"the graph {name} has no timestamp: no triple <graph> {about} <time>"
        if kind == "dataset":
            text += " in the default graph"
            if self._options.time_predicate is not None:
                text += ", and none inside the graph"
            elif about_inside:
                text += f"; there is one inside the graph: --time-predicate {GENERATED_AT} finds it"
        elif self._options.time_predicate is not None:
            text += (
                f" in the default graph beside it, and none among its statements here{_TOGETHER}"
            )
        elif about_inside:
            text += (
                " in the default graph beside it; there is one inside the graph: "
                f"--time-predicate {GENERATED_AT} finds it"
            )
        else:
            text += (
                " immediately before its first quad or after its last "
                "(--time-predicate names another one, --arrival-time uses the clock, "
                "--events dataset collects graphs and timestamps wherever they are)"
            )
        self.report(text, line)

    def untimed_message(self, line: int) -> None:
        named = " or ".join(f"<{iri}>" for iri in self._options.time_predicates())
        self.report(f"a message without a timestamp: no {named or self._path()} in it", line)

    def untimed_triples(self, size: int, line: int) -> None:
        named = "".join(f"<{iri}>" for iri in self._options.named_predicate())
        self.report(f"{size} triples without a timestamp ({named or self._path()})", line)

    def _path(self) -> str:
        """The path to the timestamp, for messages."""
        steps = self._options.time_steps()
        return "/".join(f"{'^' if inverse else ''}<{iri}>" for iri, inverse in steps)

    def delimiter_among_graphs(self, line: int) -> None:
        self.report(f"a message delimiter among named graphs{_MESSAGES_HINT}", line)

    def among_triples(self, what: str, line: int) -> None:
        self.report(f"{what} among the triples of --events triples:N", line)

    def incomplete(self, count: int, size: int, line: int) -> None:
        self.report(f"the last event is incomplete: {count} of its {size} triples", line)

    def no_event(self, line: int) -> None:
        if self._options.framing.kind == "member":
            self.report("no event in this file: it has no tree:member", line)
            return
        self.report(
            "no event in this file: it has no named graphs; --events subject, --events message or "
            "--events triples:N cut triples into events",
            line,
        )

    def is_whole_before(self, name: Term | None, malformed: Malformed) -> bool:
        """Whether the open graph `name` is complete even though a line after it is malformed."""
        if name is None:
            return False
        own = str(name).encode()
        begun = _BEGUN.match(malformed.text)
        if begun is not None:
            # Of an unfinished statement, only the timestamp of another event shows its graph.
            predicate = begun[2].rstrip(b">")
            about = f"<{self._options.time_predicate or GENERATED_AT}>".encode()
            known = len(predicate) > len("<http://")
            return begun[1] != own and known and about.startswith(predicate)
        # A truncated file may end anywhere in its last event.
        return not malformed.last and own not in malformed.following

    # ------------------------------------------------------------ times

    def now(self) -> int:
        """The time of the clock, never before the time returned last; or the given time."""
        if self.times is not None:
            return next(self.times)
        if self.given is not None:
            return self.given
        now = self._options.clock()
        self._clock = now if self._clock is None else max(now, self._clock)
        return time.from_micros(self._clock, DATE_TIME).micros

    def time(self, stamps: list[Stamp]) -> tuple[int, int] | None:
        """The time that all stamps agree on, and whether it is a date; None if there is none."""
        found: Timestamp | None = None
        for term, line in stamps:
            try:
                other = self._parse(term)
            except EventError as error:
                self.report(str(error), line)
                return None
            if found is not None and (other.micros, other.domain) != (found.micros, found.domain):
                self.report(f"an event with two timestamps: {found.term} and {other.term}", line)
                return None
            found = other
        assert found is not None
        return found.micros, _DOMAINS.index(found.domain)

    def _parse(self, term: RawTerm) -> Timestamp:
        if self._parsed is None or self._parsed[0] != term:
            if not isinstance(term, ox.Literal):
                raise EventError(f"{n_triples(term)} is not a timestamp: it is not a literal")
            self._parsed = (term, self._read(term))
        return self._parsed[1]

    def _read(self, term: ox.Literal) -> Timestamp:
        return time.from_literal(term, self._options.unit, self._options.time_precision)

    def known_domain(self) -> int:
        """The domain of the run's times: 0 for numbers, 1 for dates, -1 before the first event."""
        return _DOMAINS.index(self._domain.kind) if self._domain.kind else -1

    def is_usable(self, domain: int, line: int) -> bool:
        """Whether an event with a time of this domain is valid."""
        place = input_place(self.file, line, self._troubles.unit)
        conflict = self._domain.conflict(_DOMAINS[domain], place)
        if conflict:
            self.report(conflict, line)
        return not conflict

    def backwards(
        self,
        stamp: ox.Literal | None,
        micros: int,
        last_stamp: ox.Literal | None,
        last_micros: int,
        domain: int,
        line: int,
    ) -> None:
        """Report a time before the last one."""
        now = _shown(stamp, micros, domain)
        last = _shown(last_stamp, last_micros, domain)
        self.report(
            f"time runs backwards: {now} after {last} in the same stream "
            "(--lateness DURATION reorders late events)",
            line,
        )


def _shown(stamp: ox.Literal | None, micros: int, domain: int) -> str:
    """A time as `AT` returns it: a number as it was written, a date in canonical form."""
    if stamp is not None and _DOMAINS[domain] == NUMBER:
        return stamp.value
    return time.from_micros(micros, _DOMAINS[domain]).term.value
