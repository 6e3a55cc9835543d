"""Draws command lines: every command with every option, and values that people give by mistake."""

from __future__ import annotations

import random
from pathlib import Path

import click

from spaseq.cli import command_line

QUERY = """PREFIX : <http://example.org/>
SELECT ?v WITHIN 1 MINUTE FROM STREAM S :S WHERE { SEQ(A) DEFINE GPM A ON S { ?s :p ?v } }"""
MAPPING = """PREFIX : <http://example.org/>
CONSTRUCT { :s :p ?v } WHERE { BIND(?t AS ?_time) }"""
STREAM = """<http://example.org/g> <http://www.w3.org/ns/prov#generatedAtTime> 1 .
<http://example.org/g> { <http://example.org/s> <http://example.org/p> 1 }
"""
FILES: dict[str, bytes] = {
    "q.rq": QUERY.encode(),
    "map.rq": MAPPING.encode(),
    "s.trig": STREAM.encode(),
    "kb.ttl": b"<http://example.org/a> a <http://example.org/b> .",
    "rows.csv": b"t,v\n1,2\n2,x\n",
    "rows.jsonl": b'{"t": 1, "v": 2}\n{"t": 2, "v": [1]}\n',
    "matches.jsonl": b'{"query": "q", "start": 1, "end": 2, "bindings": {}, "events": []}\n',
    "options.toml": b'query = "q.rq"\n',
    "empty": b"",
    "binary": bytes(range(256)) * 8,
    "latin1.rq": "SELECT ?ä".encode("latin1"),
    "zip.trig": b"PK\x03\x04" + b"\0" * 40,
    "gzip.nq": b"\x1f\x8b\x08\x00broken",
    "array.json": b'[{"t": 1, "v": 2}]',
    "page.html": b"<!DOCTYPE html><html><body>404</body></html>",
    "state.bin": b"spaseq\0\0\0\0",
    "functions.py": b"def f(x): return x\n",
    "broken.py": b"def f(:\n",
    "raises.py": b"raise ValueError('no')\n",
}
"""The files of the folder in which the commands run; it also has a folder."""
NAMES = [*FILES, "folder", "missing", "folder/missing", "", "-", "/dev/null", "ä☃.nq"]
PREFIXES = ["S=", "x=", "=", "http://example.org/S=", "map=", ""]
WORDS = [
    "", "x", "S", "0", "-1", "1", "1.5", "1e999", "nan", "99999999999999999999", "1s", "1 hour",
    "-1s", "1x", "never", "auto", "graph", "triples:0", "triples:x", "triples:2", "s", "ms", "skip",
    "stop", "shed", "open", "close", "csv", "jsonl", "table", "parquet", "nq", "ttl", "jelly",
    "rdfs", "owl-ql", "http://example.org/p", "<http://example.org/p>", "a/b/c", "^a", "S=<a>",
    'S="x"@en', "S=1", "512M", "2G", "1T9", "-5M",
    "n=\"300\"^^<http://www.w3.org/2001/XMLSchema#unsignedByte>",
    ":0", "127.0.0.1:99999", "[::1]:0", "host:port", "a:b:c", "start,end", "start,start", "query",
    "sqlite:m.db", "sqlite:folder", "nosuch://host/x", "file:///missing", "☃", "\udcff", "a" * 5000,
]  # fmt: skip
NO_RUNS = {"serve", "remote", "bench", "generate"}
"""Commands that wait for clients or take long."""
ENDLESS = {"--follow", "--metrics", "--clock", "--help", "--functions", "--config", "--state"}
"""Options that wait for more input or start what the process keeps; other tests have them."""


def write_files(folder: Path) -> None:
    """Write the files that the command lines name."""
    for name, data in FILES.items():
        (folder / name).write_bytes(data)
    (folder / "folder").mkdir()


def draw(chance: random.Random) -> list[str]:
    """A command line; it ends by itself."""
    name = chance.choice([name for name in command_line.commands if name not in NO_RUNS])
    command = command_line.commands[name]
    words = [name]
    if chance.random() < 0.8:
        words += _sensible(name)
    for _ in range(chance.choice((0, 1, 1, 2, 4))):
        words += _option(command, chance)
    for _ in range(chance.choice((0, 0, 0, 1, 2))):
        words.append(chance.choice(NAMES))
    return words


def _sensible(name: str) -> list[str]:
    """Arguments with which a command works."""
    return {
        "run": ["q.rq", "--stream", "S=s.trig"],
        "check": ["q.rq"],
        "fmt": ["--check", "q.rq"],
        "explain": ["q.rq"],
        "convert": ["s.trig", "out.nq"],
        "map": ["map.rq", "rows.csv"],
        "plot": ["matches.jsonl"],
        "completion": ["bash"],
    }[name]


def _option(command: click.Command, chance: random.Random) -> list[str]:
    """An option of a command with a value."""
    options = [
        option
        for option in command.params
        if isinstance(option, click.Option) and not ENDLESS & set(option.opts)
    ]
    if not options:
        return [chance.choice(WORDS)]
    option = chance.choice(options)
    word = chance.choice([*option.opts, *option.secondary_opts])
    if option.is_flag:
        return [word]
    if isinstance(option.type, click.Choice) and chance.random() < 0.7:
        return [word, chance.choice([str(each) for each in option.type.choices])]
    if chance.random() < 0.5:
        return [word, chance.choice(PREFIXES) + chance.choice(NAMES)]
    return [word, chance.choice(WORDS)]
