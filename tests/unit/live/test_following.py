"""Files that grow, are rotated and truncated, folders that fill, pipes."""

from __future__ import annotations

import os
import shutil
import threading
import time
from pathlib import Path

import pytest
from followed import STREAM, events, finished_run
from session_runs import EACH, TIMING, Running, values

from spaseq.errors import InputError, SpaseqError, StateError
from spaseq.io.read_options import Framing, ReadOptions
from spaseq.live.coordinator import Timing
from spaseq.live.session import LiveOptions

NEVER = Timing(quiet=None, checkpoint=0.05)


def event(number: int, name: str | None = None) -> str:
    """An event at a second, in N-Quads."""
    graph = f"<http://example.org/e/{name or number}>"
    return (
        f"{graph} <http://www.w3.org/ns/prov#generatedAtTime> "
        f'"{number}"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
        f'<http://example.org/s> <http://example.org/value> "{number}" {graph} .\n'
    )


def append(path: Path, text: str) -> None:
    with open(path, "a", encoding="utf-8") as file:
        file.write(text)


def numbers(*expected: int) -> list[str]:
    return [str(number) for number in expected]


def test_an_event_is_found_when_the_next_one_begins(tmp_path: Path) -> None:
    path = tmp_path / "s.nq"
    append(path, event(1))
    with Running(tmp_path, str(path), timing=NEVER) as run:
        append(path, event(2))
        run.wait_for_matches(1)
        append(path, event(3))
        run.wait_for_matches(2)
        time.sleep(0.3)
        assert values(run.found) == numbers(1, 2)


def test_an_event_is_found_when_the_source_is_quiet(tmp_path: Path) -> None:
    path = tmp_path / "s.nq"
    path.touch()
    with Running(tmp_path, str(path)) as run:
        for number in (1, 2, 3):
            append(path, event(number))
            run.wait_for_matches(number)
    assert values(run.found) == numbers(1, 2, 3)


def test_a_partial_line_waits_for_its_end(tmp_path: Path) -> None:
    path, text = tmp_path / "s.nq", event(1)
    path.touch()
    with Running(tmp_path, str(path)) as run:
        append(path, text[:-9])
        time.sleep(0.5)
        assert run.found == []
        append(path, text[-9:])
        run.wait_for_matches(1)


def test_a_timestamp_alone_waits_for_its_graph(tmp_path: Path) -> None:
    path = tmp_path / "s.nq"
    stamp, fact = event(1).splitlines(keepends=True)
    path.touch()
    with Running(tmp_path, str(path)) as run:
        append(path, stamp)
        time.sleep(0.5)
        append(path, fact)
        run.wait_for_matches(1)


def test_trig_grows_too(tmp_path: Path) -> None:
    path = tmp_path / "s.trig"
    append(path, "@prefix : <http://example.org/> .\n")
    append(path, "@prefix prov: <http://www.w3.org/ns/prov#> .\n")
    with Running(tmp_path, str(path)) as run:
        for number in (1, 2, 3):
            append(path, f":e{number} prov:generatedAtTime {number} .\n:e{number} ")
            append(path, f"{{ :s :value\n {number}")
            time.sleep(0.05)
            append(path, " }\n")
            run.wait_for_matches(number)
    assert values(run.found) == numbers(1, 2, 3)


def test_messages_are_found_at_their_delimiters(tmp_path: Path) -> None:
    path = tmp_path / "s.nq"
    append(path, 'VERSION "1.1-messages"\n')
    with Running(tmp_path, str(path), timing=NEVER) as run:
        for number in (1, 2, 3):
            append(path, event(number) + "MESSAGE\n")
            run.wait_for_matches(number)


def test_a_file_that_does_not_exist_yet_is_awaited(tmp_path: Path) -> None:
    path = tmp_path / "s.nq"
    with Running(tmp_path, str(path)) as run:
        run.wait_for(lambda: any("does not exist yet" in text for text in run.said))
        append(path, event(1))
        run.wait_for_matches(1)


# ------------------------------------------------------------------ rotation


def test_a_rotated_file_is_read_to_its_end(tmp_path: Path) -> None:
    path, old = tmp_path / "s.nq", tmp_path / "s.nq.1"
    append(path, event(1))
    with Running(tmp_path, str(path)) as run:
        run.wait_for_matches(1)
        os.rename(path, old)
        append(old, event(2))
        time.sleep(0.05)
        append(old, event(3))
        run.wait_for_matches(3)
        append(path, event(4))
        run.wait_for_matches(4)
        # A name of the old file is free again in the new one's state, but not an earlier time.
        os.rename(path, tmp_path / "s.nq.2")
        append(path, event(5))
        run.wait_for_matches(5)
    assert values(run.found) == numbers(1, 2, 3, 4, 5)


def test_a_truncated_file_is_read_from_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "s.nq"
    append(path, event(1) + event(2))
    with Running(tmp_path, str(path)) as run:
        run.wait_for_matches(2)
        shutil.copy(path, tmp_path / "s.nq.1")
        os.truncate(path, 0)
        append(path, event(3))
        run.wait_for_matches(3)
        assert any("truncated" in text for text in run.said)
    assert values(run.found) == numbers(1, 2, 3)


def test_files_rotated_while_the_run_is_stopped_are_read(tmp_path: Path) -> None:
    path = tmp_path / "s.nq"
    append(path, event(1) + event(2))
    options = LiveOptions(follow=True, state=str(tmp_path / "state"))
    with Running(tmp_path, str(path), options=options) as run:
        run.wait_for_matches(2)
    append(path, event(3))
    os.rename(path, tmp_path / "s.nq.2")
    time.sleep(0.02)
    append(path, event(4))
    os.rename(path, tmp_path / "s.nq.1")
    append(path, event(5))
    with Running(tmp_path, str(path), options=options) as run:
        run.wait_for_matches(5)
    assert values(run.found) == numbers(1, 2, 3, 4, 5)


def test_a_file_that_is_gone_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.nq"
    append(path, event(1))
    options = LiveOptions(follow=True, state=str(tmp_path / "state"))
    with Running(tmp_path, str(path), options=options) as run:
        run.wait_for_matches(1)
    path.unlink()
    append(path, event(2, "another"))
    with pytest.raises(StateError, match="is gone"):
        Running(tmp_path, str(path), options=options).join()


# ------------------------------------------------------------------ folders and pipes


def test_a_folder_is_read_by_the_names_of_its_files(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    append(folder / "a.nq", event(1))
    append(folder / "b.nq", event(2))
    append(folder / "d.nq.tmp", event(9))
    with Running(tmp_path, str(folder)) as run:
        run.wait_for_matches(2)
        append(folder / "b.nq", event(3))
        run.wait_for_matches(3)
        append(folder / "new.part", event(4))
        os.rename(folder / "new.part", folder / "c.nq")
        run.wait_for_matches(4)
        os.unlink(folder / "a.nq")
    assert values(run.found) == numbers(1, 2, 3, 4)


def test_a_folder_continues_at_its_file(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    options = LiveOptions(follow=True, state=str(tmp_path / "state"))
    for number in range(1, 5):
        append(folder / f"{number}.nq", event(2 * number - 1))
        with Running(tmp_path, str(folder), options=options) as run:
            run.wait_for_matches(2 * number - 1)
        append(folder / f"{number}.nq", event(2 * number))
        with Running(tmp_path, str(folder), options=options) as run:
            run.wait_for_matches(2 * number)
        (folder / f"{number - 1}.nq").unlink(missing_ok=True)
    assert values(run.found) == numbers(*range(1, 9))


def test_a_named_pipe_is_read_until_it_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with Running(tmp_path, str(path), reading=ReadOptions(syntax="nq")) as run:
        with open(path, "w", encoding="utf-8") as pipe:
            for number in (1, 2):
                pipe.write(event(number))
                pipe.flush()
                run.wait_for_matches(number)
            pipe.write(event(3))
        run.join()
        assert values(run.found) == numbers(1, 2, 3)


# ------------------------------------------------------------------ errors


def test_an_error_names_the_line_after_the_matches_before_it(tmp_path: Path) -> None:
    path = tmp_path / "s.nq"
    append(path, event(1))
    run = Running(tmp_path, str(path))
    run.wait_for_matches(1)
    append(path, event(2) + "broken\n")
    with pytest.raises(InputError, match=r"s\.nq:5"):
        run.join()
    assert values(run.found) == numbers(1, 2)


def test_an_error_is_skipped_on_request(tmp_path: Path) -> None:
    path = tmp_path / "s.nq"
    append(path, event(1))
    with Running(tmp_path, str(path), reading=ReadOptions(on_error="skip")) as run:
        run.wait_for_matches(1)
        append(path, event(2) + "broken\n" + event(3))
        run.wait_for_matches(3)
        assert any("skipped: " in text for text in run.said)


def test_a_malformed_document_is_an_error_at_its_line(tmp_path: Path) -> None:
    path = tmp_path / "s.trig"
    append(path, "@prefix : <http://example.org/> .\n")
    run = Running(tmp_path, str(path))
    append(path, ":a { :s :value ; ; } }\n")
    with pytest.raises(InputError, match=r"s\.trig:2"):
        run.join()


@pytest.mark.parametrize("kind", ["dataset", "member", "subject"])
def test_framings_that_need_the_whole_file_are_refused(tmp_path: Path, kind: str) -> None:
    with pytest.raises(SpaseqError, match="for finished files"):
        Running(tmp_path, "s.nq", reading=ReadOptions(framing=Framing.parse(kind)))


def test_a_compressed_file_is_refused(tmp_path: Path) -> None:
    import gzip

    path = tmp_path / "s.nq.gz"
    path.write_bytes(gzip.compress(event(1).encode()))
    with pytest.raises(InputError, match="compressed"):
        Running(tmp_path, str(path)).join()


# ------------------------------------------------------------------ equal to a finished file


@pytest.mark.parametrize("framing", ["auto", "triples:2"])
def test_any_pieces_give_the_matches_of_the_finished_file(tmp_path: Path, framing: str) -> None:
    from random import Random

    from followed import QUERY

    drawn = Random(framing)
    text = "".join(events(400))
    options = ReadOptions()
    more: tuple[str, ...] = ()
    if framing != "auto":
        facts = [line for line in text.splitlines(keepends=True) if "generatedAt" not in line]
        text = "".join(f"{line.rpartition('<')[0]}.\n" for line in facts)
        options = ReadOptions(framing=Framing.parse(framing))
        more = ("--events", framing)
    (tmp_path / "query.rq").write_text(QUERY, "utf-8")
    expected = finished_run(tmp_path, text, *more)
    path = tmp_path / "s.nq"
    path.touch()
    with Running(tmp_path, str(path), QUERY, reading=options) as run:
        at = 0
        while at < len(text):
            after = at + drawn.choice((1, 7, 100, 5000))
            append(path, text[at:after])
            if drawn.random() < 0.2:
                time.sleep(0.005)
            at = after
        run.wait_for_matches(len(expected))
    assert run.found == expected


def test_two_threads_do_not_matter_to_the_stop(tmp_path: Path) -> None:
    """A run that is stopped while its source is far ahead ends soon, with all threads."""
    path = tmp_path / "s.nq"
    append(path, "".join(event(number) for number in range(20_000)))
    before = threading.active_count()
    options = LiveOptions(follow=True, state=str(tmp_path / "state"))
    with Running(tmp_path, {STREAM: [str(path)]}, EACH, options, timing=TIMING) as run:
        run.wait_for(lambda: len(run.found) > 10)
    assert threading.active_count() == before
    first = len(run.found)
    with Running(tmp_path, {STREAM: [str(path)]}, EACH, options, timing=TIMING) as run:
        run.wait_for_matches(20_000)
    assert values(run.found) == numbers(*range(20_000))
    assert first <= 20_000
