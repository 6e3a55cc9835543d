"""The place where the automaton got stuck → what is wrong there, in words, and what to do.

The first entry of `slips.SLIPS` that knows the mistake tells; what none knows gets the list of
what could stand there.
"""

from __future__ import annotations

from spaseq.parser.error_context import Stuck
from spaseq.parser.lalr import END, Automaton, Token, tables
from spaseq.parser.mistakes import SLIPS
from spaseq.parser.source import Source


def diagnose(token: Token, automaton: Automaton, source: Source) -> None:
    """Report to `source` that the automaton got stuck at `token`, and why."""
    known = tables()
    end = max((part.end for part in automaton.parts), default=0)
    at_end = token.kind == END
    stuck = Stuck(
        source,
        token,
        automaton.expected,
        {name: text for words in (known.keywords, known.signs) for text, name in words.items()},
        tuple(part for part in automaton.parts if isinstance(part, Token)),
        end if at_end else token.start,
        min(end + 1, len(source.lexed)) if at_end else token.end,
        end,
    )
    slip = next(found for found in (rule(stuck) for rule in SLIPS) if found is not None)
    source.report(
        slip.message,
        slip.span or stuck.span(stuck.start, stuck.end),
        slip.hint,
        slip.other,
        slip.other_label,
    )
