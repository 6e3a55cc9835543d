"""Programs of several queries that read input streams and the streams that others register.

The queries are those of other draws. In place of each stream that a query names, it reads an input
stream, or one that an earlier query registers. The events are those of all draws.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from combined import combined
from deadlines import timed
from strategies import EXAMPLE, Case, plain_case, random_case

import spaseq
from spaseq.errors import QueryError
from spaseq.rdf.event import NUMBER, Event, Fact

INPUTS = ("S", "T")
KINDS = (combined, timed, random_case, plain_case)
SOURCE = re.compile(r"(FROM STREAM \w+) :(\w+)")


def registered_chain(seed: int) -> tuple[Sequence[str], Case]:
    """Two to five queries, each before its readers, and a case with the events that they read."""
    chance = random.Random(seed)
    wanted = chance.choice((2, 2, 3, 3, 4, 5))
    queries: list[str] = []
    registered: list[str] = []
    facts: dict[str, dict[int, list[Event]]] = defaultdict(lambda: defaultdict(list))
    kb: dict[str, Sequence[Fact]] = {}
    while len(queries) < wanted:
        case = chance.choice(KINDS)(chance.randrange(1_000_000))
        if case is None or any(event.time.domain != NUMBER for event in case.merged):
            continue
        bound = _bound(case.query, registered, chance)
        if bound is None:
            continue
        text = SOURCE.sub(lambda found, to=bound: f"{found[1]} :{to[found[2]]}", case.query)
        if not registered or chance.random() < 0.4:
            text = _registering(text, f"D{len(registered)}", chance)
        try:
            spaseq.compile(text)
        except QueryError:
            continue
        queries.append(text)
        registered += re.findall(r"REGISTER STREAM :(\w+)", text)
        kb |= case.kb
        for event in case.merged:
            stream = bound[event.stream.removeprefix(EXAMPLE)]
            # An input stream gets what a registered one would have.
            name = stream if stream in INPUTS else chance.choice(INPUTS)
            facts[EXAMPLE + name][event.time.micros].append(event)
    read = {EXAMPLE + name for text in queries for _, name in SOURCE.findall(text)}
    streams = {
        stream: [
            replace(event, stream=stream, ordinal=ordinal)
            for micros in sorted(by_time)
            for ordinal, event in enumerate(by_time[micros])
        ]
        for stream, by_time in facts.items()
        if stream in read
    }
    return queries, Case(queries[-1], streams, kb)


def _bound(text: str, registered: Sequence[str], chance: random.Random) -> Mapping[str, str] | None:
    """What a query reads in place of its streams, the newest registered one included."""
    names = [name for _, name in SOURCE.findall(text)]
    others = [*INPUTS, *registered[:-1]]
    chance.shuffle(others)
    streams = [*registered[-1:], *others][: len(names)]
    if len(streams) < len(names):
        return None
    chance.shuffle(streams)
    return dict(zip(names, streams, strict=True))


def _registering(text: str, name: str, chance: random.Random) -> str:
    """The query as one that registers a stream of values that it may bind."""
    variables = sorted(set(re.findall(r"\?(\w+)", text[text.index("WITHIN") :]))) or ["k"]
    triples = {
        f":{chance.choice('ab')} :{chance.choice('pqr')} ?{chance.choice(variables)}"
        for _ in range(chance.randint(1, 3))
    }
    head = f"REGISTER STREAM :{name} AS CONSTRUCT {{ {' . '.join(sorted(triples))} }}\n"
    form = r"(?s)(SELECT|CONSTRUCT|ASK).*?(?=WITHIN|AFTER|PARTITION|FROM|EMIT)"
    return re.sub(form, head, text, count=1)
