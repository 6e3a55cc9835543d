"""Programs and runs as HTML, for notebooks: the automata, and what waits in their places.

The picture is a separate image, because the styles of an inline SVG would apply to the whole page.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from html import escape
from typing import Any

from spaseq.engine.compiled import CompiledQueries, in_short
from spaseq.explain.automaton_svg import to_svg


def program_html(program: CompiledQueries) -> str:
    """The automata of a program."""
    picture = b64encode(to_svg(program).encode()).decode()
    title = escape(f"The automaton of {in_short(program)}")
    return f'<img alt="{title}" title="{title}" src="data:image/svg+xml;base64,{picture}">'


def run_html(program: CompiledQueries, stats: Mapping[str, Any], state: str) -> str:
    """The automata of a run, with the groups of partial matches in each place.

    Args:
        program: The queries of the run.
        stats: Its counters, as in `Run.stats`.
        state: A description of the run in one line.
    """
    rows = []
    for name, counted in stats["queries"].items():
        places = counted["places"] or {"no partial match waits": ""}
        for number, (place, groups) in enumerate(places.items()):
            first = f"<td>{escape(name)}</td><td>{counted['matches']:,}</td>"
            shown = f"{groups:,}" if isinstance(groups, int) else ""
            cells = (first if number == 0 else "<td></td><td></td>") + (
                f"<td>{escape(place)}</td><td>{shown}</td>"
            )
            rows.append(f"<tr>{cells}</tr>")
    heads = "".join(f"<th>{head}</th>" for head in ("query", "matches", "place", "groups"))
    return (
        f"{program_html(program)}<table><caption>{escape(state)}</caption>"
        f"<thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )
