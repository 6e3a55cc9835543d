"""The answers to bodies with an `Idempotency-Key`, so that a repeated body changes nothing.

A client that has got no answer cannot know whether its body was accepted. If it sends the body
again with the same key, it gets the answer of the first time. The answers are a part of the
machine: they survive a restart, and are found again from the journal.

Memory: the last `MAX_ANSWERS` answers, and `MAX_BYTES`.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

from spaseq.server.problems import Problem

MAX_ANSWERS = 10_000
"""The most answers that are kept."""
MAX_BYTES = 1 << 22
"""The most bytes of their keys and texts."""
MAX_KEY_BYTES = 255
"""The longest key."""


def digest_of(stream: str, media_type: str, data: bytes) -> str:
    """What identifies the content of a body."""
    digest = blake2b(f"{stream}\n{media_type}\n".encode(), digest_size=16)
    digest.update(data)
    return digest.hexdigest()


class Repeats:
    """The last answers."""

    def __init__(self) -> None:
        self._answers: OrderedDict[str, tuple[str, str]] = OrderedDict()
        """Key → the digest of the body, and its answer as JSON."""
        self._bytes = 0

    def find(self, key: str, digest: str) -> dict[str, Any] | None:
        """The answer of the first time; None: the key is new, or empty.

        Raises:
            Problem: if another body had the key.
        """
        known = self._answers.get(key) if key else None
        if known is None:
            return None
        if known[0] != digest:
            raise Problem(
                422, f"another body had the Idempotency-Key {key}: give each body its own",
                "repeated",
            )  # fmt: skip
        answer: dict[str, Any] = json.loads(known[1])
        return answer

    def add(self, key: str, digest: str, answer: Mapping[str, Any]) -> None:
        """Keep an answer, and forget the oldest ones."""
        text = json.dumps(answer, ensure_ascii=False)
        self._put(key, digest, text)

    def _put(self, key: str, digest: str, text: str) -> None:
        self._answers[key] = digest, text
        self._bytes += len(key) + len(digest) + len(text)
        while len(self._answers) > MAX_ANSWERS or self._bytes > MAX_BYTES:
            oldest, (of_body, said) = self._answers.popitem(last=False)
            self._bytes -= len(oldest) + len(of_body) + len(said)

    def state(self) -> list[list[str]]:
        """The answers as data for `restore`, the oldest first."""
        return [[key, *answer] for key, answer in self._answers.items()]

    def restore(self, saved: Iterable[list[str]]) -> None:
        """Return to a state."""
        for key, digest, text in saved:
            self._put(key, digest, text)
