"""The shared partial matches against a model: a set of sequences of steps."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from model.tecs import Chain, Node, chained, members_since, nodes, paths

from spaseq.nfa.automaton import Edge
from spaseq.nfa.match_path import Step

Model = list[tuple[int, tuple[Step, ...]]]
"""(start, steps) of each match."""


@st.composite
def structures(draw: st.DrawFn) -> list[tuple[Node, Model]]:
    """Nodes over unions of earlier ones, as places build them, each with what it stands for."""
    built: list[tuple[Node, Model]] = []
    for last in range(draw(st.integers(1, 12))):
        step = Step(Edge(last), ())
        members = draw(st.lists(st.sampled_from(built), unique_by=id, max_size=4)) if built else []
        members.sort(key=lambda member: member[0].last)
        if not members:
            built.append((Node(step, None, last, last), [(last, (step,))]))
            continue
        chain = chained([node for node, _ in members])
        assert chain is not None
        model = [(start, (*steps, step)) for _, each in members for start, steps in each]
        built.append((Node(step, chain, last, chain.latest), model))
    return built


def key(match: tuple[int, tuple[Step, ...]]) -> tuple[int, list[int]]:
    return match[0], [step.edge.atom for step in match[1]]


@given(structures(), st.integers(0, 12))
def test_enumeration_gives_what_starts_inside_the_window_once_each(
    built: list[tuple[Node, Model]], bound: int
) -> None:
    for node, model in built:
        expected = sorted((m for m in model if m[0] >= bound), key=key)
        assert sorted(paths(node, bound), key=key) == expected
        assert node.latest == max(start for start, _ in model)


@given(structures(), st.integers(0, 12), st.integers(0, 12))
def test_a_chain_is_read_newest_first(
    built: list[tuple[Node, Model]], last: int, bound: int
) -> None:
    members = [node for node, _ in built]
    chain = chained(members)
    assert list(nodes(chain, 0)) == members[::-1]
    assert list(nodes(chain, bound)) == [n for n in members[::-1] if n.latest >= bound]
    since = [n for n in members[::-1] if n.last >= last and n.latest >= bound]
    assert list(members_since(chain, last, bound)) == since


def test_nothing_is_an_empty_union() -> None:
    assert chained([]) is None
    assert list(nodes(None, 0)) == []


def test_what_joins_a_group_later_does_not_disturb_what_was_built_on_it() -> None:
    first = Node(Step(Edge(0), ()), None, 0, 0)
    group = Chain(first, None)
    onward = Node(Step(Edge(1), ()), group, 1, 0)
    group = Chain(Node(Step(Edge(0), ()), None, 2, 2), group)
    assert [start for start, _ in paths(onward, 0)] == [0]
    assert [n.last for n in nodes(group, 0)] == [2, 0]


def test_enumeration_is_lazy() -> None:
    """Ten binary choices make 1,024 matches; the first costs no more than its length."""
    read = 0

    class Counted(Chain):
        __slots__ = ()

        def __getattribute__(self, name: str) -> object:
            nonlocal read
            read += name == "node"
            return super().__getattribute__(name)

    before = None
    for depth in range(10):
        pair = [Node(Step(Edge(n), ()), before, depth, 0) for n in range(2)]
        before = Counted(pair[1], Counted(pair[0], None))
    found = paths(Node(Step(Edge(9), ()), before, 10, 0), 0)
    read = 0
    next(found)
    assert read <= 10 * 2 * 3
    assert sum(1 for _ in found) == 1023
