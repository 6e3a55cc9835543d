"""Uses of the public interface that a type checker accepts or refuses; see test_typing.py.

A line that ends in `# refused` must be an error for mypy, and no other line may be one.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyoxigraph as ox
import rdflib

import spaseq

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
TRIPLES = [ox.Triple(ox.NamedNode("urn:s"), ox.NamedNode("urn:p"), ox.Literal(1))]
program = spaseq.compile(Path("query.rq"))
run = program.start()

run.push("s", NOON, TRIPLES)
run.push("s", "2026-01-05T12:00:00Z", b"<urn:s> <urn:p> 1 .")
run.push(ox.NamedNode("urn:s"), 12.5, rdflib.Graph(), ox.NamedNode("urn:e"))
run.push("s", rdflib.Literal(NOON), iter(TRIPLES))
run.push(7, NOON, TRIPLES)  # refused
run.push("s", None, TRIPLES)  # refused
run.push("s", timedelta(seconds=1), TRIPLES)  # refused
run.push("s", NOON, 7)  # refused
run.push("s", NOON, [7])  # refused
run.push("s", NOON, TRIPLES, 7)  # refused
run.bind(x=30, since=NOON, room=ox.NamedNode("urn:kitchen"), who=rdflib.URIRef("urn:s"))
run.bind(x=object())  # refused
program.bind({"x": [30]})  # refused
run.advance("2026-01-05T12:00:00Z")
run.advance([NOON])  # refused

spaseq.run(program, {"s": "events.nq"})
spaseq.run([Path("a.rq"), "SELECT"], {"s": ["a.nq", "b.nq"]})
spaseq.run(program, {"s": [(NOON, TRIPLES), (NOON, TRIPLES)]})
spaseq.run(program, {"s": [("2026-01-05", b"", "urn:e"), ("2026-01-06", b"", "urn:e")]})
spaseq.run(program, {"s": ((NOON, TRIPLES) for _ in range(3))})
spaseq.run(program, {"s": ox.Store()}, lateness="10s", on_error="skip", unit="ms")
spaseq.run(program, {"s": rdflib.Dataset()}, lateness=timedelta(seconds=10))
with open("events.nq", "rb") as file:
    spaseq.run(program, {"s": file})
spaseq.run(program, {"s": 7})  # refused
spaseq.run(program, "events.nq")  # refused
spaseq.run(7, {"s": "events.nq"})  # refused
spaseq.run(program, {"s": [(TRIPLES, NOON)]})  # refused
spaseq.run(program, {"s": "events.nq"}, lateness=[1])  # refused
spaseq.run(program, {"s": "events.nq"}, on_error="ignore")  # refused
spaseq.run(program, {"s": "events.nq"}, latenes="10s")  # refused
spaseq.compile(7)  # refused

for match in spaseq.run(program, {"s": "events.nq"}):
    when: datetime | None = match.end.datetime
    name: str = match.query
    wrong: int = match.query  # refused
    print(match.nothing)  # refused
    print({**match, "source": "live"})
spaseq.run(program, {"s": "events.nq"}).to_batches("10")  # refused
spaseq.frames.match(7, program)  # refused
