"""JSON-LD, lines of it, NGSI-LD, RDF/XML and N3 give the events that N-Quads give."""

from __future__ import annotations

import json
from pathlib import Path

import pyoxigraph as ox
import pytest
from reading import DATE_TIME, GENERATED, Reading, at, quad

PROV = "http://www.w3.org/ns/prov#generatedAtTime"
CONTEXT = {"t": {"@id": PROV}, "p": "e:p", "at": {"@id": PROV, "@type": DATE_TIME[1:-1]}}
REMOTE = "http://example.org/context.jsonld"


def graph(number: int) -> dict[str, object]:
    return {"@id": f"e:g{number}", "t": number, "@graph": [{"@id": "e:s", "p": {"@id": "e:o"}}]}


def plain(read: Reading) -> list[tuple[object, ...]]:
    return [(e.time, e.ordinal, e.name, frozenset(e.facts)) for e in read.events]


TEXT = "".join(at(f"g{i}", i) + quad(f"g{i}") for i in range(3))


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("name", ["s.jsonld", "s.json", "s.nq", "s"])
def test_json_ld_is_read_as_n_quads_are(tmp_path: Path, name: str, indent: int | None) -> None:
    document = {"@context": CONTEXT, "@graph": [graph(i) for i in range(3)]}
    read = Reading(tmp_path, json.dumps(document, indent=indent), name)
    assert (plain(read), read.error) == (plain(Reading(tmp_path, TEXT)), "")
    array = [{"@context": CONTEXT, **graph(i)} for i in range(3)]
    read = Reading(tmp_path, json.dumps(array, indent=indent), name)
    assert plain(read) == plain(Reading(tmp_path, TEXT))


def test_lines_of_json_ld_are_messages(tmp_path: Path) -> None:
    lines = [json.dumps({"@context": CONTEXT, "p": i, "t": i}) + "\n" for i in range(3)]
    read = Reading(tmp_path, "\n".join(lines), "s.ndjsonld")
    assert (read.times, read.sizes, read.lines) == ([0, 1, 2], [2, 2, 2], [1, 3, 5])
    for name in ("s", "s.jsonld", "s.nq"):
        assert Reading(tmp_path, "".join(lines), name).times == [0, 1, 2]
    long = [json.dumps({"@context": CONTEXT, "p": "x" * 9000, "t": i}) + "\n" for i in range(3)]
    assert Reading(tmp_path, "".join(long), "s").times == [0, 1, 2]
    graphs = "".join(json.dumps({"@context": CONTEXT, **graph(i)}) + "\n" for i in range(3))
    assert plain(Reading(tmp_path, graphs, "s.ndjsonld", "graph")) == plain(Reading(tmp_path, TEXT))


def test_a_malformed_line_is_left_out_alone(tmp_path: Path) -> None:
    lines = [json.dumps({"@context": CONTEXT, "p": i, "t": i}) for i in range(3)]
    lines[1] = lines[1][:-1]
    read = Reading(tmp_path, "\n".join(lines), "s.ndjsonld")
    assert read.error.startswith("FILE:2: not JSON-LD, column ")
    assert read.times == [0]
    read = Reading(tmp_path, "\n".join(lines), "s.ndjsonld", on_error="skip")
    assert (read.times, read.error, len(read.log)) == ([0, 2], "", 1)
    assert "Parser error" not in read.log[0]


def test_a_document_that_is_cut_off(tmp_path: Path) -> None:
    document = json.dumps({"@context": CONTEXT, "@graph": [graph(1)]}, indent=1)
    read = Reading(tmp_path, document[:-3], "s.jsonld")
    assert "not JSON-LD" in read.error
    assert read.error.startswith(f"FILE:{document.count(chr(10))}")
    for text in ('{"@id": "e:a",\n "e:p": }', '{"@context": {"@base": 4}}', "{\x00"):
        assert "not JSON-LD" in Reading(tmp_path, text, "s.jsonld").error
    deep = '{"e:p":' * 100_000
    assert Reading(tmp_path, deep, "s.jsonld").error.startswith("FILE:")


def test_json_without_iris_is_no_silent_nothing(tmp_path: Path) -> None:
    for name, text in (("s.json", '{"a":\n {"b": 1}}'), ("s.ndjsonld", '{"a": 1}\n')):
        assert "no member of it has an IRI" in Reading(tmp_path, text, name).error
    for name, text in (("s.json", '{"@graph": []}'), ("s.ndjsonld", "{}\n")):
        assert Reading(tmp_path, text, name).error == ""


# ------------------------------------------------------------ contexts


def test_remote_contexts_are_never_fetched(tmp_path: Path) -> None:
    for name, document in (
        ("s.jsonld", {"@context": REMOTE, "@graph": [graph(1)]}),
        ("s.ndjsonld", {"@context": ["http://other.org/", REMOTE], "p": 1, "t": 1}),
    ):
        read = Reading(tmp_path, json.dumps(document), name)
        first = REMOTE if name == "s.jsonld" else "http://other.org/"
        assert read.error.startswith(f"FILE:1: its @context {first} is remote, and contexts are")
        assert f"--context {first}=FILE" in read.error
    nested = {"@context": CONTEXT, "p": {"@id": "e:x", "p": 1}}
    text = json.dumps(nested).replace('"@id": "e:x"', '"@\\u0063ontext": "http://x.org/"')
    assert "contexts are never fetched: --context FILE" in Reading(tmp_path, text, "s.jsonld").error


def test_contexts_from_files(tmp_path: Path) -> None:
    (tmp_path / "c.jsonld").write_text(json.dumps({"@context": CONTEXT}))
    (tmp_path / "bare.json").write_text(json.dumps(CONTEXT))
    document = json.dumps({"@context": REMOTE, "@graph": [graph(i) for i in range(3)]}, indent=1)
    expected = plain(Reading(tmp_path, TEXT))
    for contexts in ({REMOTE: "c.jsonld"}, {"": "bare.json"}):
        given = {url: str(tmp_path / path) for url, path in contexts.items()}
        assert plain(Reading(tmp_path, document, "s.jsonld", contexts=given)) == expected
        listed = document.replace(f'"{REMOTE}"', f'[{{"u": "urn:u"}}, "{REMOTE}"]')
        assert plain(Reading(tmp_path, listed, "s.jsonld", contexts=given)) == expected
    without = json.dumps({"@graph": [graph(i) for i in range(3)]})
    assert plain(Reading(tmp_path, without, "s.jsonld", contexts=given)) == expected
    assert Reading(tmp_path, "{}\n{}\n", "s.ndjsonld", contexts=given).error == ""
    (tmp_path / "bad.json").write_text("[")
    for path, said in (("bad.json", "not a JSON-LD context"), ("none", "cannot be read: No such")):
        read = Reading(tmp_path, document, "s.jsonld", contexts={"": str(tmp_path / path)})
        assert said in read.error


# ------------------------------------------------------------ NGSI-LD

ENTITY = {
    "id": "urn:ngsi-ld:Vehicle:A1",
    "type": "Vehicle",
    "speed": {"type": "Property", "value": 55, "observedAt": "2026-01-05T09:00:02Z"},
    "fuel": {"type": "Property", "value": 7.5, "observedAt": "2026-01-05T10:00:00+02:00"},
    "isParked": {"type": "Relationship", "object": "urn:ngsi-ld:Parking:P1"},
}
NOTIFICATION = {
    "id": "urn:ngsi-ld:Notification:1",
    "type": "Notification",
    "subscriptionId": "urn:ngsi-ld:Subscription:1",
    "notifiedAt": "2026-01-05T09:00:05Z",
    "data": [ENTITY, {"id": "urn:ngsi-ld:Vehicle:A2", "type": "Vehicle"}],
}
NGSI = "https://uri.etsi.org/ngsi-ld/"


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("name", ["s.jsonld", "s.ndjsonld", "s"])
def test_notifications(tmp_path: Path, name: str, indent: int | None) -> None:
    read = Reading(tmp_path, json.dumps(NOTIFICATION, indent=indent), name)
    assert read.error == ""
    texts = [event.time.term.value for event in read.events]
    assert texts == ["2026-01-05T09:00:02Z", "2026-01-05T09:00:05Z"]
    facts = {(str(p), str(o)) for _, p, o in read.events[0].facts}
    assert (f"<{NGSI}hasObject>", "<urn:ngsi-ld:Parking:P1>") in facts
    assert (f"<{NGSI}hasValue>", '"55"^^<http://www.w3.org/2001/XMLSchema#integer>') in facts
    assert (GENERATED, f'"2026-01-05T09:00:02Z"^^{DATE_TIME}') in facts
    assert (
        f"<{NGSI}observedAt>",
        f'"2026-01-05T10:00:00+02:00"^^<{NGSI}DateTime>',
    ) in facts
    speeds = {str(p) for _, p, o in read.events[0].facts if isinstance(o, ox.BlankNode)}
    assert f"<{NGSI}default-context/speed>" in speeds


def test_lines_of_notifications_and_of_entities(tmp_path: Path) -> None:
    later = json.loads(json.dumps(NOTIFICATION).replace("2026-01-05", "2026-01-06"))
    read = Reading(tmp_path, json.dumps(NOTIFICATION) + "\n{\n" + json.dumps(later), "s",
                   on_error="skip")  # fmt: skip
    assert ([len(read.events), read.lines], len(read.log)) == ([4, [1, 1, 3, 3]], 1)
    read = Reading(tmp_path, json.dumps(ENTITY) + "\n", "s", syntax="ngsild")
    assert len(read.events) == 1
    bad = {**NOTIFICATION, "data": [{"type": "Vehicle"}, 7, ENTITY]}
    read = Reading(tmp_path, json.dumps(bad), "s", on_error="skip")
    assert (len(read.events), len(read.log)) == (1, 2)
    assert "s:1: not NGSI-LD: an entity without an id; by its content" in read.log[0]


def instances(*values: tuple[int, str], **members: str) -> list[dict[str, object]]:
    return [
        {"type": "Property", "value": value, "observedAt": f"2026-01-05T{at}Z", **members}
        for value, at in values
    ]


def states(tmp_path: Path, *entities: object) -> list[tuple[str, str, list[str]]]:
    """The time, the entity and the values of each event."""
    read = Reading(tmp_path, json.dumps(list(entities)), "s", syntax="ngsild")
    assert read.error == ""
    found = []
    for event in read.events:
        (entity,) = {str(s) for s, p, _ in event.facts if str(p) == GENERATED}
        values = sorted(str(o).split('"')[1] for _, p, o in event.facts if "/hasValue>" in str(p))
        found.append((event.time.term.value[11:16], entity.rpartition(":")[2][:-1], values))
    return found


def test_each_time_of_a_temporal_representation_is_an_event(tmp_path: Path) -> None:
    one = {"id": "urn:ngsi-ld:Beach:B1", "type": "Beach",
           "occupancy": instances((4, "09:00:00"), (9, "09:10:00"), (5, "09:05:00")),
           "height": instances((1, "09:05:00"), (2, "09:06:00")),
           "name": {"type": "Property", "value": "Playa"}}  # fmt: skip
    two = {
        "id": "urn:ngsi-ld:Beach:B2",
        "type": "Beach",
        "occupancy": {
            "type": "Property",
            "values": [[7, "2026-01-05T09:01:00Z"], [8, "2026-01-05T10:10:00+01:00"]],
        },
    }
    assert states(tmp_path, one, two) == [
        ("09:00", "B1", ["4"]),
        ("09:01", "B2", ["7"]),
        ("09:05", "B1", ["1", "5"]),
        ("09:06", "B1", ["2"]),
        ("09:10", "B1", ["9", "Playa"]),
        ("09:10", "B2", ["8"]),
    ]


def test_instances_of_several_datasets_are_one_event(tmp_path: Path) -> None:
    gps = instances((5, "09:00:00"), datasetId="urn:ngsi-ld:Dataset:gps")
    wheel = instances((6, "09:00:00"), datasetId="urn:ngsi-ld:Dataset:wheel")
    later = instances((7, "09:00:01"), datasetId="urn:ngsi-ld:Dataset:wheel")
    car = {"id": "urn:ngsi-ld:Vehicle:A1", "type": "Vehicle"}
    assert states(tmp_path, {**car, "speed": gps + wheel}) == [("09:00", "A1", ["5", "6"])]
    # The last values of two datasets are one state; a history has several times of one dataset.
    assert states(tmp_path, {**car, "speed": gps + later}) == [("09:00", "A1", ["5", "7"])]
    found = states(tmp_path, {**car, "speed": gps + wheel + later})
    assert [values for _, _, values in found] == [["5", "6"], ["7"]]


def test_the_time_of_an_attribute_can_be_named(tmp_path: Path) -> None:
    one = {**ENTITY, "fuel": {"type": "Property", "value": 1}}
    read = Reading(
        tmp_path, json.dumps(one), "s", syntax="ngsild", time_predicate=NGSI + "observedAt"
    )
    assert [event.time.term.value for event in read.events] == ["2026-01-05T09:00:02Z"]
    wrong = json.dumps(ENTITY).replace("2026-01-05T09:00:02Z", "yesterday")
    assert "yesterday" in Reading(tmp_path, wrong, "s", syntax="ngsild").error


def test_contexts_of_entities(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(json.dumps({"@context": {"Vehicle": "e:Vehicle"}}))
    core = NGSI + "v1/ngsi-ld-core-context-v1.8.jsonld"
    entity = {**ENTITY, "@context": [REMOTE, core]}
    given = {REMOTE: str(tmp_path / "c.json")}
    read = Reading(tmp_path, json.dumps(entity), "s", syntax="ngsild", contexts=given)
    assert "<e:Vehicle>" in {str(o) for _, _, o in read.events[0].facts}
    assert "is remote" in Reading(tmp_path, json.dumps(entity), "s", syntax="ngsild").error


# ------------------------------------------------------------ RDF/XML and N3

XML = """<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">
<rdf:Description rdf:about="http://e/a">
<e:p>1</e:p>
<e:p>2</e:p></rdf:Description>
</rdf:RDF>
"""


@pytest.mark.parametrize("name", ["s.rdf", "s.xml", "s.owl", "s.nt", "s"])
def test_rdf_xml(tmp_path: Path, name: str) -> None:
    read = Reading(tmp_path, XML, name, "triples:1")
    assert (read.sizes, read.lines, read.error) == ([1, 1], [4, 5], "")


def test_rdf_xml_that_is_malformed_or_cut_off(tmp_path: Path) -> None:
    for cut in range(XML.index("<e:p>2"), XML.index("</rdf:RDF>") + 9):
        read = Reading(tmp_path, XML[:cut], "s.rdf", "triples:1")
        assert "not RDF/XML" in read.error, XML[:cut]
    read = Reading(tmp_path, XML.replace("1</e:p>", "1</e:q>"), "s.rdf", "triples:1")
    assert read.error.startswith("FILE:4: not RDF/XML")


def test_n3(tmp_path: Path) -> None:
    text = "@prefix : <e:> .\n:a :p 1 .\n:y is :p of :a .\n"
    read = Reading(tmp_path, text, "s.n3", "triples:1")
    assert (read.sizes, read.lines) == ([1, 1], [2, 3])
    read = Reading(tmp_path, "@prefix : <e:> .\n?x :p 1 .\n", "s.n3", "triples:1")
    assert "not N3" in read.error
