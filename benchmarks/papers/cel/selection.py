"""CEL's selectors NXT and LAST over uniform and skewed streams.

`T+ : H` of φ6 under NEXT, LAST and ALL, where half of the readings are an H, or one in a hundred.
The matches that a selector leaves become objects, the first ten of each event.

    python benchmarks/papers/cel/selection.py
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[2] / "automaton"))
sys.path.append(str(Path(__file__).parent))

import formulas
from figure import Axis, Case, Figure, Line, main, rates
from workloads import FIRST

WINDOWS = (30, 100, 300)
MODES = {"ALL": "", "NEXT": "EMIT NEXT", "LAST": "EMIT LAST"}


def figure(short: bool) -> Figure:
    count, passes, windows = (2_000, 1, WINDOWS[:2]) if short else (5_000, 3, WINDOWS)
    lines = []
    for skewed in (False, True):
        events = formulas.readings(count, skewed)
        for mode, clause in MODES.items():
            texts = {float(n): formulas.text("φ6", n, clause) for n in windows}
            cases = {n: Case(one, events, most=FIRST, chosen=True) for n, one in texts.items()}
            name = f"{mode}, {'one H in 100' if skewed else 'uniform'}"
            lines.append(Line(name, rates(cases, passes)))
    last = {line.name: line.points[-1].median for line in lines}
    shown = "; ".join(
        f"{kind}: NEXT {last[f'NEXT, {kind}'] / last[f'ALL, {kind}']:.2f}, "
        f"LAST {last[f'LAST, {kind}'] / last[f'ALL, {kind}']:.2f}"
        for kind in ("uniform", "one H in 100")
    )
    return Figure(
        name="cel-selectors",
        question="What do NEXT and LAST cost, on uniform and on skewed streams?",
        source="Grez, Riveros, Ugarte, Vansummeren: selection strategies",
        data=f"{count:,} readings; the first {FIRST} matches of an event",
        query=formulas.text("φ6", WINDOWS[-1], "EMIT LAST"),
        others="CEL: the selectors are automata of their own, so an event costs a constant.",
        x=Axis("window", "s", log=True),
        y=Axis("throughput", "events/s", log=True),
        lines=lines,
        answer=f"Relative to ALL at a window of {windows[-1]} s: {shown}.",
    )


if __name__ == "__main__":
    main(figure)
