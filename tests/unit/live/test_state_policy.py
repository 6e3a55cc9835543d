"""Queries that change between runs: what is kept, begun anew, or refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from session_runs import Running
from test_following import append, event
from test_state import checkpoints

from spaseq.cli import main
from spaseq.errors import StateError
from spaseq.live.session import LiveOptions

PAIR = """
PREFIX : <http://example.org/>
SELECT ?s ?low ?high WITHIN 30 SECONDS FROM STREAM readings <http://example.org/readings>
WHERE { SEQ(A : B)
  DEFINE GPM A ON readings { ?s :value ?low . FILTER(?low = "1" || ?low = "2") }
  DEFINE GPM B ON readings { ?s :value ?high . FILTER(?high = "8") } }
"""
NINE = PAIR.replace('"8"', '"9"')
OTHER = PAIR.replace('?low = "1" || ?low = "2"', '?low = "3"')


def options(folder: Path, policy: Any = "refuse", **policies: Any) -> LiveOptions:
    return LiveOptions(follow=True, state=str(folder / "state"), policy=policy, policies=policies)


def stopped(folder: Path, query: Any = PAIR, last: int = 3) -> Path:
    """A run that has read the values 1 to `last` and was stopped."""
    path = folder / "s.nq"
    append(path, "".join(event(number) for number in range(1, last + 1)))
    with Running(folder, str(path), query, options(folder)) as run:
        run.wait_for(lambda: run.session.run.clock.events == last)
    assert checkpoints(folder)
    return path


def continued(folder: Path, path: Path, query: Any, wanted: LiveOptions) -> list[tuple[str, ...]]:
    """The matches after the values 8 and 9: (query, low, high)."""
    append(path, event(8) + event(9))
    with Running(folder, str(path), query, wanted) as run:
        run.wait_for(lambda: run.session.run.clock.events >= 2 and run.has_read(path))
    found = [json.loads(line) for line in run.found]
    return [
        (one["query"], one["bindings"]["low"]["value"], one["bindings"]["high"]["value"])
        for one in found
    ]


def test_partial_matches_are_kept_under_another_filter(tmp_path: Path) -> None:
    path = stopped(tmp_path)
    assert continued(tmp_path, path, NINE, options(tmp_path, "keep")) == [
        ("query", "2", "9"), ("query", "1", "9"),
    ]  # fmt: skip


def test_partial_matches_are_kept_with_other_results(tmp_path: Path) -> None:
    path = stopped(tmp_path)
    fewer = PAIR.replace("?s ?low", "?low")
    assert len(continued(tmp_path, path, fewer, options(tmp_path, "keep"))) == 2


def test_a_fresh_query_has_no_partial_matches(tmp_path: Path) -> None:
    path = stopped(tmp_path)
    assert continued(tmp_path, path, NINE, options(tmp_path, "fresh")) == []


def test_each_query_has_its_policy(tmp_path: Path) -> None:
    """Unchanged queries keep their state, others follow their policy, and new ones begin."""
    path = stopped(tmp_path, [PAIR, OTHER, OTHER.replace("30", "20")])
    third = NINE.replace("30", "20").replace('?low = "1"', '?low = "8"')
    now = [NINE, OTHER, third]
    wanted = options(tmp_path, "refuse", query1="keep", query3="fresh")
    assert sorted(continued(tmp_path, path, now, wanted)) == [
        ("query1", "1", "9"), ("query1", "2", "9"), ("query2", "3", "8"), ("query3", "8", "9"),
    ]  # fmt: skip


def test_queries_come_and_go(tmp_path: Path) -> None:
    path = stopped(tmp_path, [PAIR, OTHER])
    with pytest.raises(StateError, match="the query query3 is new"):
        Running(tmp_path, str(path), [PAIR, OTHER, NINE], options(tmp_path))  # type: ignore[arg-type]
    found = continued(tmp_path, path, [PAIR, OTHER, NINE], options(tmp_path, "keep"))
    assert sorted(found) == [("query1", "1", "8"), ("query1", "2", "8"), ("query2", "3", "8")]
    append(path, event(10) + event(11, "k").replace('"11" <', '"8" <'))
    with Running(tmp_path, str(path), [PAIR, NINE], options(tmp_path, "fresh")) as run:  # type: ignore[arg-type]
        run.wait_for(lambda: len(run.found) == 5)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (PAIR.replace("30 SECONDS", "40 SECONDS"), "WITHIN differs"),
        (PAIR.replace("A : B", "A ; B"), "the automaton has other"),
        (PAIR.replace("A : B", "A : B : B"), "SEQ has other steps"),
        (PAIR.replace("SELECT", "SELECT DISTINCT"), "DISTINCT"),
        (PAIR + " LIMIT 1 PER ?s EVERY 5 SECONDS", "LIMIT differs"),
        (PAIR.replace("WHERE", "AFTER MATCH SKIP TO NEXT WHERE"), "AFTER MATCH differs"),
        (PAIR.replace("?s :value ?high", "?t :value ?high"), "B has other streams or binds"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, changed: str, message: str) -> None:
    path = stopped(tmp_path)
    with pytest.raises(StateError, match="cannot be kept: .*" + message):
        Running(tmp_path, str(path), changed, options(tmp_path, "keep"))
    with pytest.raises(StateError, match="--state-policy keep continues"):
        Running(tmp_path, str(path), changed, options(tmp_path))


def test_the_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    append(tmp_path / "s.nq", event(1))
    (tmp_path / "q.rq").write_text(PAIR, "utf-8")
    command = ["run", "q.rq", "--stream", "readings=s.nq", "--at-end", "open", "--state", "state"]
    assert main([*command, "--state-policy", "keep", "--state-policy", "q=fresh"]) == 0
    for text, message in (
        ("drain", "cannot finish the partial matches of the old query"),
        ("other=keep", "there is no query other, only q"),
        ("kept", "write refuse, keep or fresh"),
    ):
        assert main([*command, "--state-policy", text]) == 2
        assert message in capsys.readouterr().err
