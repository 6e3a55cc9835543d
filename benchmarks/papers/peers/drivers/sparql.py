"""The questions in SPARQL, asked of the events of a window when one of the last kind arrives.

    python sparql.py NAME WINDOW KIND KIND …

An event is `?e a :KIND ; :t TIME ; :k KEY`. The text has `<end>` in place of the event that
has just arrived. Events that are too old have been removed from the store before.
"""

from __future__ import annotations

import sys
from itertools import pairwise

from protocol import Question

EX = "http://example.org/"
END = "<end>"


def text(question: Question) -> str:
    count = len(question.kinds)
    names = [END if number == count else f"?e{number}" for number in range(1, count + 1)]
    times = [f"?t{number}" for number in range(1, count + 1)]
    keys = ["?k" if question.name == "key" else f"?k{number}" for number in range(1, count + 1)]
    parts = [
        f"{name} a :{kind} ; :t {time} ; :k {key} ."
        for name, kind, time, key in zip(names, question.kinds, times, keys, strict=True)
    ]
    for (before, after), kind in zip(pairwise(times), question.kinds[1:], strict=True):
        parts.append(f"FILTER({before} < {after})")
        if question.name == "next":
            between = f"FILTER({before} < ?t && ?t < {after})"
            parts.append(f"FILTER NOT EXISTS {{ ?x a :{kind} ; :t ?t . {between} }}")
    return f"PREFIX : <{EX}> SELECT (COUNT(*) AS ?n) WHERE {{ {' '.join(parts)} }}"


if __name__ == "__main__":
    name, window, *kinds = sys.argv[1:]
    print(text(Question(name, int(window), kinds)))
