"""`grammar.lark` → `tables.json`: run `python -m spaseq.parser.compile_grammar` after an edit.

Lark reads the grammar, builds the LALR(1) automaton and joins the terminals' regular
expressions. That takes about 200 ms, too much for each start of a command-line program, so the
result is stored beside the grammar and parsing needs neither Lark nor its analysis. A test fails
if the tables do not belong to the grammar. A grammar with a conflict is refused, since Lark
would resolve a shift/reduce conflict silently.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

from lark import Lark, logger
from lark.lexer import PatternStr
from lark.parsers.lalr_analysis import Shift

GRAMMAR = Path(__file__).with_name("grammar.lark")
TABLES = Path(__file__).with_name("tables.json")
STARTS = ("query", "pattern", "expression", "mapping")


class _Conflicts(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        if "conflict" in record.getMessage():
            raise ValueError(record.getMessage())


def compile_grammar(grammar: str) -> str:
    """Compile a grammar to tables in JSON, one state per line.

    Raises:
        ValueError: if the grammar has a conflict.
    """
    handler = _Conflicts(logging.DEBUG)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    muted = [each for each in logger.handlers if each is not handler]
    for each in muted:
        logger.removeHandler(each)
    try:
        lark = Lark(
            grammar,
            parser="lalr",
            start=list(STARTS),
            maybe_placeholders=False,
        )
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)
        for each in muted:
            logger.addHandler(each)
    return _as_json(lark)


def _as_json(lark: Any) -> str:
    table = lark.parser.parser._parse_table
    order = _order(table)
    rules: dict[Any, int] = {}
    states = []
    for state in order:
        row: dict[str, int] = {}
        for symbol, (action, argument) in sorted(
            table.states[state].items(), key=lambda item: item[0]
        ):
            if action is Shift:
                row[symbol] = order[argument]
            else:
                row[symbol] = -1 - rules.setdefault(argument, len(rules))
        states.append(row)
    symbols = sorted({symbol for row in states for symbol in row})
    index = {symbol: number for number, symbol in enumerate(symbols)}
    flat = [[each for name, act in row.items() for each in (index[name], act)] for row in states]
    keywords, signs, patterns = _terminals(lark)
    parts = {
        "starts": {name: order[state] for name, state in sorted(table.start_states.items())},
        "ends": {name: order[state] for name, state in sorted(table.end_states.items())},
        "keywords": keywords,
        "signs": signs,
        "patterns": patterns,
        "symbols": symbols,
        "rules": [_rule(rule) for rule in rules],
    }
    lines = [f"{json.dumps(name)}:{_dump(value)}," for name, value in parts.items()]
    rows = ",\n".join(_dump(row) for row in flat)
    return "{\n" + "\n".join(lines) + f'\n"states":[\n{rows}\n]\n}}\n'


def _order(table: Any) -> dict[int, int]:
    """Number the states breadth first: Lark's own numbers depend on the hash seed."""
    queue = [state for _, state in sorted(table.start_states.items())]
    order = {state: number for number, state in enumerate(queue)}
    for state in queue:
        for _, (action, target) in sorted(table.states[state].items(), key=lambda item: item[0]):
            if action is Shift and target not in order:
                order[target] = len(order)
                queue.append(target)
    return order


def _terminals(lark: Any) -> tuple[dict[str, str], dict[str, str], list[list[str]]]:
    keywords: dict[str, str] = {}
    signs: dict[str, str] = {}
    patterns: list[tuple[int, str, str]] = []
    for terminal in lark.terminals:
        pattern = terminal.pattern
        if not isinstance(pattern, PatternStr):
            patterns.append((-terminal.priority, terminal.name, pattern.value))
        elif "i" in pattern.flags:
            keywords[pattern.value.upper()] = terminal.name
        elif pattern.value != "a":  # the only case-sensitive word
            signs[pattern.value] = terminal.name
    return keywords, signs, [[name, value] for _, name, value in sorted(patterns)]


def _rule(rule: Any) -> list[Any]:
    """The rule's symbol, its tree's name, its length, the positions that become children."""
    children = [
        position
        for position, symbol in enumerate(rule.expansion)
        if not (symbol.is_term and symbol.filter_out)
    ]
    return [rule.origin.name, rule.alias or rule.origin.name, len(rule.expansion), children]


def _dump(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


if __name__ == "__main__":
    TABLES.write_text(compile_grammar(GRAMMAR.read_text("utf-8")), "utf-8")
