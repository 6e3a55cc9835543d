"""Hostile documents: what n bytes cost at most, in each syntax and at each decoder.

A document repeats fragments of its syntax: one of `SHAPES`, which are made by hand, or a drawn one.
A child process reads it at one door. The child may take time and memory linear in the bytes; it
must end with a result or an error of the package. A signal, a traceback, a hang or growth is a
fault, which is printed with the command that repeats it. As a script:

    python tests/fuzz/hostile_documents.py --seconds 3600 --size 10000000
    python tests/fuzz/hostile_documents.py --shape "rdf: nested" --size 10000000

`campaign.py` runs it beside hostile bodies and states.
"""

from __future__ import annotations

import argparse
import bz2
import contextlib
import gzip
import io
import json
import lzma
import math
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from spaseq import cli
from spaseq.errors import SpaseqError
from spaseq.io.read_options import Framing, ReadOptions, TimeDomain
from spaseq.io.source import Source
from spaseq.kb import open_kb
from spaseq.live.ldes_page import read_page
from spaseq.live.sse_source import EventParser
from spaseq.rdf.native._terms import Dictionary, Relevance
from spaseq.server.bodies import Body, BodyReader
from spaseq.server.context import parsed_json
from spaseq.server.problems import Problem

PROV = "http://www.w3.org/ns/prov#generatedAtTime"
RDF_NS = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
CPU_SECONDS, CPU_SECONDS_PER_MEGABYTE = 20, 4
"""What a child may take. Up to 8 MiB are read again after errors, in about 10 s."""
MEGABYTES, MEGABYTES_PER_MEGABYTE = 400, 150
"""What a child may allocate: an event of small terms takes about 50 bytes for each of its bytes."""

UNPACKED = 20
"""How many times as large as `size` the contents of compressed files are."""

Make = Callable[[int], bytes]


# ------------------------------------------------------------------ shapes


def pumped(head: str, unit: str, tail: str = "", closing: str = "") -> Make:
    """Head, units, tail, and as many closing parts. `{}` in a unit is its number."""

    def make(size: int) -> bytes:
        numbered = "{}" in unit
        each = len(unit) + len(closing) + (4 if numbered else 0)
        count = max((size - len(head) - len(tail)) // each, 1)
        units = [unit.replace("{}", str(n)) for n in range(count)] if numbered else [unit * count]
        return "".join((head, *units, tail, closing * count)).encode()

    return make


def long_and_many(head: str, long: str, middle: str, unit: str, tail: str = "") -> Make:
    """Half of the bytes in one token, the other half in its uses."""

    def make(size: int) -> bytes:
        count = max(size // 2 // (len(unit) + 4), 1)
        uses = "".join(unit.replace("{}", str(n)) for n in range(count))
        return (head + long * (size // 2 // len(long)) + middle + uses + tail).encode()

    return make


def many_and_many(head: str, one: str, middle: str, two: str, tail: str = "") -> Make:
    """As many of one unit as of another."""

    def make(size: int) -> bytes:
        count = max(size // (len(one) + len(two) + 8), 1)
        first = "".join(one.replace("{}", str(n)) for n in range(count))
        second = "".join(two.replace("{}", str(n)) for n in range(count))
        return (head + first + middle + second + tail).encode()

    return make


XML = f'<rdf:RDF xmlns:rdf="{RDF_NS}" xmlns:x="http://e.org/" xml:base="http://e.org/">'
END = "</rdf:RDF>"
NODE = "<rdf:Description x:p='1'/>"
TTL = "@prefix : <http://e.org/> .\n"
EVENT = f":g <{PROV}> 1 .\n:g {{ "


def entities(size: int) -> bytes:
    levels = "".join(f'<!ENTITY a{n + 1} "{f"&a{n};" * 9}">' for n in range(size // 60))
    return f'<!DOCTYPE r [<!ENTITY a0 "aaaaaaaaaa">{levels}]>{XML}&a9;{END}'.encode()


def bomb(pack: Callable[[bytes], bytes], front: str = f'<u:a> <{PROV}> 1 .\n<u:a> <u:b> "') -> Make:
    """One token, a thousand times as long as the file."""
    return lambda size: pack(front.encode() + b"a" * (size * UNPACKED))


def parquet(values: Callable[[int], pa.Array]) -> Make:
    def make(size: int) -> bytes:
        column = values(size)
        table = pa.table({"t": pa.array(range(len(column))), "v": column})
        out = io.BytesIO()
        pq.write_table(table, out, compression="zstd")
        return out.getvalue()

    return make


def arrow(size: int) -> bytes:
    """A stream whose buffers are compressed zeros."""
    zeros = pa.array([0]).take(pa.array([0] * size))
    out = io.BytesIO()
    table = pa.table({"t": zeros, "v": zeros})
    with pa.ipc.new_stream(
        out, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")
    ) as writer:
        writer.write_table(table)
    return out.getvalue()


def field(number: int, value: bytes | int) -> bytes:
    """A field of Protocol Buffers."""
    if isinstance(value, int):
        return bytes((number << 3,)) + _varint(value)
    return bytes((number << 3 | 2,)) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*parts, value))


def jelly(first: Callable[[bytes], bytes], rows: Sequence[bytes], frames: bool = False) -> Make:
    """A stream of triples: rows with a long text, and then others again and again.

    frames: Whether each repetition is a frame.
    """

    def make(size: int) -> bytes:
        options = field(2, 1) + field(9, 8) + field(10, 8) + field(11, 8) + field(15, 1)
        unit = b"".join(field(1, row) for row in rows)
        head = field(1, field(1, options)) + first(b"a" * (size // 2))
        if frames:
            frame = _varint(len(unit)) + unit
            return _varint(len(head)) + head + frame * max(size // 2 // len(frame), 1)
        body = head + unit * max(size // 2 // max(len(unit), 1), 1)
        return _varint(len(body)) + body

    return make


def _row(number: int, value: bytes) -> bytes:
    return field(1, field(number, value))


def _iri(prefix: int) -> bytes:
    """The first name with a prefix."""
    return field(1, prefix) + field(2, 1)


def _triple(subject: int = 1, object_: bytes = b"") -> bytes:
    """A triple of IRIs with the first name, or with another object."""
    return field(1, _iri(subject)) + field(5, _iri(1)) + (object_ or field(9, _iri(1)))


def _entries(text: bytes) -> bytes:
    """Two prefixes of up to 60,000 bytes of a text, a name, and a triple."""
    text = text[:60_000]
    texts = (10, b"u:" + text), (10, b"u:b" + text), (9, b"b")
    return b"".join(_row(number, field(2, value)) for number, value in texts) + _row(2, _triple())


def _not_iris(text: bytes) -> bytes:
    prefix = field(1, 1) + field(2, b" " + text[:60_000])
    return _entries(b"a") + _row(10, prefix) + _row(2, _triple())


def _literal(text: bytes) -> bytes:
    return _entries(b"a") + _row(2, _triple(object_=field(11, field(1, text))))


def _time(text: bytes) -> bytes:
    """A time as a number with many zeros."""
    entries = ((10, b""), (9, PROV.encode()), (11, b"http://www.w3.org/2001/XMLSchema#integer"))
    rows = b"".join(_row(number, field(2, value)) for number, value in entries)
    zeros = field(1, text.replace(b"a", b"0") + b"1") + field(3, 1)
    return rows + _row(2, _triple(object_=field(11, zeros)))


def _triple_term(text: bytes) -> bytes:
    inner = _triple(object_=field(11, field(1, text)))
    return _entries(b"a") + _row(2, _triple(object_=field(12, inner)))


def _datatype(text: bytes) -> bytes:
    return _entries(b"a") + _row(11, field(2, b"u:" + text[:60_000]))


def _typed(text: bytes) -> bytes:
    return field(2, _triple(object_=field(11, field(1, text) + field(3, 1))))


def _as_subject(text: bytes) -> bytes:
    literal = field(3, field(1, text))
    return _entries(b"a") + _row(2, literal + field(5, _iri(1)) + field(9, _iri(1)))


NEW_NAME = field(9, field(1, 1) + field(2, b"b"))
JELLY = {
    "jelly: prefixes": jelly(_entries, (field(2, _triple(2)), field(2, _triple(1)))),
    "jelly: a name again": jelly(_entries, (NEW_NAME, field(2, _triple()))),
    "jelly: namespaces": jelly(_entries, (NEW_NAME, field(6, field(2, _iri(1))))),
    "jelly: not IRIs": jelly(_not_iris, (field(2, _triple()),)),
    "jelly: still not IRIs": jelly(_not_iris, (field(2, b""),)),
    "jelly: datatypes": jelly(_datatype, (_typed(b"b"), _typed(b"c"))),
    "jelly: literal": jelly(_literal, (field(2, b""),)),
    "jelly: subjects": jelly(_literal, (field(2, field(2, b"b")), field(2, field(2, b"c")))),
    "jelly: literals as subjects": jelly(_as_subject, (field(2, b""),)),
    "jelly: an IRI": jelly(
        lambda text: _row(10, b"") + _row(9, field(2, b"u:" + text)) + _row(2, _triple()), ()),
    "jelly: time": jelly(_time, (field(2, b""),)),
    "jelly: times": jelly(_time, (field(2, b""),), frames=True),
    "jelly: triple term": jelly(_triple_term, (field(2, b""),)),
    "jelly: triple terms": jelly(_entries, (field(2, _triple(object_=field(12, _triple()))),)),
}  # fmt: skip


SHAPES: dict[str, tuple[str, Make]] = {
    # RDF/XML
    "rdf: entities": ("rdf", entities),
    "rdf: an entity": ("rdf", long_and_many('<!DOCTYPE r [<!ENTITY e "', "a", f'">]>{XML}',
                                            "<rdf:Description x:p='&e;'/>", END)),
    "rdf: entity declarations": ("rdf", many_and_many("<!DOCTYPE r [", '<!ENTITY e{} "a">',
                                 f"]>{XML}", "<rdf:Description x:p='&e1;'/>", END)),
    "rdf: open declaration": ("rdf", pumped("<!DOCTYPE r [", "<!ENTITY e{} '")),
    "rdf: nested": ("rdf", pumped(XML, "<rdf:Description><x:p>", "", "</x:p></rdf:Description>")),
    "rdf: literal": ("rdf", pumped(f'{XML}<rdf:Description><x:p rdf:parseType="Literal">', "<a>")),
    "rdf: wide literal": ("rdf", many_and_many(f"{XML}<rdf:Description ", " xmlns:a{}='u:{}'",
                          '><x:p rdf:parseType="Literal">', "<a/>")),
    "rdf: attributes": ("rdf", pumped(f"{XML}<rdf:Description", " x:a{}='1'", f"/>{END}")),
    "rdf: namespaces": ("rdf", many_and_many("<rdf:RDF", " xmlns:a{}='u:{}'",
                        f" xmlns:rdf='{RDF_NS}'>", "<rdf:Description a1:p='1'/>", END)),
    "rdf: long namespace": ("rdf", long_and_many(f"{XML}<rdf:Description xmlns:y='u:", "a", "'>",
                            "<y:p{}>1</y:p{}>", f"</rdf:Description>{END}")),
    "rdf: long base": ("rdf", long_and_many(f"{XML}<rdf:Description xml:base='http://e/", "a",
                       "/'><x:p>", "<rdf:Description rdf:about='{}' x:p='1'/>")),
    "rdf: growing base": ("rdf", pumped(XML, "<rdf:Description xml:base='aaaa/'><x:p>")),
    "rdf: nodes": ("rdf", pumped(XML, "<rdf:Description rdf:about='a{}' x:p='1'/>", END)),
    "rdf: ids": ("rdf", pumped(XML, "<rdf:Description rdf:ID='a{}' x:p='1'/>", END)),
    "rdf: items": ("rdf", pumped(f"{XML}<rdf:Bag>", "<rdf:li>1</rdf:li>", f"</rdf:Bag>{END}")),
    "rdf: collection": ("rdf", pumped(
        f"{XML}<rdf:Description><x:p rdf:parseType='Collection'>", NODE)),
    "rdf: long text": ("rdf", pumped(f"{XML}<rdf:Description><x:p>", "a\n")),
    "rdf: long attribute": ("rdf", pumped(f"{XML}<rdf:Description x:p='", "a\n")),
    "rdf: comment": ("rdf", pumped(f"{XML}<!--", "-\n")),
    "rdf: references": ("rdf", pumped(f"{XML}<rdf:Description><x:p>", "&amp;")),
    # JSON-LD
    "jsonld: contexts": ("jsonld", pumped('{"@context":', '{"a":{"@id":"u:a","@context":', "{}",
                                          "}}")),
    "jsonld: copied": ("jsonld", many_and_many('{"@context":{', '"a{}":"u:{}",',
                       '"z":"u:z"},"@graph":[', '{"@context":{},"@id":"u:x","a1":1},', "{}]}")),
    "jsonld: of a property": ("jsonld", many_and_many(
        '{"@context":{"s":{"@id":"u:s","@context":{', '"a{}":"u:{}",',
        '"z":"u:z"}}},"@graph":[', '{"s":{"a1":1}},', "{}]}")),
    "jsonld: of a type": ("jsonld", many_and_many(
        '{"@context":{"s":{"@id":"u:s","@context":{', '"a{}":"u:{}",',
        '"z":"u:z"}}},"@graph":[', '{"@type":"s","a1":1},', "{}]}")),
    "jsonld: chain": ("jsonld", pumped('{"@context":{', '"b{}":"b{}:x",', '"z":"u:z"}}')),
    "jsonld: list of contexts": ("jsonld", pumped(
        '{"@context":[', '{"a{}":"u:{}"},', '{}],"a1":1}')),
    "jsonld: vocabulary": ("jsonld", long_and_many(
        '{"@context":{"@vocab":"u:', "a", '"},"@graph":[', '{"a{}":1},', "{}]}")),
    "jsonld: nodes": ("jsonld", pumped("", '{"u:a":', "1", "}")),
    "jsonld: lists": ("jsonld", pumped('{"u:a":', '{"@list":[', "1", "]}")),
    "jsonld: arrays": ("jsonld", pumped('{"u:a":', "[", "1", "]")),
    "jsonld: graphs": ("jsonld", pumped("", '{"@graph":', "{}", "}")),
    "jsonld: reverse": ("jsonld", pumped("", '{"@reverse":{"u:a":', "{}", "}}")),
    "jsonld: members": ("jsonld", pumped("{", '"u:a{}":1,', '"u:z":1}')),
    "jsonld: items": ("jsonld", pumped('{"@id":"u:a","u:b":[', "{},", "{}]}")),
    "jsonld: values": ("jsonld", pumped("[", '{"@id":"u:a","u:b":1},', "{}]")),
    "jsonld: string": ("jsonld", pumped('{"u:a":"', "\\u00e9", '"}')),
    "jsonld: number": ("jsonld", pumped('{"u:a":', "1", "}")),
    "jsonld: late context": ("jsonld", pumped(
        '{"@graph":[', '{"a":1},', '{}],"@context":{"a":"u:a"}}')),
    "ndjsonld: nodes": ("ndjsonld", pumped("", '{"u:a":', "1", "}")),
    "ndjsonld: lines": ("ndjsonld", pumped("", '{"@context":{"@vocab":"u:"},"a":1}\n')),
    "ngsild: nested": ("ngsild", pumped('{"id":"u:a","type":"T","a":', '{"value":', "1", "}")),
    "ngsild: contexts": ("ngsild", pumped('{"id":"u:a","type":"T","@context":[',
                         '"https://uri.etsi.org/ngsi-ld/x",', "{}]}")),
    "ngsild: attributes": ("ngsild", pumped(
        '{"id":"u:a","type":"T","x":1', ',"a{}":{"type":"Property","value":1}', "}")),
    "ngsild: instances": ("ngsild", pumped('{"id":"u:a","type":"T","a":[',
        '{"type":"Property","value":1,"observedAt":"2026-01-01T00:00:00Z"},', "{}]}")),
    "ngsild: entities": ("ngsild", pumped("[", '{"id":"u:a","type":"T"},', '{"id":"u:b"}]')),
    # Turtle, TriG, N3
    "trig: prefixes": ("trig", many_and_many(f"{TTL}{EVENT}}}", "@prefix p{}: <u:{}> .\n", "",
                       "p{}:a p{}:b (p{}:c) .\n")),
    "trig: long prefix": ("trig", long_and_many(f"{TTL}@prefix p: <u:", "a", f"> .\n{EVENT}",
                          ":s :p p:{} .\n", "}")),
    "trig: long base": ("trig", long_and_many(f"{TTL}@base <http://e/", "a", f"/> .\n{EVENT}",
                        ":s :p <{}> .\n", "}")),
    "trig: growing base": ("trig", pumped(f"{TTL}@base <http://e.org/> .\n", "@base <a/> .\n")),
    "trig: lists": ("trig", pumped(f"{TTL}{EVENT} :s :p ", "(", "", ")")),
    "trig: open lists": ("trig", pumped(f"{TTL}{EVENT} :s :p ", "( [ :q\n")),
    "trig: nodes": ("trig", pumped(f"{TTL}{EVENT} :s :p ", "[:q ", "1", "]")),
    "trig: reified": ("trig", pumped(f"{TTL}{EVENT} :s :p ", "<< :a :b ", "1", ">>")),
    "trig: triple terms": ("trig", pumped(f"{TTL}{EVENT} :s :p ", "<<( :a :b ", "1", ")>>")),
    "trig: annotations": ("trig", pumped(f"{TTL}{EVENT} :s :p :o ", "{| :a :b ", "", "|}")),
    "trig: string": ("trig", pumped(f'{TTL}{EVENT} :s :p """', "a\n", '""" }')),
    "trig: open string": ("trig", pumped(f'{TTL}{EVENT} :s :p """', 'a"\n')),
    "trig: quotes": ("trig", pumped(f"{TTL}{EVENT} :s :p ", "\"\"\" ''' \n")),
    "trig: one line": ("trig", pumped(f"{TTL}{EVENT} :s :p ", ":o{},", ":z }")),
    "trig: objects": ("trig", pumped(f"{TTL}{EVENT} :s :p ", '"{}"@en,\n', ":z }")),
    "trig: graphs": ("trig", pumped(TTL, f":g{{}} <{PROV}> 1 . :g{{}} {{ :a :b :c }}\n")),
    "trig: errors": ("trig", pumped(TTL, ":a :b << .\n")),
    "trig: torn": ("trig", pumped(TTL, ":a :b <x\n")),
    "trig: errors of a line": ("trig", pumped(TTL, ":a :b << . ")),
    "trig: escapes of a line": ("trig", pumped(TTL, ':a :b "\\q" . ')),
    "trig: braces of a line": ("trig", pumped(TTL, "} ")),
    "trig: errors of long lines": ("trig", pumped(TTL, ":a . " * 10_000 + "\n")),
    "trig: torn lines": ("trig", pumped(TTL, ":a :b <x\n:a :b :c> .\n")),
    "trig: messages": ("trig", pumped(
        f'VERSION "1.2-messages"\n{TTL}', f":a <{PROV}> 1 .\nMESSAGE\n")),
    "ttl: blank nodes": ("ttl", pumped(TTL, "_:a{} :b _:a1 .\n")),
    "ttl: numbers": ("ttl", pumped(f"{TTL}:a :b ", "1", " .")),
    "ttl: escapes": ("ttl", pumped(f'{TTL}:a :b "', "\\U0001F600", '" .')),
    "ttl: local names": ("ttl", pumped(f"{TTL}:a :b :", "a\\-", " .")),
    "n3: formulas": ("n3", pumped(f"{TTL}:a :b ", "{ :c :d ", "1", "}")),
    "n3: paths": ("n3", pumped(f"{TTL}:a :b :c", "!:c", " .")),
    # N-Quads, N-Triples
    "nq: lines": ("nq", pumped("", f'<u:g{{}}> <{PROV}> "1"^^<u:x> <u:g{{}}> .\n')),
    "nq: one line": ("nq", pumped('<u:a> <u:b> "', "a", '" .')),
    "nq: triple terms": ("nq", pumped("<u:a> <u:b> ", "<<( <u:a> <u:b> ", "<u:c>", " )>>")),
    "nq: blank nodes": ("nq", pumped("", "_:a{} <u:b> _:a1 _:g{} .\n")),
    "nq: spaces": ("nq", pumped("<u:a> <u:b> ", " \t", "<u:c> .")),
    "nq: errors": ("nq", pumped("", "<u:a <u:b> .\n")),
    "nq: carriage returns": ("nq", pumped("", "\r")),
    "nt: zeros": ("nt", pumped("", "\0")),
    # Compressed
    "gz: string": ("nq.gz", bomb(gzip.compress)),
    "gz: lines": ("nq.gz", lambda size: gzip.compress(b"\n" * (size * UNPACKED))),
    "gz: trig": ("trig.gz", bomb(gzip.compress, f'{TTL}{EVENT} :s :p """')),
    "gz: members": ("nq.gz", lambda size: gzip.compress(b"\n") * (size // 21)),
    "bz2: string": ("nq.bz2", bomb(bz2.compress)),
    "xz: string": ("nq.xz", bomb(lzma.compress)),
    "gz: json": ("jsonl.gz", bomb(gzip.compress, '{"t":1,"v":"')),
    "gz: csv": ("csv.gz", bomb(gzip.compress, 't,v\n1,"')),
    # Rows
    "jsonl: arrays": ("jsonl", pumped('{"t":1,"v":', "[", "1", "]")),
    "jsonl: objects": ("jsonl", pumped('{"t":1,"v":', '{"a":', "1", "}")),
    "jsonl: keys": ("jsonl", pumped('{"t":1', ',"a{}":1', "}")),
    "jsonl: other keys": ("jsonl", pumped("", '{"t":1,"a{}":1}\n')),
    "jsonl: number": ("jsonl", pumped('{"t":1,"v":', "1", "}")),
    "jsonl: string": ("jsonl", pumped('{"t":1,"v":"', "\\u00e9", '"}')),
    "jsonl: lines": ("jsonl", pumped("", '{"t":1,"v":[]}\n')),
    "jsonl: errors": ("jsonl", pumped("", '{"t":1,"v":\n')),
    "csv: columns": ("csv", many_and_many("t", ",a{}", "\n1", ",1", "\n")),
    "csv: rows": ("csv", pumped("t,v\n", "1,2\n")),
    "csv: cell": ("csv", pumped('t,v\n1,"', 'a""\n', '"\n')),
    "csv: quotes": ("csv", pumped("t,v\n", '"')),
    "csv: delimiters": ("csv", pumped("t,v\n", ";,\t|")),
    "parquet: zeros": ("parquet", parquet(lambda size: pa.array([0]).take(pa.array([0] * size)))),
    "parquet: strings": ("parquet", parquet(lambda size: pa.array(["a" * 10_000] * (size // 500)))),
    "arrow: zeros": ("arrow", arrow),
    # Others
    "sse: line": ("sse", pumped("data: ", "a")),
    "sse: lines": ("sse", pumped("", "data: a\n")),
    "sse: fields": ("sse", pumped("", "id: a\nevent: b\n:\n")),
    "sse: events": ("sse", pumped("", "data:\n\n")),
    "sse: id": ("sse", long_and_many("id: ", "a", "\n", "data:{}\n\n")),
    "json: arrays": ("json", pumped("", "[", "1", "]")),
    "json: objects": ("json", pumped("", '{"a":', "1", "}")),
    "json: numbers": ("json", pumped("[", "1", "]")),
    "jelly: zeros": ("jelly", pumped("", "\0")),
    "jelly: frames": ("jelly", pumped("", "\x02\x0a\x00")),
    **{name: ("jelly", make) for name, make in JELLY.items()},
}  # fmt: skip

TOKENS = {
    "rdf": ["<a>", "</a>", "<rdf:Description>", "</rdf:Description>", "<x:p>", "</x:p>", "<!--",
            "-->", "<![CDATA[", "]]>", "&amp;", "&a;", "<x:p rdf:parseType='Literal'>", "<", ">",
            '"', "'", "/>", "<rdf:li>1</rdf:li>", "<rdf:Description", " x:a='1'", " xmlns:b='u:'",
            " xml:lang='en'", " xml:base='a/'", "<?a", "?>", "<!DOCTYPE a [", '<!ENTITY a "b">',
            "]>", "<x:p rdf:parseType='Collection'>", "<x:p rdf:parseType='Resource'>", "a", "\n"],
    "jsonld": ["{", "}", "[", "]", ",", ":", '"@context":', '"@id":"u:a"', '"u:a":', '"@list":',
               '"@graph":', '"@type":', '"@value":', '"@reverse":', '"@included":', '"@set":',
               "1", "null", '"a"', '"@vocab":"u:"', '"a":"u:a"', '"@index":', '"@language":', "\n",
               '"a":{"@id":"u:a"}', '"@json"', '"@nest":', '"@base":"a/"', '"\\u0040context":'],
    "trig": ["<u:a>", ":a", "p:a", "_:a", '"a"', '"""', "'''", "1", "(", ")", "[", "]", "{", "}",
             ".", ";", ",", "<<(", ")>>", "<<", ">>", "{|", "|}", "~", "^^", "@en", "\n", " ",
             "@prefix p: <u:> .", "@base <a/> .", "#", "GRAPH", "a", "<", ">", "\\", "MESSAGE\n"],
    "nq": ["<u:a> ", "_:a ", '"a" ', '"a"@en ', "<<( ", ")>> ", ".\n", "\n", "# ", '"', "\\", "<",
           "> ", "^^", "MESSAGE\n", f"<{PROV}> ",
           '"1"^^<http://www.w3.org/2001/XMLSchema#integer> '],
    "ngsild": ["{", "}", "[", "]", ",", '"id":"u:a"', '"type":"T"', '"a":', '"value":1', "\n",
               '"type":"Property"', '"observedAt":"2026-01-01T00:00:00Z"', '"@context":', '"u:a"',
               '"data":', '"notifiedAt":', "1"],
    "jsonl": ["{", "}", "[", "]", ",", '"t":1', '"v":', "1", "1.5e300", '"a"', "\n", "null", "-",
              "NaN", '"\\ud800"', '"v":{"a":1}', "true", " ", "\r\n"],
    "csv": ["1", ",", ";", "\n", '"', '""', "a", "\t", "|", "2026-01-01", "\r\n", " ", "1.200"],
    "sse": ["data: a\n", "\n", "id: b\n", "event: c\n", ":\n", "\r", "data", "retry: 1\n", "\0"],
}  # fmt: skip


def drawn(draw: random.Random) -> tuple[str, str, Make]:
    """A document of pumped fragments of one syntax."""
    syntax = draw.choice(list(TOKENS))
    tokens = TOKENS[syntax]
    head = {"rdf": XML, "trig": TTL, "csv": "t,v\n"}.get(syntax, "")
    parts = [
        "".join(draw.choices(tokens, k=draw.randint(1, 5)))
        for _ in range(draw.choice((1, 1, 2, 3)))
    ]

    def make(size: int) -> bytes:
        each = size // len(parts)
        return (head + "".join(part * max(each // len(part), 1) for part in parts)).encode()

    return f"{syntax}: {parts!r}", syntax, make


# ------------------------------------------------------------------ doors

QUERY = """PREFIX : <http://e.org/>
SELECT * WITHIN 1 MINUTE FROM STREAM S :S WHERE { SEQ(A) DEFINE GPM A ON S { ?s ?p ?v } }"""
MAPPING = """PREFIX : <http://e.org/>
CONSTRUCT { :s :v ?v } WHERE { BIND(?t AS ?_time) }"""
MEDIA = {
    "rdf": "application/rdf+xml", "jsonld": "application/ld+json", "trig": "application/trig",
    "ttl": "text/turtle", "nq": "application/n-quads", "nt": "application/n-triples",
    "ngsild": "application/json", "ndjsonld": "application/x-ndjson", "n3": "text/n3",
    "jelly": "application/x-jelly-rdf",
}  # fmt: skip


def _read_events(path: Path, on_error: str = "stop") -> None:
    kind = "subject" if path.suffix in (".rdf", ".ttl", ".nt", ".n3") else "message"
    kind = "graph" if path.name.partition(".")[2].partition(".")[0] in ("nq", "trig") else kind
    options = ReadOptions(framing=Framing(kind), on_error=on_error)  # type: ignore[arg-type]
    for event in Source("urn:s", [str(path)], options, log=str):
        assert event is not None


def _read_subjects(path: Path) -> None:
    options = ReadOptions(framing=Framing("subject"), on_error="skip", arrival_time=True)
    for event in Source("urn:s", [str(path)], options, log=str):
        assert event is not None


def _skip_errors(path: Path) -> None:
    _read_events(path, "skip")


def _load(path: Path) -> None:
    open_kb({"urn:kb": path})


def _receive(path: Path) -> None:
    media_type = MEDIA[path.suffix[1:]]
    BodyReader("urn:s", ReadOptions(), TimeDomain()).read(
        Body(path.read_bytes(), media_type, "auto", True, 0), Relevance(Dictionary())
    )


def _read_page(path: Path) -> None:
    read_page(path.read_bytes(), MEDIA[path.suffix[1:]], "http://e.org/page", PROV)


def _parse(path: Path) -> None:
    with contextlib.suppress(Problem):
        parsed_json(path.read_bytes())


def _subscribe(path: Path) -> None:
    data, parser = path.read_bytes(), EventParser()
    with contextlib.suppress(ValueError):
        for start in range(0, len(data), 1 << 14):
            for _ in parser.feed(data[start : start + (1 << 14)]):
                pass


def _command(*arguments: str) -> None:
    status = cli.main(list(arguments))
    assert status in (0, 2), f"status {status}"


def _suggest(path: Path) -> None:
    _command("map", "--suggest", str(path))


def _map(path: Path) -> None:
    mapping = path.with_name("mapping.rq")
    mapping.write_text(MAPPING)
    _command("map", str(mapping), str(path))


def _convert(path: Path) -> None:
    _command("convert", str(path), str(path.with_name("out.nq")))


_RDF = ("rdf", "jsonld", "trig", "ttl", "nq", "nt", "n3")
_ROWS = ("jsonl", "jsonl.gz", "csv", "csv.gz", "parquet", "arrow")
DOORS: dict[str, tuple[Callable[[Path], None], tuple[str, ...]]] = {
    "events": (_read_events, (*_RDF, "ndjsonld", "ngsild", "jelly", "nq.gz", "nq.bz2", "nq.xz",
                              "trig.gz")),
    "skip": (_skip_errors, ("nq", "ndjsonld", "trig", "ttl", "jelly")),
    "subjects": (_read_subjects, ("jelly",)),
    "kb": (_load, (*_RDF, "nq.gz", "trig.gz")),
    "body": (_receive, tuple(MEDIA)),
    "page": (_read_page, _RDF),
    "convert": (_convert, ("rdf", "jsonld", "ngsild")),
    "suggest": (_suggest, _ROWS),
    "map": (_map, _ROWS),
    "subscribe": (_subscribe, ("sse",)),
    "request": (_parse, ("json",)),
}  # fmt: skip
"""The decoders, and the extensions of what they read."""


def doors_of(extension: str) -> list[str]:
    return [door for door, (_, extensions) in DOORS.items() if extension in extensions]


# ------------------------------------------------------------------ a child


def _status(name: str) -> int:
    """A size of this process in megabytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) // 1024
    return 0


def _run(door: str, path: Path, megabytes: float) -> str:
    """Read a document in this process, which the bounds may end."""
    room = int(MEGABYTES + MEGABYTES_PER_MEGABYTE * megabytes)
    seconds = int(CPU_SECONDS + CPU_SECONDS_PER_MEGABYTE * megabytes)
    resource.setrlimit(resource.RLIMIT_AS, ((_status("VmSize") + room) << 20,) * 2)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with open(os.devnull, "w") as null:
        os.dup2(null.fileno(), 1)
        os.dup2(null.fileno(), 2)
    try:
        DOORS[door][0](path)
    except (SpaseqError, Problem) as error:
        return f"refused: {str(error)[:200]}"
    except SystemExit as error:
        return f"refused: status {error.code}" if error.code == 2 else f"FAULT status {error.code}"
    except BaseException:
        return "FAULT " + traceback.format_exc(limit=-4)
    return "read"


def tried(door: str, extension: str, data: bytes, megabytes: float) -> tuple[str, float, int]:
    """What a child says of a document, its processor time, and its megabytes.

    megabytes: The size of what the document contains.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"document.{extension}"
        path.write_bytes(data)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            os.chdir(folder)
            before = _status("VmHWM")
            said = _run(door, path, megabytes)
            taken = _status("VmHWM") - before
            os.write(writing, json.dumps([said[-3000:], taken]).encode())
            os._exit(0)
        os.close(writing)
        # The processor time is bounded; a child that waits for something is ended here.
        limit = 600 + 20 * (CPU_SECONDS + CPU_SECONDS_PER_MEGABYTE * megabytes)
        timer = _ended_after(child, limit)
        with os.fdopen(reading, "rb") as pipe:
            answer = pipe.read()
        _, status, usage = os.wait4(child, 0)
        os.kill(timer, signal.SIGKILL)
        os.waitpid(timer, 0)
    seconds = usage.ru_utime + usage.ru_stime
    if os.WIFSIGNALED(status):
        return f"FAULT {signal.Signals(os.WTERMSIG(status)).name}", seconds, 0
    said, taken = json.loads(answer)
    return said, seconds, taken


def _ended_after(child: int, seconds: float) -> int:
    """A process that kills the child after some time."""
    timer = os.fork()
    if timer == 0:
        time.sleep(seconds)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os._exit(0)
    return timer


# ------------------------------------------------------------------ the campaign


class Campaign:
    """Tries documents, and counts what became of them."""

    def __init__(self, verbose: bool = False):
        self.verbose = verbose
        self.came: Counter[str] = Counter()
        self.faults: list[str] = []
        self.slowest: list[tuple[float, str]] = []
        self.largest: list[tuple[int, str]] = []

    def document(self, name: str, extension: str, make: Make, size: int, seed: str = "") -> None:
        """Try one document at each door that reads it."""
        data = make(size)
        packed = UNPACKED if extension.endswith(("gz", "bz2", "xz", "parquet", "arrow")) else 1
        for door in doors_of(extension):
            said, seconds, megabytes = tried(door, extension, data, size * packed / 1e6)
            self.came[said.partition(":")[0].split()[0]] += 1
            line = f"{door}: {name}{seed}, {len(data):,} bytes: {seconds:.1f} s, {megabytes} MB: "
            line += said
            self.slowest = sorted([*self.slowest, (seconds, line[:160])])[-10:]
            self.largest = sorted([*self.largest, (megabytes, line[:160])])[-3:]
            if said.startswith("FAULT"):
                self.faults.append(line)
            if self.verbose or said.startswith("FAULT"):
                print(line, flush=True)

    def all_shapes(self, size: int, wanted: str = "") -> None:
        for name, (extension, make) in SHAPES.items():
            if wanted in name:
                self.document(name, extension, make, size)

    def drawn(self, size: int, seed: str) -> None:
        name, extension, make = drawn(random.Random(seed))
        self.document(name, extension, make, size, f" (seed {seed})")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=0, help="of drawn documents")
    parser.add_argument("--size", type=int, default=100_000, help="bytes of those made by hand")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--drawn", help="the seed of one drawn document")
    parser.add_argument("--shape", default="", help="only shapes whose names contain this")
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    campaign = Campaign(arguments.verbose or bool(arguments.shape or arguments.drawn))
    end, number = time.monotonic() + arguments.seconds, 0
    if arguments.drawn:
        campaign.drawn(arguments.size, arguments.drawn)
    else:
        campaign.all_shapes(arguments.size, arguments.shape)
    while time.monotonic() < end:
        seed = f"{arguments.seed}.{number}"
        chance = random.Random(f"size {seed}")
        campaign.drawn(int(10 ** chance.uniform(3, math.log10(max(arguments.size, 2e6)))), seed)
        number += 1
    print(f"{campaign.came.total():,} documents: {dict(campaign.came)}")
    for _, line in campaign.slowest:
        print("slowest:", line)
    for _, line in campaign.largest:
        print("largest:", line)
    return 1 if campaign.faults else 0


if __name__ == "__main__":
    sys.exit(main())
