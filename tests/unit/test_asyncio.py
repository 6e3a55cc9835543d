"""`arun`, `astart` and `with` blocks."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest

import spaseq
from spaseq.errors import (
    ArgumentError,
    ChangeError,
    EventError,
    QueryError,
    RunFailed,
    SpaseqError,
)

EX = "http://example.org/"
QUERY = """
PREFIX : <http://example.org/>
SELECT ?x ?y WITHIN 10 SECONDS FROM STREAM s :s FROM STREAM r :r
WHERE { SEQ(A : B) DEFINE GPM A ON s { ?k :a ?x } DEFINE GPM B ON r { ?k :b ?y } }
"""
ONE = """
PREFIX : <http://example.org/>
SELECT ?x WITHIN 10 SECONDS FROM STREAM s :s WHERE { SEQ(A) DEFINE GPM A ON s { ?k :a ?x } }
"""


def graph(predicate: str, value: int) -> list[ox.Triple]:
    return [ox.Triple(ox.NamedNode(EX + "k"), ox.NamedNode(EX + predicate), ox.Literal(value))]


async def source(predicate: str, times: Any, pause: float = 0.0) -> AsyncIterator[Any]:
    for number in times:
        await asyncio.sleep(pause)
        yield number, graph(predicate, number)


def found(matches: Any, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(int(match.bindings[name].value) for name in names) for match in matches]


def test_asynchronous_sources_are_merged_by_time() -> None:
    async def main() -> list[spaseq.Match]:
        streams = {"s": source("a", [1, 4, 6]), "r": source("b", [2, 5])}
        return [match async for match in spaseq.arun(QUERY, streams)]

    streams = {
        "s": [(n, graph("a", n)) for n in (1, 4, 6)], "r": [(n, graph("b", n)) for n in (2, 5)]
    }  # fmt: skip
    expected = found(spaseq.run(QUERY, streams), "x", "y")
    assert sorted(expected) == [(1, 2), (1, 5), (4, 5)]
    assert found(asyncio.run(main()), "x", "y") == expected


def test_files_and_asynchronous_sources_mix(tmp_path: Path) -> None:
    path = tmp_path / "r.trig"
    path.write_text(
        "@prefix : <http://example.org/> . @prefix prov: <http://www.w3.org/ns/prov#> .\n"
        ":g prov:generatedAtTime 5 . :g { :k :b 5 }\n", "utf-8",
    )  # fmt: skip

    async def main() -> list[spaseq.Match]:
        streams = {"s": source("a", [1, 4, 6]), "r": path}
        return [match async for match in spaseq.arun(QUERY, streams, at_end="close")]

    assert sorted(found(asyncio.run(main()), "x", "y")) == [(1, 5), (4, 5)]


def test_the_matches_of_a_table_cannot_be_read_again() -> None:
    async def main() -> int:
        result = spaseq.arun(ONE, {"s": source("a", [1, 2])})
        count: int = (await result.to_arrow()).num_rows
        with pytest.raises(SpaseqError, match="are being read already"):
            await result.to_arrow()
        with pytest.raises(SpaseqError, match="are being read already"):
            async for _ in result:
                pass
        return count

    assert asyncio.run(main()) == 2


def test_an_asynchronous_source_of_a_synchronous_run_is_an_error() -> None:
    with pytest.raises(ArgumentError, match="takes asynchronous ones"):
        list(spaseq.run(ONE, {"s": source("a", [1])}))  # type: ignore[dict-item]


def test_a_match_comes_before_the_next_event() -> None:
    """And the event loop works on meanwhile; an endless source ends with its consumer."""
    closed: list[bool] = []

    async def endless() -> AsyncIterator[Any]:
        try:
            yield 1, graph("a", 1)
            await asyncio.sleep(3600)
        finally:
            closed.append(True)

    async def main() -> list[spaseq.Match]:
        seen = []
        matches = spaseq.arun(ONE, {"s": endless()})
        async for match in matches:
            seen.append(match)
            break
        await matches.aclose()  # type: ignore[attr-defined]
        return seen

    assert found(asyncio.run(asyncio.wait_for(main(), 30)), "x") == [(1,)]
    assert closed == [True]
    assert not [t for t in threading.enumerate() if t.name.startswith("spaseq-arun") and t.daemon]


def test_a_consumer_that_is_cancelled_ends_the_source() -> None:
    async def main() -> None:
        async def consume() -> None:
            async for _ in spaseq.arun(ONE, {"s": source("a", range(5), 3600)}):
                pass

        task = asyncio.create_task(consume())
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    begun = time.monotonic()
    asyncio.run(main())
    assert time.monotonic() - begun < 30


def test_errors_of_sources_and_queries() -> None:
    async def broken() -> AsyncIterator[Any]:
        yield 1, graph("a", 1)
        raise KeyError("sensor")

    async def backwards() -> list[int]:
        seen = []
        async for match in spaseq.arun(ONE, {"s": source("a", [2, 1])}):
            seen.append(int(match.bindings["x"].value))
        return seen

    async def failing(seen: list[Any]) -> None:
        async for match in spaseq.arun(ONE, {"s": broken()}):
            seen.append(int(match.bindings["x"].value))

    with pytest.raises(QueryError):
        spaseq.arun("SELECT", {})
    with pytest.raises(EventError, match="time runs backwards"):
        asyncio.run(backwards())
    seen: list[Any] = []
    with pytest.raises(KeyError, match="sensor"):
        asyncio.run(failing(seen))
    assert seen == [1]


def test_a_run_of_pushes() -> None:
    async def main() -> list[tuple[Any, ...]]:
        program = spaseq.compile(QUERY)
        async with program.astart() as run:
            first = await run.push(EX + "s", 1, graph("a", 1))
            second = await run.push(EX + "r", 2, graph("b", 2))
            blob = await run.save()
            assert (await run.stats())["events"] == 2
        with pytest.raises(RunFailed, match="it was closed"):
            run.run.push(EX + "s", 3, graph("a", 3))
        with program.resume(blob) as resumed:
            third = resumed.push(EX + "r", 3, graph("b", 3))
        return found([*first, *second, *third], "x", "y")

    assert asyncio.run(main()) == [(1, 2), (1, 3)]


def test_a_run_that_exists_becomes_asynchronous() -> None:
    async def main() -> None:
        program = spaseq.compile(ONE)
        with program.start() as before:
            before.push(EX + "s", 1, graph("a", 1))
            blob = before.save()
        run = spaseq.AsyncRun(program.resume(blob))
        async with run as resumed:
            assert found(await resumed.push(EX + "s", 2, graph("a", 2)), "x") == [(2,)]
        with pytest.raises(RunFailed, match="its async with block was left"):
            await run.push(EX + "s", 3, graph("a", 3))
        async with spaseq.AsyncRun(program.start) as started:
            assert (await started.stats())["events"] == 0

    asyncio.run(main())


@pytest.mark.parametrize(
    ("start", "said"),
    [
        (spaseq.compile(ONE), r"program.astart\(\)\), not a Program"),
        (ONE, "not a str"),
        (None, "not None"),
        (lambda: 3, "the function returned an int"),
    ],
)
def test_what_is_no_run_is_an_error(start: Any, said: str) -> None:
    async def main() -> None:
        async with spaseq.AsyncRun(start):
            pass

    with pytest.raises(ArgumentError, match=f"^start: a run, or a function .*{said}"):
        asyncio.run(main())


def test_calls_of_several_tasks_come_one_after_the_other() -> None:
    async def main() -> list[Any]:
        async with spaseq.compile(ONE).astart() as run:
            parts = await asyncio.gather(
                *(run.push(EX + "s", number, graph("a", number)) for number in range(200))
            )
            parts.append(await run.finish())
        return [int(match.bindings["x"].value) for part in parts for match in part]

    assert asyncio.run(main()) == list(range(200))


def test_queries_change_after_the_calls_that_were_made_before() -> None:
    select = (
        "SELECT ?x WITHIN 10 SECONDS FROM STREAM s :s WHERE { SEQ(A) DEFINE GPM A ON s { %s } }"
    )
    above = f"PREFIX : <{EX}> " + select % "?k :a ?x FILTER(?x > ?least)"
    equal = above.replace("> ?least", "= ?least")

    async def main() -> list[Any]:
        async with spaseq.compile(ONE, names=["one"]).astart(prune=False) as run:

            async def push(number: int) -> list[Any]:
                matches = await run.push(EX + "s", number, graph("a", number))
                return [(match.query, match["x"]) for match in matches]

            calls = [
                push(1),
                run.add("above", spaseq.compile(above)),
                run.bind(least=2),
                push(2),
                push(3),
                run.replace("above", spaseq.compile(equal), "fresh"),
                push(4),
                run.bind(least=5),
                push(5),
                run.remove("one"),
                push(6),
            ]
            # Tasks begin in their order, so this is the order of the calls.
            tasks = [asyncio.ensure_future(call) for call in calls]
            done = await asyncio.gather(*tasks)
            with pytest.raises(ChangeError, match="the only query"):
                await run.remove("above")
            return [matches for matches in done if matches is not None]

    assert asyncio.run(main()) == [
        [("one", 1)],
        [("one", 2)],
        [("one", 3), ("above", 3)],
        [("one", 4)],
        [("one", 5), ("above", 5)],
        [],
    ]


def test_the_matches_of_a_cancelled_call_are_returned_by_the_next() -> None:
    async def main() -> list[Any]:
        async with spaseq.compile(ONE).astart() as run:
            wait = threading.Event()
            blocked = asyncio.ensure_future(run._call(lambda: wait.wait(30)))
            task = asyncio.create_task(run.push(EX + "s", 1, graph("a", 1)))
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            wait.set()
            assert await blocked
            return found(await run.push(EX + "s", 2, graph("a", 2)), "x")

    assert asyncio.run(main()) == [(1,), (2,)]


def test_a_with_block_closes_the_run() -> None:
    program = spaseq.compile(ONE)
    with program.start() as run:
        assert found(run.push(EX + "s", 1, graph("a", 1)), "x") == [(1,)]
    with pytest.raises(RunFailed, match="it was closed"):
        run.push(EX + "s", 2, graph("a", 2))
    with program.start() as run:
        run.finish()
    run.close()
    with pytest.raises(RuntimeError, match="has not started"):
        _ = program.astart().run
