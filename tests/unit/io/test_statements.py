"""Statements and their lines against the plainest reader there is: one line at a time."""

import io

import pyoxigraph as ox
from hypothesis import assume, given
from hypothesis import strategies as st

from spaseq.io.lines import Lines
from spaseq.io.read_options import Counters, Troubles
from spaseq.io.statements import LineFeed, line_statements
from spaseq.rdf.compression import compression_of
from spaseq.rdf.formats import N_QUADS

LINES = st.sampled_from(
    [
        b"<e:s> <e:p> <e:o> .", b'<e:s> <e:p> "a # b" <e:g> . # c', b"_:b <e:p> _:b .",
        b"  <e:s>\t<e:p> 'x' .", b"", b"  ", b"# comment", b"  # <e:s> <e:p> <e:o> .",
        b'<e:s> <e:p> "open .', b"<e:s> <e:p> <e:o>", b"<e:s> <e:p> .", b"rubbish",
        b'<e:s> <e:p> "\xff" .', b"<e:s> <e:p> <e:o> . <e:s> <e:p> <e:o> .", b'"',
        b'VERSION "1.2"', b"VERSION", b"MESSAGE", b" MESSAGE # now", b"MESSAGE .",
        b"<e:s> <e:p> <<( <e:a> <e:b> <e:c> )>> .", b"_:", b"<e:MESSAGE> <e:p> <e:o> .",
    ]
)  # fmt: skip


class Dribble(io.BytesIO):
    """A file that hands out a few bytes at a time, as a pipe may."""

    def __init__(self, data: bytes, size: int):
        super().__init__(data)
        self._size = size

    def read1(self, size: int | None = -1) -> bytes:
        return super().read1(self._size)


def one_by_one(lines: list[bytes]) -> tuple[list[tuple[str, int]], list[int]]:
    """The statements and the numbers of bad lines, each line parsed alone."""
    good: list[tuple[str, int]] = []
    bad: list[int] = []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text in (b"MESSAGE", b"MESSAGE # now"):
            good.append(("None", number))
        elif text != b'VERSION "1.2"':
            try:
                quads = []
                for quad in ox.parse(line, format=ox.RdfFormat.N_QUADS):
                    quads.append(quad)
            except SyntaxError:
                bad.append(number)
            good += [(str(quad), number) for quad in quads]
    return good, bad


@given(st.lists(LINES, max_size=12), st.sampled_from([b"\n", b"\r\n"]), st.integers(1, 60))
def test_blocks_change_nothing(lines: list[bytes], ending: bytes, size: int) -> None:
    log: list[str] = []
    troubles = Troubles("skip", Counters(), log.append)
    source = Lines("-", Dribble(ending.join(lines), size))
    read = [(str(quad), line) for quad, line in line_statements(source, N_QUADS, troubles)]
    good, bad = one_by_one(lines)
    assert read == good
    assert [int(text.split(":")[2]) for text in log] == bad


@given(st.lists(st.binary(max_size=20), max_size=8), st.integers(1, 9))
def test_a_feed_hands_out_everything_line_by_line(parts: list[bytes], size: int) -> None:
    data = b"\n".join(parts).removeprefix(b"\xef\xbb\xbf")
    assume(compression_of(data) is None)
    feed = LineFeed(Lines("-", io.BytesIO(data)))
    pieces = list(iter(lambda: feed.read(size), b""))
    assert b"".join(pieces) == data
    assert all(len(piece) <= size for piece in pieces)
    if b'"""' not in data and b"'''" not in data:
        assert all(b"\n" not in piece[:-1] for piece in pieces)
