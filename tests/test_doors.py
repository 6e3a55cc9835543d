"""Every door gives the same results: command line, push, live and served runs, and resumed ones.

Events arrive in any order, late, exactly at the watermark, in pieces; streams fall silent and end
early, promise times; runs are saved, stopped, killed and resumed (`arrivals`). What a door accepts
is compared with `arrivals.Time`, its results with the reference, and after each step the number of
results with the time that has passed.

`SPASEQ_EXAMPLES` is 3 times the number of cases (default 150), `SPASEQ_SEED` the first seed.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from itertools import groupby
from operator import methodcaller
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest
from arrivals import (
    Action,
    Arrivals,
    Arrive,
    Checkpoint,
    End,
    Promise,
    Restart,
    Silence,
    Time,
    drawn_arrivals,
    n_quads,
)
from bounds import bounded
from choosing import skip_to
from combined import combined
from deadlines import timed
from driven_server import DrivenServer
from driven_session import DrivenSession
from json_matches import comparable_lines
from oracle import Reference, comparable, difference
from strategies import Case, plain_case, random_case

import spaseq
from spaseq.cli import main
from spaseq.errors import EventError
from spaseq.parser import parse
from spaseq.rdf.event import DATE_TIME, NUMBER, Event, n_triples
from spaseq.rdf.time import from_micros
from spaseq.runs import Run

EXAMPLES = int(os.environ.get("SPASEQ_EXAMPLES", "150")) // 3
SEED = int(os.environ.get("SPASEQ_SEED", "0"))
CHUNK = 10
FAMILIES: Sequence[Callable[[int], Case | None]] = (
    random_case, timed, bounded, skip_to, plain_case, random_case, combined,
)  # fmt: skip
STRANGER = """SELECT ?x WITHIN 10 SECONDS FROM STREAM Z <urn:stranger>
WHERE { SEQ(A) DEFINE GPM A ON Z { ?x ?y ?z } }"""
"""A query that shares no stream with any other."""
Results = list[tuple[Any, ...]]


def drawn(seed: int) -> Arrivals:
    """The arrivals of a seed, of a case of one of the families."""
    case = FAMILIES[seed % len(FAMILIES)](seed)
    return drawn_arrivals(case or random_case(seed), seed)


@dataclass
class Outcome:
    """What a door did.

    Args:
        time: The time of its streams.
        results: Its results, comparable.
        counts: After steps, the number of results, and the time that has passed.
        late: The number of late events; None: the door does not count them.
    """

    time: Time
    results: Results
    counts: list[tuple[int, int | None]] = field(default_factory=list)
    late: int | None = None
    marked: Results | None = None
    """The results that only the end of a stream closed; None: the door cannot tell."""


def _of_lines(time: Time, lines: Sequence[Mapping[str, Any]], *more: Any, **named: Any) -> Outcome:
    """The outcome with results in JSON."""
    marked = comparable_lines(line for line in lines if line.get("closedByEnd"))
    return Outcome(time, comparable_lines(lines), *more, **{"marked": marked, **named})


class Doors:
    """The doors, for some arrivals."""

    def __init__(self, arrivals: Arrivals, folder: Path, seed: int):
        self.arrivals = arrivals
        self._folder = folder
        self._chance = random.Random(seed)
        self._references: dict[str, Reference] = {}

    @cached_property
    def program(self) -> spaseq.Program:
        return spaseq.compile(self.arrivals.case.query, names=["q"])

    @cached_property
    def kb(self) -> dict[str, list[ox.Triple]]:
        return {
            graph: [ox.Triple(*fact) for fact in facts]  # type: ignore[arg-type]
            for graph, facts in self.arrivals.case.kb.items()
        }

    def time(self, actions: Sequence[Action] | None = None) -> Time:
        """The time after some actions; None: all."""
        found = Time(len(self.arrivals.iris), self.arrivals.lateness)
        for action in self.arrivals.actions if actions is None else actions:
            found.take(action)
        return found

    def objection(self, outcome: Outcome) -> str:
        """What is wrong with an outcome; "" if nothing is."""
        accepted = self.arrivals.accepted(outcome.time)
        key = outcome.time.key
        if key not in self._references:
            case = self.arrivals.case
            self._references[key] = Reference(parse(case.query), accepted.streams, case.kb)
        wrong = self._references[key].objection(outcome.results)
        if wrong:
            return wrong
        if outcome.late is not None and outcome.late != len(outcome.time.late):
            return f"{outcome.late} events are late, not {len(outcome.time.late)}"
        ends = [end for _, _, end, *_ in outcome.results]
        for step, (count, closed) in enumerate(outcome.counts):
            least = sum(closed is not None and end < closed for end in ends)
            most = sum(closed is not None and end <= closed for end in ends)
            if not least <= count <= most:
                return f"step {step}: {count} results at {closed}, not {least} to {most}"
        return ""

    # ------------------------------------------------------------ doors

    def command_line(self) -> Outcome:
        """Files in, JSON lines out."""
        arrivals = self.arrivals
        time = self.time()
        gone = time.late - self._late_alone
        (self._folder / "q.rq").write_text(arrivals.case.query, encoding="utf-8")
        command = ["run", str(self._folder / "q.rq"), "--format", "jsonl"]
        for number, iri in enumerate(arrivals.iris):
            path = self._folder / f"{number}.nq"
            events = [one for one in arrivals.arrived(number) if (number, one[0]) not in gone]
            path.write_text("".join(n_quads(*one) for one in events), encoding="utf-8")
            command += ["--stream", f"{iri}={path}"]
        for number, (iri, facts) in enumerate(arrivals.case.kb.items()):
            path = self._folder / f"kb{number}.nt"
            path.write_text("".join(f"{s} {p} {n_triples(o)} .\n" for s, p, o in facts), "utf-8")
            command += ["--kb", f"{iri}={path}"]
        if arrivals.lateness is not None:
            command += ["--lateness", f"{arrivals.lateness}us"]
        output = self._folder / "found.jsonl"
        assert main([*command, "--output", str(output)]) == 0
        lines = output.read_text(encoding="utf-8").splitlines()
        found = [json.loads(line, parse_float=Decimal) for line in lines]
        return _of_lines(time, found, **({"marked": None} if self._is_silent else {}))

    def python(self) -> Outcome:
        """Iterables of events in the order of their arrival."""
        time = self.time()
        gone = time.late - self._late_alone
        streams: dict[str, Any] = {
            iri: [
                (event.time.term, list(map(_triple, event.facts)))
                for place, event in self.arrivals.arrived(number)
                if (number, place) not in gone
            ]
            for number, iri in enumerate(self.arrivals.iris)
        }
        late = self.arrivals.lateness
        lateness = None if late is None else late / 1e6
        matches = list(spaseq.run(self.program, streams, kb=self.kb, lateness=lateness))
        marked = comparable(match for match in matches if match.closed_by_end)
        return Outcome(time, comparable(matches), marked=None if self._is_silent else marked)

    @cached_property
    def _late_alone(self) -> set[tuple[int, int]]:
        """The events that are late by the lateness alone: files know no silence or watermark.

        What these make late does not come to the doors for files.
        """
        return self.time([one for one in self.arrivals.actions if isinstance(one, Arrive)]).late

    @cached_property
    def _is_silent(self) -> bool:
        """Whether a stream was silent, perhaps before it ended, which no file tells."""
        return any(isinstance(action, Silence) for action in self.arrivals.actions)

    def pushed(self) -> Outcome:
        """`Run.push` and `push_batch`, `advance`, `save` and `resume`."""
        chance, time = self._chance, self.time()
        case = self.arrivals.accepted(time)
        events = list(_ordered(case, chance))
        lasts = {iri: max((e.time.micros for e in some), default=None)
                 for iri, some in case.streams.items()}  # fmt: skip
        run = self.program.start(kb=self.kb)
        found: list[Any] = []
        counts: list[tuple[int, int | None]] = []
        while events:
            count = min(chance.choice((1, 1, 2, 3)), len(events))
            self._end(run, lasts, events[count - 1].time.micros)
            if count == 1 and chance.random() < 0.5:
                event = events[0]
                found += run.push(event.stream, event.time.term, list(map(_triple, event.facts)))
            else:
                found += run.push_batch(events[:count])
            before, events = events[count - 1], events[count:]
            if events and chance.random() < 0.4:
                self._end(run, lasts, events[0].time.micros)
                found += self._advanced(run, before, events[0])
                counts.append((len(found), run.clock.closed))
            if chance.random() < 0.2:
                run = self.program.resume(run.save(), kb=self.kb)
        found += run.finish()
        marked = comparable(match for match in found if match.closed_by_end)
        marked_by_files = None if self._is_silent else marked
        return Outcome(time, comparable(found), counts, marked=marked_by_files)

    def _end(self, run: Run, lasts: dict[str, int | None], micros: int) -> None:
        """Tell the run which streams have ended before a time."""
        for iri, last in list(lasts.items()):
            if len(self.arrivals.iris) > 1 and (last is None or last < micros):
                run.end_stream(iri, last)
                del lasts[iri]

    def _advanced(self, run: Run, before: Event, after: Event) -> list[Any]:
        """Advance to at most the next event; nothing before may come then."""
        low, high = before.time.micros, after.time.micros
        micros = self._chance.choice((high, low, (low + high) // 2, high))
        found = run.advance(from_micros(micros, before.time.domain).term)
        early = from_micros(micros - 1, before.time.domain)
        with pytest.raises(EventError):
            run.push(before.stream, early.term, [])
        return found

    def live(self, resumes: bool) -> Outcome:
        """Growing documents; `resumes`: with the stops and kills of the arrivals."""
        arrivals = self.arrivals
        folder = self._folder / f"live{int(resumes)}"
        folder.mkdir()
        session = DrivenSession(
            self.program, folder, lateness=arrivals.lateness, keeps=resumes, kb=self.kb
        )
        numbers = [session.iris.index(iri) for iri in arrivals.iris]
        time = self.time([])
        counts: list[tuple[int, int | None]] = []
        silent = self._is_silent

        def count(driven: DrivenSession) -> None:
            counts.append((driven.written, time.closed))

        def steps(actions: Sequence[Action], starts: bool) -> Iterator[Any]:
            if starts:
                time.speak()
                while session.unread:
                    yield methodcaller("read_on", self._chance.choice(session.unread))
                for number, stream in enumerate(session.streams):
                    if not stream.ended:
                        yield methodcaller("quiet", number)
                yield count
            for action in actions:
                if not isinstance(action, Promise):
                    time.take(action)
                match action:
                    case Arrive(stream):
                        # The timestamp of an event may come in front of it, so silence alone
                        # does not complete an event without triples.
                        ends = not action.events[-1][1].facts or self._chance.random() < 0.5
                        number = numbers[stream]
                        yield methodcaller("arrive", number, action.text(), ends)
                        if not ends:
                            yield methodcaller("quiet", number)
                    case Silence(stream):
                        yield methodcaller("idle", numbers[stream])
                    case End(stream):
                        yield methodcaller("end", numbers[stream])
                    case Checkpoint() if resumes:
                        yield methodcaller("checkpoint")
                    case Restart(kills) if kills and resumes and not silent:
                        yield methodcaller("crash")
                    case _:
                        continue
                if session.is_open:
                    yield count

        parts = _between_restarts(arrivals.actions) if resumes else [arrivals.actions]
        for number, part in enumerate(parts):
            cuts = [self._chance.random() for _ in range(self._chance.choice((0, 1, 3)))]
            if number and self._chance.random() < 0.5:
                # It stops again before all is read that had been read before.
                session.go(self._some_pieces(session), cuts)
            session.go(steps(part, number > 0), cuts)
        marked = {"marked": None} if silent else {}
        kills = resumes and any(isinstance(one, Restart) and one.kills for one in arrivals.actions)
        late = None if kills else len(session.late_events)  # the file is not cut back
        return _of_lines(time, session.matches, counts, late, **marked)

    def _some_pieces(self, session: DrivenSession) -> Iterator[Any]:
        while session.unread and self._chance.random() < 0.7:
            yield methodcaller("read_on", self._chance.choice(session.unread))
        if self._chance.random() < 0.5:
            yield methodcaller("checkpoint")
            yield methodcaller("crash")

    def served(self, resumes: bool) -> Outcome:
        """Pushed bodies; `resumes`: with the stops and kills of the arrivals."""
        arrivals, time = self.arrivals, self.time([])
        folder = self._folder / f"served{int(resumes)}"
        server = DrivenServer(folder, lateness=arrivals.lateness or 0, durable=resumes)
        counts: list[tuple[int, int | None]] = []
        late = 0
        try:
            for iri, facts in arrivals.case.kb.items():
                lines = "".join(f"{s} {p} {n_triples(o)} .\n" for s, p, o in facts)
                server.put_kb(iri, lines.encode())
            server.put_query("q", arrivals.case.query)
            server.put_query("stranger", STRANGER)
            for done in arrivals.actions:
                # To the server, a client that has ended is silent.
                action = Silence(done.stream) if isinstance(done, End) else done
                time.take(action)
                match action:
                    case Arrive(stream):
                        taken = server.push(arrivals.iris[stream], action.text())
                        late += len(taken.late)
                    case Promise(stream, micros):
                        server.watermark(arrivals.iris[stream], self._json_time(micros))
                    case Silence(stream):
                        server.idle(arrivals.iris[stream])
                    case Checkpoint() if resumes:
                        server.checkpoint()
                    case Restart(kills) if resumes:
                        if kills:
                            server.crash()
                        else:
                            server.restart()
                    case _:
                        continue
                if self._chance.random() < 0.1:
                    server.push("urn:stranger", self._strange_event())
                counts.append((server.count("q"), time.closed))
            for iri in arrivals.iris:
                server.watermark(iri, self._far)
            lines = server.lines("q")
            assert not any(line.get("closedByEnd") for line in lines), "a server never ends"
            return _of_lines(time, lines, counts, late, marked=None)
        finally:
            server.close()

    def _strange_event(self) -> bytes:
        """An event of a stream that nothing connects with the others, of any time."""
        micros = self._chance.choice((-(10**12), 0, 10**17))
        domain = NUMBER if self._is_dated else DATE_TIME
        name = f"urn:{self._chance.random()}"
        return n_quads(0, Event(name, from_micros(micros, domain), 0, [])).encode()

    @property
    def _is_dated(self) -> bool:
        times = [event.time for events in self.arrivals.case.streams.values() for event in events]
        return bool(times) and times[0].domain == DATE_TIME

    @property
    def _far(self) -> int | str:
        return "9999-12-31T00:00:00Z" if self._is_dated else 10**12

    def _json_time(self, micros: int) -> Any:
        if self._is_dated:
            return from_micros(micros, DATE_TIME).term.value
        return micros / 1e6


def _triple(fact: Any) -> ox.Triple:
    return ox.Triple(*fact)


def _ordered(case: Case, chance: random.Random) -> Iterator[Event]:
    """The events in order; those of different streams at one time in any order."""
    events = sorted(case.merged, key=lambda event: event.time.micros)
    for _, group in groupby(events, key=lambda event: event.time.micros):
        simultaneous = list(group)
        lots = {stream: chance.random() for stream in case.streams}
        yield from sorted(simultaneous, key=lambda event: (lots[event.stream], event.ordinal))


def _between_restarts(actions: Sequence[Action]) -> list[list[Action]]:
    """The actions in parts, each of which a restart ends."""
    parts: list[list[Action]] = [[]]
    for action in actions:
        parts[-1].append(action)
        if isinstance(action, Restart):
            parts.append([])
    return parts


# ------------------------------------------------------------------ open ends


def open_ends(seed: int, folder: Path) -> str:
    """What is wrong with a live run whose streams end and later go on; "" if nothing is."""
    folder.mkdir()
    arrivals = drawn(seed)
    doors = Doors(arrivals, folder, seed)
    chance = random.Random(seed)
    texts = [action for action in arrivals.actions if isinstance(action, Arrive)]
    cut = chance.randrange(len(texts) + 1)
    before = doors.time(texts[:cut])
    for one in texts[cut:]:
        greatest = before.streams[one.stream].greatest
        if greatest is not None and any(e.time.micros < greatest for _, e in one.events):
            return ""  # the end of a stream ends the waiting for late events
    session = DrivenSession(
        doors.program, folder, lateness=arrivals.lateness, keeps=True, close=False, kb=doors.kb
    )
    numbers = [session.iris.index(iri) for iri in arrivals.iris]
    for part in (texts[:cut], texts[cut:]):
        for stream in session.streams:
            stream.ended = False
        arrive = [methodcaller("arrive", numbers[one.stream], one.text(), True) for one in part]
        session.go([*arrive, *(methodcaller("end", number) for number in numbers)])
    time = doors.time(texts)
    accepted = doors.arrivals.accepted(time).streams
    streams: Any = {iri: iter(events) for iri, events in accepted.items()}
    wanted = comparable(spaseq.run(doors.program, streams, kb=doors.kb, at_end="open"))
    wrong = difference(wanted, comparable_lines(session.matches))
    return "\n".join([f"seed {seed}", wrong, repr(arrivals), repr(arrivals.case)]) if wrong else ""


def test_an_open_end_loses_nothing(tmp_path: Path) -> None:
    for seed in range(SEED, SEED + EXAMPLES):
        found = open_ends(seed, tmp_path / str(seed))
        assert not found, found


# ------------------------------------------------------------------ all of them


DOORS: dict[str, Callable[[Doors], Outcome]] = {
    "command line": lambda doors: doors.command_line(),
    "python": lambda doors: doors.python(),
    "push": lambda doors: doors.pushed(),
    "live": lambda doors: doors.live(False),
    "served": lambda doors: doors.served(False),
    "live, resumed": lambda doors: doors.live(True),
    "served, resumed": lambda doors: doors.served(True),
}


def objections(seed: int, folder: Path) -> str:
    """What is wrong with the doors for a seed; "" if nothing is."""
    folder.mkdir()
    arrivals = drawn(seed)
    doors = Doors(arrivals, folder, seed)
    outcomes = {name: go(doors) for name, go in DOORS.items()}
    wrong = [
        f"{name}: {found}"
        for name, outcome in outcomes.items()
        if (found := doors.objection(outcome))
    ]
    marks: dict[str, set[str]] = {}
    for outcome in outcomes.values():
        if outcome.marked is not None:
            marks.setdefault(outcome.time.key, set()).add(str(outcome.marked))
    wrong += [f"closed by the end: {found}" for found in marks.values() if len(found) > 1]
    return (
        "\n".join(["", f"seed {seed}", *wrong, repr(arrivals), repr(arrivals.case)])
        if wrong
        else ""
    )


@pytest.mark.parametrize("first", range(SEED, SEED + EXAMPLES, CHUNK))
def test_every_door_gives_the_same_results(first: int, tmp_path: Path) -> None:
    for seed in range(first, min(first + CHUNK, SEED + EXAMPLES)):
        found = objections(seed, tmp_path / str(seed))
        assert not found, found
