"""Turtle and TriG documents, drawn and damaged: the compiled reader against the plain one.

A document is drawn by the grammar, or taken from a folder of real files, and mutated: bytes are
changed, and pieces of one file are put into another. It is read in several ways and block sizes;
events, times, labels, lines, errors, the log and all counters must be those of the plain reader
(tests/unit/io/plain_reader.py), which lets pyoxigraph parse everything.

As a script it runs for some time and prints what it has tried. With `--whole` it uses only real
files, does not shorten them, and changes them in many places, so that it covers many bytes:

    python tests/fuzz/documents.py --seconds 600 --seed 7 --files /path/to/data --whole
"""

from __future__ import annotations

import argparse
import os
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "unit" / "io"))

from outcome import Outcome, assert_same

import spaseq.io.lines
from spaseq.rdf.native._terms import Dictionary, Relevance

PROV = "http://www.w3.org/ns/prov#"
XSD = "http://www.w3.org/2001/XMLSchema#"
_ADJACENT = re.compile(rb"[.{]@?message", re.IGNORECASE)
_BRACES = re.compile(rb"#[^\n]*[{}]")
_PLACE = re.compile(
    r":\d+\b(?=: )|\bline \d+|, which began at (?:line )?\S+|, column \d+|  \S+:\d+;"
)
LARGEST_FILE = 200_000
"""The maximum number of bytes of a real file."""

HEAD = (
    f"@prefix : <http://e/> . @prefix p: <http://e/p#> .\n@prefix prov: <{PROV}> .\n"
    f"PREFIX xsd: <{XSD}>\nprefix u: <urn:x>\n"
)
DIRECTIVES = [
    "@prefix : <http://f/> .", "PREFIX p: <http://e/q#>", "base <http://b/c/d>", "@base <x/> .",
    "@base <#y> .", "VERSION '1.2'", '@version "1.2" .', "@prefix é.x: <http://é/> .",
    "prefix : <rel>", "PREFIX q:<urn:q:>", "@prefix open: <http://e> .", "BASE <urn:b:c>",
]  # fmt: skip
IRIS = [
    ":a", ":b", ":c", "p:x", "p:", ":", "u:n", "<http://e/a>", "<http://e/b#c>", "<x>", "<#f>",
    "<>", "<../y>", "<?q>", "<//h/p>", "<urn:x:1>", "<http://[::1]/>", "<http://e/é>",
    "<http://e/\\u00e9>", ":a.b", ":a..b", "p:1", "p:a\\/b", "p:\\-x", "p:a%41", "p:é", "p:a:b",
    "u:\\/n", ":long" + "x" * 40, "<http://example.org/" + "y" * 40 + ">", "<x/y.z>", "<./x>",
    "<\\u0078>", "p:_", "p:a-b", "u:n\\#1",
]  # fmt: skip
PREDICATES = ["a", ":p", "p:q", "<http://e/p>", "<http://e/q>", "prov:generatedAtTime", ":r"]
LABELS = ["_:x", "_:y", "_:a.b", "_:0", "_:é"]
LITERALS = [
    "1", "-1", "+1", "1.5", "-.5", "1e3", "1.e3", ".5E-1", "true", "false", "007", '"a"', "'a'",
    '""', "''", '"""a"""', "'''a'''", '"""a\nb"""', "'''a''b\n\n'c'''", '"""\\"""\\\\"""',
    '"a"@en', "'a'@EN-us", '"a"@en--ltr', '"a"@en-Latn-DE', '"a"^^xsd:string', "'a'^^:t",
    '"1"^^xsd:integer', '"1.5"^^<http://www.w3.org/2001/XMLSchema#decimal>', '"a"^^<rel>',
    '"""1"""^^xsd:int', '"a" ^^ :t', '"a" @en', '"a"\n^^\n:t', '"a"\n@en', '"a" # c\n',
    '"\\t\\u00e9\\U0001F600"', "'\"'", '"\'"', '"é"', '"a"^^p:a\\/b', '"x"^^xsd:double',
    '"' + "z" * 50 + '"', '"""' + "line\n" * 6 + '"""', '"""a\r\nb\rc"""',
]  # fmt: skip
ODD = [
    "<<( :a :b :c )>>", "<< :a :b :c >>", "_:", "x:y", "<a b>", '"\\ud800"', '"\\x"', "@en",
    '"a"@e', '"a"^^', "'open", '"""open', "<open", "1.", "1e", "True", ".", ";", ",", "[", "]",
    "(", ")", "{", "}", "{| :a :b |}", "~ :r", "MESSAGE", "@message .", "GRAPH", "@prefix", "\0",
    "é", ":a\\", ":%4", "'a'^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>",
    "\xff", "<http://e/\\u0020>", '"a"@en--up', ":-", "message", "base", "^^", "=>", "<=", "?v",
]  # fmt: skip
SPACE = [" "] * 12 + ["", "\n", "\t", "  ", " # comment\n", "\r\n", "\r", "\n\n"]


class Drawn:
    """Draws documents; `odd` is the share of tokens that are out of place."""

    def __init__(self, draw: random.Random, odd: float):
        self.draw = draw
        self.odd = odd

    def document(self, named_graphs: bool, messages: bool) -> str:
        draw = self.draw
        parts = ['VERSION "1.2-messages"\n'] if messages and draw.random() < 0.8 else []
        parts += [HEAD] if draw.random() < 0.95 else []
        for second in range(draw.randrange(1, 7)):
            if draw.random() < 0.15:
                parts.append(draw.choice(DIRECTIVES) + "\n")
            name = draw.choice([f":g{second}", f"<http://e/g{second}>", f"_:g{second}", "[]"])
            stamp = f"{name} prov:generatedAtTime {second} .\n"
            if named_graphs and draw.random() < 0.8:
                if draw.random() < 0.6:
                    parts.append(stamp)
                if draw.random() < 0.1:
                    name = draw.choice(["", "GRAPH " + name, f":g{second - 1}"])
                parts.append(f"{name}{self.space()}{{{self.block()}}}{self.space()}")
                if draw.random() < 0.4:
                    parts.append("\n" + stamp)
            else:
                parts += [self.statement() + self.space() + "." + self.gap(), stamp]
            if messages:
                parts.append(draw.choice(["\nMESSAGE\n", "\n@message .\n", " message ", ""]))
        return "".join(parts)

    def space(self) -> str:
        if self.draw.random() < self.odd / 4:
            return self.draw.choice([" " + self.draw.choice(ODD) + " ", "."])
        return self.draw.choice(SPACE)

    def gap(self) -> str:
        """Space between tokens that would otherwise be read as one token."""
        return self.space() or (" " if self.draw.random() >= self.odd else "")

    def block(self) -> str:
        statements = [self.statement() for _ in range(self.draw.randrange(4))]
        return self.space() + (self.space() + "." + self.gap()).join(statements) + self.space()

    def statement(self) -> str:
        subject = self.subject()
        if subject.startswith("[ ") and self.draw.random() < 0.5:
            return subject
        return subject + self.gap() + self.properties(2)

    def subject(self) -> str:
        kind = self.draw.random()
        if kind < 0.7:
            return self.draw.choice(IRIS)
        if kind < 0.85:
            return self.draw.choice(LABELS)
        if kind < 0.9:
            return "[]"
        return self.brackets(1) if kind < 0.95 else self.items(1)

    def properties(self, depth: int) -> str:
        draw = self.draw
        lists = []
        for _ in range(draw.choice([1, 1, 2, 3])):
            objects = [self.value(depth) for _ in range(draw.choice([1, 1, 1, 2, 3]))]
            comma = self.space() + "," + self.space()
            lists.append(draw.choice(PREDICATES) + self.gap() + comma.join(objects))
        text = (self.space() + ";" + self.space()).join(lists)
        return text + draw.choice([""] * 6 + [";", " ; ;"])

    def value(self, depth: int) -> str:
        draw = self.draw
        if draw.random() < self.odd:
            return draw.choice(ODD)
        kind = draw.random()
        if kind < 0.3:
            return draw.choice(IRIS)
        if kind < 0.4:
            return draw.choice(LABELS)
        if kind < 0.8 or depth == 0:
            return draw.choice(LITERALS)
        if kind < 0.84:
            return draw.choice(["[]", "[ ]", "()", "( )"])
        return self.brackets(depth) if kind < 0.92 else self.items(depth)

    def brackets(self, depth: int) -> str:
        return "[ " + self.properties(depth - 1) + self.space() + "]"

    def items(self, depth: int) -> str:
        some = [self.value(depth - 1) for _ in range(self.draw.randrange(1, 4))]
        return "(" + self.space() + self.gap().join(some) + self.space() + ")"


def mutated(draw: random.Random, data: bytes, other: bytes, changes: int | None = None) -> bytes:
    """A document with a given number of changes, or a few; some come from another document."""
    text = bytearray(data)
    for _ in range(draw.choice([0, 1, 1, 2, 5]) if changes is None else changes):
        place = draw.randrange(len(text) + 1)
        change = draw.randrange(6)
        if change == 0:
            del text[place : place + draw.choice([1, 1, 2, 10])]
        elif change == 1:
            text[place:place] = bytes(
                [draw.choice(b"<>\"'\\_:.@^# \t\n\r\0\xff\xc3abc%[](){}|;,~")]
            )
        elif change == 2:
            text[place : place + 1] = bytes([draw.randrange(256)])
        elif change == 3:
            start = draw.randrange(len(other) + 1)
            text[place:place] = other[start : start + draw.choice([3, 20, 100])]
        elif change == 4:
            text[place:place] = draw.choice(ODD + LITERALS + IRIS).encode("latin-1", "replace")
        elif draw.random() < 0.2:
            del text[place:]
    return bytes(text)


WAYS: list[dict[str, object]] = [
    {"events": "graph", "arrival_time": True},
    {"events": "graph", "arrival_time": True, "on_error": "skip"},
    {"events": "graph", "on_error": "skip"},
    {"events": "triples:1"},
    {"events": "triples:1", "on_error": "skip"},
    {"events": "message", "on_error": "skip", "arrival_time": True},
    {"events": "message", "arrival_time": True},
    {"on_error": "skip", "time_predicate": "http://e/p"},
]


def check(folder: Path, name: str, data: bytes, way: dict[str, object], block: int) -> Outcome:
    """Compare the two readers on a document, which is read in blocks of some bytes.

    Raises:
        AssertionError: if they differ.
    """
    path = folder / name
    path.write_bytes(data)
    model = Outcome(path, True, **way)
    usual = spaseq.io.lines._FILE_BLOCK
    spaseq.io.lines._FILE_BLOCK = block or usual
    try:
        read = Outcome(path, False, Relevance(Dictionary()) if len(data) % 2 else None, **way)
    finally:
        spaseq.io.lines._FILE_BLOCK = usual
    if _ADJACENT.search(data):
        # The plain reader needs space before a delimiter, or words the error differently.
        return model
    if any("not JSON-LD" in line for line in (model.error, *model.log)):
        # A damaged document may begin as JSON does, and is then read as JSON-LD.
        assert "not JSON-LD" in " ".join((read.error, *read.log))
        return model
    is_long = b'"""' in data or b"'''" in data
    is_torn = b"{" in data and any(": not TriG" in line for line in model.log)
    is_torn |= _BRACES.search(data) is not None
    if (is_long or is_torn) and way.get("on_error") == "skip" and model.log:
        # The plain reader continues at another line after an error if a string of several lines is
        # next to it, or a brace before it.
        assert read.log
        assert _PLACE.sub("", read.log[0]) == _PLACE.sub("", model.log[0])
        return model
    if is_long:
        # It counts the lines of such a string before its statement.
        _without_lines(read)
        _without_lines(model)
    assert_same(read, model, data)
    return model


def _without_lines(outcome: Outcome) -> None:
    outcome.shown = [(*event[:5], *event[6:]) for event in outcome.shown]
    outcome.error = _PLACE.sub("", outcome.error)
    outcome.log = [_PLACE.sub("", line) for line in outcome.log]


def whole(folder: Path, draw: random.Random, files: Sequence[bytes]) -> tuple[Outcome, int]:
    """Damage a whole real file and check it. Returns its outcome and its bytes."""
    data = draw.choice(files)
    # Without `on_error=skip` the first change would end the reading, so there is one at most.
    way = draw.choice(WAYS)
    most = 1 + len(data) // 2000 if way.get("on_error") == "skip" else 1
    data = mutated(draw, data, draw.choice(files), draw.randrange(most + 1))
    name = "s.trig" if draw.random() < 0.6 else "s.ttl"
    return check(folder, name, data, way, draw.choice([0, 0, 4096, 300])), len(data)


def one(folder: Path, draw: random.Random, files: Sequence[bytes]) -> tuple[Outcome, int]:
    """Draw a document and check it. Returns its outcome and its bytes."""
    named = draw.random() < 0.6
    way = draw.choice(WAYS)
    if files and draw.random() < 0.5:
        data = draw.choice(files)
        if len(data) > 3000 and draw.random() < 0.8:
            start = draw.randrange(len(data))
            data = data[:1000] + data[start : start + 2000]
        data = mutated(draw, data, draw.choice(files))
    else:
        odd = draw.choice([0, 0, 0.02, 0.1])
        messages = way["events"] == "message" if "events" in way else draw.random() < 0.2
        text = Drawn(draw, odd).document(named, messages)
        data = text.encode("latin-1" if "\xff" in text and "🚀" not in text and odd > 0.05
                           else "utf-8", "replace")  # fmt: skip
        if draw.random() < 0.4:
            data = mutated(draw, data, data)
    block = draw.choice([0, 0, 1, 7, 40, 300])
    return check(folder, "s.trig" if named else "s.ttl", data, way, block), len(data)


def real_files(folder: str | None) -> list[bytes]:
    """The Turtle and TriG files below a folder that are not too large."""
    found = []
    for path in sorted(Path(folder).rglob("*.t*")) if folder else ():
        if path.suffix in (".ttl", ".trig") and path.stat().st_size <= LARGEST_FILE:
            found.append(path.read_bytes())
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    arguments.add_argument("--seconds", type=float, default=60)
    arguments.add_argument("--seed", default="0")
    arguments.add_argument("--files", default=os.environ.get("SPASEQ_DATA"))
    arguments.add_argument("--whole", action="store_true")
    given = arguments.parse_args()
    draw = random.Random(given.seed)
    files = real_files(given.files)
    if given.whole and not files:
        arguments.error("--whole needs real files: --files FOLDER")
    step = whole if given.whole else one
    tried: Counter[str] = Counter()
    end = time.monotonic() + given.seconds
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end:
            model, size = step(Path(folder), draw, files)
            tried["documents"] += 1
            tried["bytes"] += size
            tried["events"] += len(model.events)
            tried["with errors"] += bool(model.error or model.log)
    print(", ".join(f"{count} {what}" for what, count in tried.items()))


if __name__ == "__main__":
    main()
