"""Queries that change between runs: what is kept, begun anew, or refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from session_runs import TIMING, Running
from test_following import append, event
from test_state import checkpoints

from spaseq.cli import main
from spaseq.errors import StateError
from spaseq.live.session import LiveOptions
from spaseq.live.status import StatusTaker

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


def test_an_old_version_drains_over_several_runs(tmp_path: Path) -> None:
    """It finishes its partial matches, begins none, and is forgotten with its window."""
    path = stopped(tmp_path)
    drains = options(tmp_path, "drain")
    append(path, event(7, "d").replace('"7" <', '"1" <'))
    assert continued(tmp_path, path, NINE.replace("?s ?low", "?low"), drains) == [
        ("query", "2", "8"), ("query", "1", "8"), ("query", "1", "9"),
    ]  # fmt: skip
    with Running(tmp_path, str(path), OTHER, drains) as run:
        run.wait_for(lambda: run.has_read(path))
        assert run.session.run.draining == {
            "query (draining)": "query", "query (draining 2)": "query",
        }  # fmt: skip
        append(path, event(11, "e").replace('"11" <', '"8" <'))
        append(path, event(12, "f").replace('"12" <', '"9" <'))
        run.wait_for(lambda: len(run.found) == 6)
    ends = [json.loads(line)["bindings"] for line in run.found[3:]]
    assert sorted((one["low"]["value"], one["high"]["value"]) for one in ends) == [
        ("1", "8"), ("1", "9"), ("2", "8"),
    ]  # fmt: skip
    append(path, event(100) + event(101) + event(102))
    with Running(tmp_path, str(path), OTHER, options(tmp_path)) as run:
        run.wait_for(lambda: run.has_read(path) and not run.session.run.draining)
    with Running(tmp_path, str(path), OTHER, options(tmp_path)) as run:
        assert [query.plan.name for query in run.session.run.queries] == ["query"]


def test_a_checkpoint_from_before_a_change_does_not_matter(tmp_path: Path) -> None:
    """The run with the changed query makes its last checkpoint only, beside an older one."""
    path = stopped(tmp_path)
    append(path, event(8))
    rare = replace(TIMING, checkpoint=600.0)
    with Running(tmp_path, str(path), NINE, options(tmp_path, "fresh"), timing=rare) as run:
        run.wait_for(lambda: run.has_read(path))
    append(path, event(9))
    with Running(tmp_path, str(path), NINE, options(tmp_path), timing=rare) as run:
        run.wait_for(lambda: run.has_read(path))
    with pytest.raises(StateError, match="the query query has changed"):
        Running(tmp_path, str(path), PAIR, options(tmp_path))


def test_a_missing_query_drains(tmp_path: Path) -> None:
    path = stopped(tmp_path, [PAIR, OTHER])
    found = continued(tmp_path, path, [OTHER], options(tmp_path, "drain"))
    assert sorted(found) == [("query1", "1", "8"), ("query1", "2", "8"), ("query2", "3", "8")]


LOWS = """
PREFIX : <http://example.org/>
REGISTER STREAM <http://example.org/lows> AS
CONSTRUCT { ?s :low ?value }
WITHIN 30 SECONDS FROM STREAM readings <http://example.org/readings>
WHERE { SEQ(A) DEFINE GPM A ON readings { ?s :value ?value . FILTER(?value < "4") } }
"""
PAIRS = """
PREFIX : <http://example.org/>
SELECT ?low ?high WITHIN 30 SECONDS FROM STREAM lows <http://example.org/lows>
FROM STREAM readings <http://example.org/readings>
WHERE { SEQ(A : B)
  DEFINE GPM A ON lows { ?s :low ?low }
  DEFINE GPM B ON readings { ?t :value ?high . FILTER(?high = "8") } }
"""


@pytest.mark.parametrize("changed", ["reader", "writer", "both"])
def test_queries_of_registered_streams_are_kept(tmp_path: Path, changed: str) -> None:
    path = stopped(tmp_path, [LOWS, PAIRS])
    writer = LOWS if changed == "reader" else LOWS.replace('< "4"', '> "7"')
    reader = PAIRS if changed == "writer" else PAIRS.replace('"8"', '"9"')
    append(path, event(8) + event(9) + event(10))
    with Running(tmp_path, str(path), [writer, reader], options(tmp_path, "keep")) as run:  # type: ignore[arg-type]
        run.wait_for(lambda: run.session.run.clock.events >= 3 and run.has_read(path))
    found = [json.loads(line) for line in run.found]
    pairs = [one["bindings"] for one in found if one["query"] == "query2"]
    shown = sorted((one["low"]["value"], one["high"]["value"]) for one in pairs)
    last = "8" if changed == "writer" else "9"
    lows = ["1", "2", "3"] if last == "8" or changed == "reader" else ["1", "2", "3", "8"]
    assert shown == [(low, last) for low in lows]


def test_a_query_of_registered_streams_cannot_drain(tmp_path: Path) -> None:
    path = stopped(tmp_path, [LOWS, PAIRS])
    other = PAIRS.replace('"8"', '"9"')
    with pytest.raises(StateError, match="query2 cannot drain, since it registers a stream or"):
        Running(tmp_path, str(path), [LOWS, other], options(tmp_path, "drain"))  # type: ignore[arg-type]


def test_an_old_version_with_other_columns_cannot_drain_into_a_table(tmp_path: Path) -> None:
    path = tmp_path / "s.nq"
    append(path, event(1))
    wanted = replace(options(tmp_path, "drain"), format="csv")
    with Running(tmp_path, str(path), PAIR, wanted) as run:
        run.wait_for(lambda: run.has_read(path))
    with pytest.raises(StateError, match="cannot drain into --format csv"):
        Running(tmp_path, str(path), PAIR.replace("?s ?low", "?low"), wanted)
    table = replace(options(tmp_path / "by-name", "drain"), format="auto")
    (tmp_path / "by-name").mkdir()
    output = str(tmp_path / "named.csv")
    with Running(tmp_path, str(path), PAIR, table, output=output) as run:
        run.wait_for(lambda: run.has_read(path))
    with pytest.raises(StateError, match="cannot drain into --format csv"):
        Running(tmp_path, str(path), PAIR.replace("?s ?low", "?low"), table, output=output)
    append(path, event(8))
    with Running(tmp_path, str(path), NINE, wanted) as run:
        run.wait_for(lambda: len(run.found) == 2)
    assert run.found == ["s,low,high", "http://example.org/s,1,8"]


def test_each_query_has_its_policy(tmp_path: Path) -> None:
    """Unchanged queries keep their state, others follow their policy, and new ones begin."""
    path = stopped(tmp_path, [PAIR, OTHER, OTHER.replace("30", "20")])
    third = NINE.replace("30", "20").replace('?low = "1"', '?low = "8"')
    now = [NINE, OTHER, third]
    wanted = options(tmp_path, "refuse", query1="keep", query3="fresh")
    assert sorted(continued(tmp_path, path, now, wanted)) == [
        ("query1", "1", "9"), ("query1", "2", "9"), ("query2", "3", "8"), ("query3", "8", "9"),
    ]  # fmt: skip


def test_queries_that_are_evaluated_as_one_continue(tmp_path: Path) -> None:
    """Also apart, beside a query that has changed."""
    fewer = PAIR.replace("?s ?low", "?low")
    path = stopped(tmp_path, [PAIR, fewer, OTHER])
    append(path, event(8))
    with Running(tmp_path, str(path), [PAIR, fewer, OTHER], options(tmp_path)) as run:  # type: ignore[arg-type]
        run.wait_for(lambda: len(run.found) == 5)
        assert list(run.session.run.evaluation.listed.divisions) == [0]
        run.wait_for(lambda: run.has_read(path))
    counted = StatusTaker(run.session.coordinator).take().queries
    assert {one.name: one.matches for one in counted} == {"query1": 2, "query2": 2, "query3": 1}
    shown = [list(json.loads(line)["bindings"]) for line in run.found]
    assert shown == [["s", "low", "high"]] * 2 + [["low", "high"]] * 2 + [["s", "low", "high"]]
    append(path, event(9).replace('"9" <', '"8" <'))
    changed = [PAIR, fewer, NINE]
    with Running(tmp_path, str(path), changed, options(tmp_path, "fresh")) as run:  # type: ignore[arg-type]
        run.wait_for(lambda: len(run.found) == 9)
        assert not run.session.run.evaluation.listed.divisions
    with Running(tmp_path, str(path), changed, options(tmp_path)) as run:  # type: ignore[arg-type]
        assert not run.session.run.evaluation.listed.divisions


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
    assert main([*command, "--state-policy", "drain", "--state-policy", "q=fresh"]) == 0
    for text, message in (
        ("other=keep", "there is no query other, only q"),
        ("kept", "write refuse, keep, drain or fresh"),
    ):
        assert main([*command, "--state-policy", text]) == 2
        assert message in capsys.readouterr().err
