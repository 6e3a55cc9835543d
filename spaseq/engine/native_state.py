"""The state of a compiled automaton ↔ that of an `AutomatonRun`.

How it is saved, resumed, counted and explained: all of which know the Python form only.
Shared structure stays shared; what the window has passed over is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from spaseq.engine.native_parts import Reading, Writing
from spaseq.engine.native_run import NativeRun
from spaseq.nfa.buffer import Entry
from spaseq.nfa.candidates import Candidate
from spaseq.nfa.group import Group, PlaceState
from spaseq.nfa.native import joins_strictly, operator_of
from spaseq.nfa.partition import Partitioning
from spaseq.nfa.run import AutomatonRun
from spaseq.nfa.strictness import keep_contiguous
from spaseq.nfa.tecs import Accepted, Chain, Row, nodes, paths
from spaseq.rdf.event import Event


def snapshot(native: NativeRun, run: AutomatonRun, current: bool) -> AutomatonRun:
    """Fill a fresh run in Python; changing one leaves the other as it is.

    `current`: more may come at the last timestamp.
    """
    core, parts = native.core, native.parts
    now, bound, start, micros, times, bounds = parts.clock()
    if now >= 0:
        inside = [[instant, time] for instant, time in times]
        bounds = bounds or [(instant, bound) for instant, _ in times]
        total = sum(events for _, events in times) if core.counted else 0
        run.clock.restore([now, bound, start, micros, inside, total, bounds])
    reading = Reading(native, run)
    _keep(native, run)
    run.chained = parts.chained()
    for place, values, union, taken in parts.waiting():
        floor, going = parts.floors(place, values)
        env = reading.environment(reading.live(place), values)
        since = floor if current else max(floor, going)
        group = _group(run.places[place], env, reading.chain(union), bound, since)
        if group is None:
            continue
        if going >= 0 and current:
            low = max(group.oldest, run.clock.timestamp_start - 1)
            group.taken = run.guards.taken(run.places[place].place, env, low, now + 1)
            group.taken_first = going
        if taken or (going >= 0 and current):
            run.touched[id(group)] = place, group
    run.forbidden = core.forbidden
    for awaited in parts.awaited():
        if awaited is None:
            run.forbidden += 1
            continue
        place, values, start, labels = awaited
        reading.wait(place, values, start, tuple(map(reading.step, labels)))
    for place, values, node in parts.pended():
        if place >= len(run.places):
            for start, steps in paths(reading.node(node), bound):
                reading.wait(place, values, start, steps)
            continue
        env = reading.environment(reading.live(place), values)
        kept = tuple(env[number] for number in run.places[place].place.live)
        run.pending.setdefault((place, kept), (env, []))[1].append(reading.node(node))
    for place, values, begun in parts.begun():
        state, first = run.places[place], reading.node(begun)
        env = reading.environment(range(len(run.registers.registers)), values)
        candidate = Candidate(first.step.edge, env, first.step, first.latest, first.last, ())
        run.beginnings.append((state, state.groups[()], candidate))
    run.waited = max(run.waited, core.waited)
    if core.skipped:
        run.skipped[()] = core.skipped
    if core.partitions is not None:
        for numbers, instants, skipped in core.partitions.known():
            key = tuple(map(parts.term, numbers))
            run.contiguity.instants[key] = instants
            if skipped > bound:
                run.skipped[key] = skipped
    for address in parts.completed():
        end = first = reading.node(address)
        while first.before is not None:
            first = first.before.node
        run.accepted.append(Accepted(end, native.key_of(first.step)))
    _count(native, run)
    return run


def _group(
    state: PlaceState, env: list[Any], chain: Chain | None, bound: int, since: int
) -> Group | None:
    """A group, of those members whose last event came at the instant `since` or later."""
    members = list(nodes(chain, bound))
    kept = [node for node in members if node.last >= since]
    if not kept:
        return None
    group = state.group(env)
    group.chain, group.oldest = chain, min(node.last for node in kept)
    if len(kept) < len(members):
        group.keep(kept)
    return group


def _keep(native: NativeRun, run: AutomatonRun) -> None:
    """The rows that somebody looks back at; those of one event share it."""
    rows: dict[tuple[int, int, int], list[Row]] = {}
    events: dict[tuple[int, int], Event] = {}
    for gpm, whole, address in native.parts.kept():
        label = native.parts.label(address)
        instant, stream = label[2], label[6]
        if whole or (instant, stream) not in events:
            event = native.step.recalls.get((instant, stream))
            if event is None:
                event = native.event_of(label, whole=whole)
            events[instant, stream] = event
        rows.setdefault((gpm, instant, stream), []).append(label[-1])
    for (gpm, instant, stream), some in rows.items():
        run.buffers[gpm].append(Entry(instant, events[instant, stream], tuple(some)))


def _count(native: NativeRun, run: AutomatonRun) -> None:
    for number, state in enumerate(run.places):
        for name, value in native.core.counters(number).items():
            setattr(state, name, value)
    for occurrence, acceptor in enumerate(run.acceptors):
        acceptor.disagreed = native.core.disagreed(occurrence)
        acceptor.untrue = native.step.untrue_counts(occurrence)


def adopt(native: NativeRun, run: AutomatonRun, opened: bool) -> None:
    """Go on from the state of a run in Python; `opened`: in the midst of an instant."""
    clock, parts = run.clock, native.parts
    if clock.now >= 0:
        known = cast(Sequence[Sequence[Sequence[int]]], clock.state())
        assert clock.micros is not None
        start = clock.timestamp_start
        parts.set_clock(clock.now, clock.bound, start, clock.micros, known[4], known[6])
    native.core.skipped = run.skipped.get((), 0)
    writing = Writing(native)
    _adopt_partitions(native, run, writing)
    if joins_strictly(run.plan, run.automaton):
        keep_contiguous(run)
    _recall(native, run)
    partitions = Partitioning(native.compiled.plan)
    for gpm, buffer in enumerate(run.buffers):
        for entry in reversed(list(buffer.between(clock.looked_back_to() - 1, clock.now + 1))):
            for row in entry.rows:
                label = writing.label(0, 0, entry.instant, entry.event, row)
                parts.put_kept(gpm, label, partitions.positive(gpm, row))
    parts.put_chained(run.chained)
    for state in run.places:
        if state.place.start:
            continue
        strict = operator_of(run.plan, run.automaton, state.place) == ","
        for group in state.groups.values():
            # There, a `,` place keeps what it has passed over until the timestamp closes.
            key, passed = run.registers.key(group.env), 0
            if strict and state.conjoined:
                passed = 0 if run.plan.partition else clock.timestamp_start - 1
            elif strict:
                passed = run.contiguity.before(key, clock.now + (not opened))
            # There, the rows of a guard are kept until somebody comes whom they may forbid.
            since = max(passed, _seen(run, state, group, group.oldest, clock.now + (not opened)))
            nodes = writing.union(group.chain, clock.bound, since)
            taken = id(group) in run.touched and not state.conjoined
            if opened:
                taken |= _seen(run, state, group, clock.now - 1, clock.now + 1) >= 0
            values = writing.values(state.place.live, group.env)
            parts.put_waiting(state.number, values, nodes, taken, False)
            if id(group) in run.touched and state.conjoined and nodes:
                parts.put_taken(state.number, values, group.taken_first)
    for _, _, waiting in run.waiting:
        env = waiting.env
        place, live, sightings = native.closing_place(waiting.guards)
        # Here, what a guard has seen on sight ends those that wait.
        if any(
            run.guards.latest(guard, env, env, None, waiting.last, clock.now + 1) >= 0
            for guard in sightings
        ):
            run.forbidden += 1
            continue
        values, nodes = writing.values(live, env), [writing.path(waiting.path)]
        parts.put_waiting(place, values, nodes, False, opened and waiting.last == clock.now)
    native.core.waited, native.core.forbidden = run.waited, run.forbidden
    for (place, _), (env, members) in run.pending.items():
        values = writing.values(run.places[place].place.live, env)
        nodes = [writing.node(node) for node in members]
        parts.put_waiting(place, values, nodes, False, True)
    for state, _, candidate in run.beginnings:
        env = writing.values(range(len(run.registers.registers)), candidate.env)
        parts.put_begun(state.number, env, writing.begun(candidate.step, candidate.first))
    for accepted in run.accepted:
        parts.put_complete(writing.node(accepted.node))
    for number, state in enumerate(run.places):
        counted = {name: getattr(state, name) for name in native.core.counters(number)}
        native.core.count_on(number, counted)
    for occurrence, acceptor in enumerate(run.acceptors):
        native.core.disagreed_on(occurrence, acceptor.disagreed)
        native.step.untrue_on(occurrence, acceptor.untrue)


def _recall(native: NativeRun, run: AutomatonRun) -> None:
    """Events of the window that filters may look at."""
    looked_at = {
        (entry.instant, native.streams[entry.event.stream]): entry.event
        for gpm, buffer in enumerate(run.buffers)
        if native.recalled[gpm]
        for entry in buffer.kept()
    }
    for (instant, stream), event in sorted(looked_at.items(), key=lambda item: item[0]):
        native.step.recall(instant, stream, event)


def _adopt_partitions(native: NativeRun, run: AutomatonRun, writing: Writing) -> None:
    partitions = native.core.partitions
    if partitions is None or not (partitions.tracked or partitions.apart):
        return
    for key, instants in run.contiguity.instants.items():
        partitions.put(writing.key(key), instants, 0)
    for key, skipped in run.skipped.items():
        partitions.put(writing.key(key), [], skipped)


def _seen(run: AutomatonRun, state: PlaceState, group: Group, low: int, high: int) -> int:
    """The latest instant in between at which a guard decided on sight ended the group; or -1."""
    env = group.env
    return max(
        (
            run.guards.latest(sighting.guard, env, env, None, low, high)
            for sighting in state.place.sightings
        ),
        default=-1,
    )
