"""The token at which the automaton stopped → an error message and a hint.

The first entry of `mistakes.MISTAKES` that recognises the mistake words the message. The last
entry always does: it lists the tokens that are allowed at this position.
"""

from __future__ import annotations

from spaseq.parser.error_context import ErrorContext
from spaseq.parser.lalr import END, Automaton, Token, tables
from spaseq.parser.mistakes import MISTAKES
from spaseq.parser.source import Source


def diagnose(token: Token, automaton: Automaton, source: Source) -> None:
    """Report to `source` why the automaton stopped at `token`."""
    known = tables()
    end = max((part.end for part in automaton.parts), default=0)
    at_end = token.kind == END
    context = ErrorContext(
        source,
        token,
        automaton.expected,
        {name: text for words in (known.keywords, known.signs) for text, name in words.items()},
        tuple(part for part in automaton.parts if isinstance(part, Token)),
        end if at_end else token.start,
        min(end + 1, len(source.lexed)) if at_end else token.end,
        end,
    )
    mistake = next(each for each in (rule(context) for rule in MISTAKES) if each is not None)
    source.report(
        mistake.message,
        mistake.span or context.span(context.start, context.end),
        mistake.hint,
        mistake.other,
        mistake.other_label,
    )
