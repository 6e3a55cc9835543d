"""The table of metrics: what live runs and the server show, and what the documents say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from spaseq.live.metrics import METRICS, exposition
from spaseq.live.monitoring import _samples
from spaseq.live.status import CheckpointStatus, QueryStatus, Status, StreamStatus

DOCS = Path(__file__).parents[3] / "docs" / "live.md"


def test_the_documents_have_each_metric_with_its_labels_and_doors() -> None:
    found: dict[str, tuple[set[str], bool, bool]] = {}
    for names, labels in re.findall(r"^\| (`spaseq_.*?) \| ?(.*?)\|", DOCS.read_text(), re.M):
        for name in re.findall(r"spaseq_\w+", names):
            runs, serves = "(server)" not in names, "(runs)" not in names
            found[name] = {*re.findall(r"\w+", labels)}, runs, serves
    expected = {name: ({*one.labels}, one.runs, one.serves) for name, one in METRICS.items()}
    assert found == expected


def test_names_say_the_kind_and_the_unit() -> None:
    for name, metric in METRICS.items():
        assert name == metric.name
        assert name.endswith("_total") == (metric.kind == "counter"), name
        assert metric.help.endswith(".")


def test_a_live_run_shows_all_of_its_metrics() -> None:
    stream = StreamStatus(
        "urn:s", 5, 1, 3, 10.0, "10", 0.5, 4, 100, 0.0, True, False, False, True, None, 2
    )
    status = Status(
        0.0, 5, 7, [stream], [QueryStatus("q", 6, 8, {"2: A": 9})],
        CheckpointStatus(1, 2, 3.0, 10.0, 0.1, 0.2, 4),
        {"urn:kb": {"requests": 1, "failures": 2, "asked": 3, "known": 4}},
    )  # fmt: skip
    samples = _samples(status)
    assert {*samples} | {"spaseq_ready"} == {name for name, one in METRICS.items() if one.runs}
    assert samples["spaseq_events_total"] == [(("urn:s",), 5)]
    assert samples["spaseq_ahead_events_total"] == [(("urn:s",), 2)]
    lines = exposition(samples).splitlines()
    assert 'spaseq_groups{query="q",place="2: A"} 9.0' in lines
    assert "# TYPE spaseq_late_events_total counter" in lines


def test_texts_are_escaped_and_unknown_names_refused() -> None:
    text = exposition({"spaseq_idle": [(('a"\\\n',), True)]})
    assert text.splitlines()[-1] == 'spaseq_idle{stream="a\\"\\\\\\n"} 1.0'
    with pytest.raises(KeyError, match="spaseq_other"):
        exposition({"spaseq_other": []})
