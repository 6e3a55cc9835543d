"""The place where the parser got stuck → what is wrong there, in words, and what to do.

The first entry of `slips.SLIPS` that knows the mistake tells; what none knows gets the list of
what could stand there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lark import Token
from lark.exceptions import UnexpectedToken

from spaseq.parser.lexer import accepts
from spaseq.parser.slips import SLIPS
from spaseq.parser.source import Source
from spaseq.parser.stuck import Stuck


def diagnose(error: UnexpectedToken, source: Source, shown: Mapping[str, str]) -> None:
    """Report to `source` what the parser got stuck at."""
    state: Any = error.state
    table = state.parse_conf.states[state.position]
    expected = frozenset(name for name in table if name.isupper() and accepts(state, name))
    token = error.token
    length = len(source.lexed)
    previous_end = max((_end(value) for value in state.value_stack), default=0)
    at_end = token.type == "$END"
    stuck = Stuck(
        source,
        token,
        expected,
        shown,
        tuple(value for value in state.value_stack if isinstance(value, Token)),
        min(previous_end, length) if at_end else token.start_pos or 0,
        min(previous_end + 1, length) if at_end else token.end_pos or 0,
        previous_end,
    )
    slip = next(found for found in (rule(stuck) for rule in SLIPS) if found is not None)
    source.report(
        slip.message,
        slip.span or stuck.span(stuck.start, stuck.end),
        slip.hint,
        slip.other,
        slip.other_label,
    )


def _end(value: Any) -> int:
    if isinstance(value, Token):
        return value.end_pos or 0
    meta = getattr(value, "meta", None)
    return 0 if meta is None or meta.empty else meta.end_pos
