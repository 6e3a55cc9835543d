"""The names of closed graphs against the plainest model: a list of the last 65,536."""

from __future__ import annotations

import random
from collections import deque

import pytest

from spaseq.rdf.native._framing import ClosedNames

REMEMBERED = 1 << 16


def many(count: int, form: str) -> list[bytes]:
    return [form.format(i).encode() for i in range(count)]


@pytest.mark.parametrize(
    "form", ["<http://example.org/graph/{}>", "_:b{}", "<urn:uuid:{0:08x}-{0:032x}>", "{}"]
)
def test_the_oldest_is_forgotten_for_the_newest(form: str) -> None:
    names = ClosedNames()
    texts = many(3 * REMEMBERED, form)
    for i, text in enumerate(texts):
        assert not names.py_holds(text)
        names.py_add(text)
        if i % 1000 == 999 or i in (0, 255, 256, 4095, 4096, REMEMBERED - 1, REMEMBERED):
            oldest = max(0, i + 1 - REMEMBERED)
            assert len(names) == i + 1 - oldest
            assert names.py_holds(texts[oldest])
            assert names.py_holds(text)
            assert oldest == 0 or not names.py_holds(texts[oldest - 1])


def test_every_name_is_held_and_no_other() -> None:
    names = ClosedNames()
    texts = many(2 * REMEMBERED, "<e:{}>")
    for text in texts:
        names.py_add(text)
    assert all(map(names.py_holds, texts[REMEMBERED:]))
    assert not any(map(names.py_holds, texts[:REMEMBERED]))


def test_texts_that_share_the_beginning_or_do_not() -> None:
    names = ClosedNames()
    held = [b"<http://e/a>", b"<http://e/", b"<http://e/b>", b"b>", b"<http://f/b>", b"<http:"]
    for text in held:
        assert not names.py_holds(text)
        names.py_add(text)
    assert all(map(names.py_holds, held))
    for text in (b"a>", b"<http://e/c>", b"<http://e/a", b"<http://f/a>", b""):
        assert not names.py_holds(text)


@pytest.mark.parametrize("longest", [3, 40, 3000])
def test_names_of_any_length_in_a_ring(longest: int) -> None:
    draw = random.Random(longest)
    names = ClosedNames()
    order: deque[bytes] = deque()
    held: set[bytes] = set()
    for i in range(REMEMBERED + 30_000):
        # Short names follow long ones and the other way round, so that the ring wraps.
        size = draw.randrange(1, longest if i // 5000 % 2 else 4)
        beginning = draw.choice((b"<http://example.org/", b"<e:", b""))
        text = beginning + draw.randbytes(4) * size
        assert names.py_holds(text) == (text in held)
        if text in held:
            continue
        names.py_add(text)
        order.append(text)
        held.add(text)
        if len(order) > REMEMBERED:
            held.discard(order.popleft())
        if i % 97 == 0:
            assert names.py_holds(draw.choice(order))
    assert len(names) == REMEMBERED
    assert all(map(names.py_holds, held))
