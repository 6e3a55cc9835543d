"""The LALR(1) automaton of the grammar: tables once per process, a stack per text.

`compile_grammar.py` writes `tables.json` from `grammar.lark`. For each state and symbol it holds
the next state (n ≥ 0) or the rule to reduce (n < 0: rule -1 - n). A reduced rule becomes a
`Tree`; the children of a rule whose name begins with `_` become children of the enclosing tree.

Invariant: `feed` enters a state only with a token for which `accepts` is true, so the stack is a
viable prefix: some text of the language begins with it. Cost: linear in the number of tokens.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TypeAlias

from spaseq.records import dataclass

END = "$END"


@dataclass(slots=True)
class Token:
    """A terminal's name, its text, and its offsets in the lexed text."""

    kind: str
    text: str
    start: int
    end: int


@dataclass(slots=True)
class Tree:
    """A reduced rule; `start` and `end` also span the tokens that are not children."""

    rule: str
    children: list[Part]
    start: int
    end: int


Part: TypeAlias = Token | Tree


def as_token(part: Part) -> Token:
    """Narrow a part that is a token by the grammar."""
    assert isinstance(part, Token)
    return part


def as_tree(part: Part) -> Tree:
    """Narrow a part that is a tree by the grammar."""
    assert isinstance(part, Tree)
    return part


@dataclass(frozen=True, slots=True)
class Rule:
    symbol: str
    tree: str
    """The rule's alias, or its symbol."""
    length: int
    children: tuple[int, ...]
    """The positions of the symbols that become children of the tree."""


@dataclass(frozen=True)
class Tables:
    """The automaton, and the terminals as the lexer needs them."""

    starts: dict[str, int]
    ends: dict[str, int]
    states: list[dict[str, int]]
    rules: list[Rule]
    keywords: dict[str, str]
    """Keyword in upper case → terminal."""
    signs: dict[str, str]
    patterns: list[tuple[str, str]]
    """(terminal, regular expression), in the order the lexer tries them."""


@cache
def tables() -> Tables:
    """The tables that belong to the grammar."""
    raw = json.loads(Path(__file__).with_name("tables.json").read_text("utf-8"))
    symbols = raw["symbols"]
    return Tables(
        raw["starts"],
        raw["ends"],
        [
            dict(zip(map(symbols.__getitem__, row[::2]), row[1::2], strict=True))
            for row in raw["states"]
        ],
        [
            Rule(symbol, tree, size, tuple(children))
            for symbol, tree, size, children in raw["rules"]
        ],
        raw["keywords"],
        raw["signs"],
        [(name, pattern) for name, pattern in raw["patterns"]],
    )


class Unexpected(Exception):
    """The automaton does not accept the token."""

    def __init__(self, token: Token):
        self.token = token
        super().__init__(token)


class Automaton:
    """One run of the automaton over one text."""

    def __init__(self, start: str):
        known = tables()
        self._states = known.states
        self._rules = known.rules
        self._end = known.ends[start]
        self._stack = [known.starts[start]]
        self.parts: list[Part] = []
        """The tokens and trees of the states on the stack; the start state has none."""

    @property
    def expected(self) -> frozenset[str]:
        """The terminals that the automaton accepts next."""
        names = self._states[self._stack[-1]]
        return frozenset(name for name in names if name.isupper() and self.accepts(name))

    def accepts(self, kind: str) -> bool:
        """Whether a token of the kind may follow; simulates the reductions, with an unchanged
        stack."""
        depth = len(self._stack)
        pushed: list[int] = []  # the simulated stack is the first `depth` states, then these
        while True:
            action = self._states[pushed[-1] if pushed else self._stack[depth - 1]].get(kind)
            if action is None:
                return False
            if action >= 0:
                return True
            rule = self._rules[-1 - action]
            left = max(len(pushed) - rule.length, 0)
            depth -= rule.length - (len(pushed) - left)
            del pushed[left:]
            pushed.append(
                self._states[pushed[-1] if pushed else self._stack[depth - 1]][rule.symbol]
            )
            if pushed[-1] == self._end:
                return kind == END

    def feed(self, token: Token) -> None:
        """Shift a token, or raise `Unexpected` and leave the stack unchanged."""
        action = self._states[self._stack[-1]].get(token.kind)
        if action is None or (action < 0 and not self.accepts(token.kind)):
            raise Unexpected(token)
        while action < 0:
            self._reduce(self._rules[-1 - action])
            action = self._states[self._stack[-1]][token.kind]
        self._stack.append(action)
        self.parts.append(token)

    def finish(self, token: Token) -> Tree:
        """The tree of the whole text at its end `token`, or `Unexpected` as in `feed`."""
        if not self.accepts(END):
            raise Unexpected(token)
        while self._stack[-1] != self._end:
            self._reduce(self._rules[-1 - self._states[self._stack[-1]][END]])
        tree = self.parts[-1]
        assert isinstance(tree, Tree)
        return tree

    def _reduce(self, rule: Rule) -> None:
        parts: list[Part] = []
        if rule.length:
            parts = self.parts[-rule.length :]
            del self.parts[-rule.length :]
            del self._stack[-rule.length :]
        self.parts.append(_tree(rule, parts))
        self._stack.append(self._states[self._stack[-1]][rule.symbol])


def _tree(rule: Rule, parts: list[Part]) -> Tree:
    children: list[Part] = []
    for position in rule.children:
        part = parts[position]
        if isinstance(part, Token) or part.rule[0] != "_":
            children.append(part)
        elif children:
            children += part.children
        else:
            # Lists are left-recursive: reusing the longer list keeps the cost linear.
            children = part.children
    filled = [part for part in parts if part.end]
    if not filled:
        return Tree(rule.tree, children, 0, 0)
    return Tree(rule.tree, children, filled[0].start, filled[-1].end)


def run(tokens: Iterable[Token], automaton: Automaton) -> Tree:
    """The tree of a whole text; the lexer may inspect the automaton between two tokens."""
    position = 0
    for token in tokens:
        automaton.feed(token)
        position = token.end
    return automaton.finish(Token(END, "", position, position))
