"""The metrics of live runs and of the server, for Prometheus: one table for both.

`spaseq run --metrics` renders them with the client library (`spaseq.live.monitoring`), the server
as text (`spaseq.server.metrics`). A metric means the same in both; docs/live.md lists them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from spaseq.records import dataclass

Kind: TypeAlias = Literal["counter", "gauge"]
Sample: TypeAlias = tuple[Sequence[str], float]
"""The values of the labels, and the value."""
Samples: TypeAlias = Mapping[str, Iterable[Sample]]
"""Name of a metric → its samples. A metric that does not apply is not there."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric.

    Args:
        name: Its name.
        kind: Whether it only grows.
        help: What it means.
        labels: The names of its labels.
        runs: Whether live runs have it.
        serves: Whether the server has it.
    """

    name: str
    kind: Kind
    help: str
    labels: Sequence[str] = ()
    runs: bool = True
    serves: bool = True


_STREAM, _QUERY, _SOURCE = ("stream",), ("query",), ("source",)
METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("spaseq_ready", "gauge", "Whether /readyz is 200."),
        Metric(
            "spaseq_events_total", "counter", "Events accepted: neither late nor ahead.", _STREAM
        ),
        Metric("spaseq_late_events_total", "counter", "Events that were too late.", _STREAM),
        Metric(
            "spaseq_ahead_events_total", "counter", "Events too far ahead of the clock.", _STREAM
        ),
        Metric("spaseq_rejected_events_total", "counter", "Errors that were skipped.", _STREAM),
        Metric(
            "spaseq_watermark_seconds", "gauge", "The time before which no event comes.", _STREAM
        ),
        Metric(
            "spaseq_watermark_lag_seconds", "gauge", "The watermark behind the clock.", _STREAM
        ),
        Metric("spaseq_holds_back", "gauge", "Whether other streams wait for this one.", _STREAM),
        Metric("spaseq_idle", "gauge", "Whether the others do not wait for it.", _STREAM),
        Metric(
            "spaseq_waiting_events", "gauge", "Events waiting for other streams or late ones.",
            _STREAM,
        ),
        Metric(
            "spaseq_queue_bytes", "gauge", "Bytes read and not yet decoded.", _STREAM, serves=False
        ),
        Metric("spaseq_matches_total", "counter", "Matches found.", _QUERY),
        Metric("spaseq_shed_groups_total", "counter", "Groups that a limit dropped.", _QUERY),
        Metric("spaseq_groups", "gauge", "Groups of partial matches.", ("query", "place")),
        Metric("spaseq_query_running", "gauge", "Whether a query runs.", _QUERY, runs=False),
        Metric(
            "spaseq_matches_written_total", "counter", "Matches written by this process.",
            serves=False,
        ),
        Metric("spaseq_subscribers", "gauge", "Subscribers.", runs=False),
        Metric(
            "spaseq_request_bytes", "gauge", "Bytes of bodies that wait for the engine.", runs=False
        ),
        Metric("spaseq_checkpoint_number", "gauge", "The number of the last checkpoint."),
        Metric("spaseq_checkpoint_age_seconds", "gauge", "The age of the last checkpoint."),
        Metric("spaseq_checkpoint_size_bytes", "gauge", "The size of the last checkpoint."),
        Metric(
            "spaseq_checkpoint_pause_seconds", "gauge",
            "For how long the last checkpoint stopped the run.",
        ),
        Metric(
            "spaseq_checkpoint_failures_total", "counter", "Checkpoints that were not written."
        ),
        Metric(
            "spaseq_kb_requests_total", "counter", "Requests to a source of the knowledge base.",
            _SOURCE, serves=False,
        ),
        Metric("spaseq_kb_failures_total", "counter", "Requests that failed.", _SOURCE,
               serves=False),
        Metric("spaseq_kb_asked_total", "counter", "Values that events needed.", _SOURCE,
               serves=False),
        Metric(
            "spaseq_kb_cache_hits_total", "counter", "Those of kb_asked that the cache held.",
            _SOURCE, serves=False,
        ),
    )
}  # fmt: skip
"""Name → metric, in the order in which they are shown."""


def families(samples: Samples) -> Iterator[tuple[Metric, list[Sample]]]:
    """The metrics that have samples, in the order of the table.

    Raises:
        KeyError: for a sample of a metric that the table does not have.
    """
    unknown = samples.keys() - METRICS.keys()
    if unknown:
        raise KeyError(min(unknown))
    for name, metric in METRICS.items():
        if name in samples:
            yield metric, list(samples[name])


def exposition(samples: Samples) -> str:
    """The samples in the text format of Prometheus."""
    lines = []
    for metric, values in families(samples):
        lines += [f"# HELP {metric.name} {metric.help}", f"# TYPE {metric.name} {metric.kind}"]
        for labels, value in values:
            named = zip(metric.labels, labels, strict=True)
            shown = ",".join(f'{name}="{_escaped(text)}"' for name, text in named)
            lines.append(f"{metric.name}{f'{{{shown}}}' if shown else ''} {float(value)!r}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
