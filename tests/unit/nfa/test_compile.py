"""Sequence expressions → automata: golden texts, one for each shape."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from nfa_queries import described, planned

from spaseq.nfa.automaton import ACCEPT, DONE, Link, Place
from spaseq.nfa.compile import compile_automaton

GOLDEN = Path(__file__).parents[2] / "golden" / "automata"

SHAPES = {
    "sequence": "A , B ; C : D",
    "plus": "A ; B+ ; C",
    "star": "A ; B* : C",
    "exactly": "A : B{3} : C",
    "between": "A : B{2,4} ; C",
    "up_to": "A : B{0,2} : C",
    "optional": "A ; B? : C",
    "optional_first": "A? ; B",
    "optional_last": "A ; B?",
    "negation": "A ; !N : B",
    "negation_last": "A : !N",
    "negation_of_a_sequence": "A : !(M ; N) : B",
    "disjunction": "A ; (B | C) ; D",
    "disjunction_of_sequences": "((A ; B) | (C+)) : D",
    "conjunction": "A ; (B & C) : D",
    "conjunction_of_a_choice": "(A & (B | C))",
    "any_order": "A ; (B AND C) : D",
    "parenthesis": "A , (B ; C) : D",
    "iterated_sequence": "A ; (B : C)+ , D",
    "nested_iteration": "(A ; B+){2,}",
    "same_gpm_twice": "A : A",
}


@pytest.mark.parametrize("name", SHAPES)
def test_automaton_is_as_before(name: str, update_golden: bool) -> None:
    seq = SHAPES[name]
    shown = f"SEQ({seq})\n{described(planned(seq))}\n"
    path = GOLDEN / f"{name}.txt"
    if update_golden:
        path.parent.mkdir(exist_ok=True)
        path.write_text(shown, "utf-8")
    assert shown == path.read_text("utf-8")


def test_no_golden_text_is_left_over() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == set(SHAPES)


@pytest.mark.parametrize("seq", SHAPES.values())
def test_links_lead_where_they_may(seq: str) -> None:
    """Places outside guards never reach DONE, those inside never ACCEPT."""
    automaton = compile_automaton(planned(seq))
    todo, seen = list(automaton.starts), set(automaton.starts)
    targets = set()
    while todo:
        for edge in automaton.places[todo.pop()].edges:
            for link in automaton.atoms[edge.atom].links:
                targets.add(link.target)
                if link.target >= 0 and link.target not in seen:
                    seen.add(link.target)
                    todo.append(link.target)
    assert ACCEPT in targets
    assert DONE not in targets
    for guard in automaton.guards:
        assert not seen & set(guard.starts)


def test_parentheses_around_one_step_change_nothing() -> None:
    assert described(planned("A ; (B) ; ((C))")) == described(planned("A ; B ; C"))


def test_the_operator_in_front_of_an_iteration_stands_between_its_iterations() -> None:
    for operator, between in ((":", ":"), (",", ","), (";", ";")):
        lines = described(planned(f"A {operator} B+")).splitlines()
        again = next(line for line in lines if "again" in line)
        assert again.split()[1] == between
    assert any(line.split()[1] == ";" for line in described(planned("B+")).splitlines())


def test_waits_says_whether_a_match_may_wait_for_its_window() -> None:
    assert compile_automaton(planned("A : !N")).waits
    assert compile_automaton(planned("A : B?")).waits
    assert not compile_automaton(planned("A : !N : B")).waits


class TestValidate:
    def test_rejects_an_edge_to_no_atom(self) -> None:
        good = compile_automaton(planned("A ; B"))
        bad = replace(good, atoms=good.atoms[:1])
        with pytest.raises(ValueError, match="edge to no atom"):
            bad.validate()

    def test_rejects_an_unknown_guard(self) -> None:
        good = compile_automaton(planned("A ; !N ; B"))
        with pytest.raises(ValueError, match="unknown guard"):
            replace(good, guards=()).validate()

    def test_rejects_unknown_and_unsorted_registers(self) -> None:
        good = compile_automaton(planned("A ; B"))
        for live, message in (((99,), "unknown register"), ((1, 0), "unsorted")):
            place: Place = replace(good.places[0], live=live)
            bad = replace(good, places=(place, *good.places[1:]))
            with pytest.raises(ValueError, match=message):
                bad.validate()

    def test_rejects_a_link_to_no_place(self) -> None:
        good = compile_automaton(planned("A ; B"))
        atom = replace(good.atoms[0], links=(Link(77),))
        with pytest.raises(ValueError, match="links to no place"):
            replace(good, atoms=(atom, *good.atoms[1:])).validate()


def test_an_automaton_prints_a_line_for_each_place() -> None:
    plan = planned("A ; !N ; B+ : (C & D)", {name: f"{{ ?k :{name} [] }}" for name in "ABCDN"})
    assert str(compile_automaton(plan)) == (
        "   0 :     #1 > done   registers: none\n"
        "   1 ;     #2 again unit 0 > 1, 3   registers: k\n"
        "   2 ;     not #1 #2 begin unit 0 > 1, 3   registers: k\n"
        "   3 :     #3 & #4 > accept   registers: k\n"
        "^  4 start #0 > 2   registers: none"
    )
