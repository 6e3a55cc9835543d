"""`match`: all matches of queries over a DataFrame of events, exactly.

The query determines how the work is divided (spaseq/spark/distribution.py). The job numbers the
events within their streams (spaseq/spark/numbering.py), unless a single file numbers them already.
It drops events that cannot change a result, and sends the others in chunks to the tasks that need
them. A task evaluates its events in time order in one run. Memory of a task: the chunks that
overlap in time, and the window.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Unpack

from pyspark.sql import functions as f

from spaseq.errors import EventError, SpaseqError
from spaseq.io.arrow_columns import columns_of, select_columns
from spaseq.kb.snapshot import open_kb
from spaseq.parser import format_query
from spaseq.plan.key_division import ByKey
from spaseq.program import Program, compile_queries
from spaseq.rdf.accepted import Bindable
from spaseq.spark import chunks, events
from spaseq.spark.distribution import ByTime, Single, distribution, lookback
from spaseq.spark.division import Division, spaced
from spaseq.spark.malformed import CORRUPT, mode_of
from spaseq.spark.schemas import is_batch, refused_as, schema_of, with_schema
from spaseq.spark.shipping import parallelism, shared
from spaseq.spark.slices import (
    MIN_LOOKBACKS_PER_SLICE,
    Slices,
    Slicing,
    is_one_file,
    slices,
    source_options,
)
from spaseq.spark.tasks import (
    Dividing,
    Evaluating,
    Gathering,
    Job,
    Limits,
    Numbering,
    Sampling,
    shipped,
)
from spaseq.spark.types import Types, spark_schema, typed
from spaseq.spark.versions import arrow_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation
    from pyspark.sql.types import StructType

_CHUNKS = spark_schema(chunks.CHUNKS)
_TASKS_PER_CORE = 3
_NO_JOB = "and a query function of a pipeline must not run one"
_HOT_SHARE = 2
"""A part is hot if its events exceed its equal share by this factor."""


class SingleTaskWarning(UserWarning):
    """The work of a query, or of a hot key, cannot be divided; the message gives the reason."""


def match(
    df: DataFrame,
    query: Program | str | Sequence[str],
    kb: Mapping[str, Any] | None = None,
    *,
    bind: Mapping[str, Bindable] | None = None,
    types: Types | None = None,
    partitions: int | None = None,
    balance: bool = False,
    entail: str | None = None,
    columns: Sequence[str] | None = None,
    mode: str = "FAILFAST",
    observe: Observation | None = None,
    **limits: Unpack[Limits],
) -> DataFrame:
    """The matches of queries over a DataFrame of events.

    Args:
        df: events, with the columns `time`, `graph` and optionally `stream`, `name`, `ordinal`,
            `source`. A row whose stream is null is of the only stream of the queries. Rows of
            streams that no query reads are left out, and `observe` counts them.
        query: a query, several queries, or a compiled program.
        kb: graph IRIs with files, stores or graphs. The driver reads them and sends them to the
            workers once.
        bind: values for query variables.
        types: the Spark types of the columns of variables, by column, or "infer" to derive them
            from the matches.
        partitions: the number of tasks, if the work can be divided.
        balance: sample the events first, and divide hot keys by time as well.
        entail: the entailment regime, as in `Program.start`.
        columns: the columns to compute; None computes all. Spark copies every computed column,
            selected or not, and `events` costs most of a row.
        mode: what happens to a row that is no event, as its graph is not N-Triples, its time is
            missing or its name is not an IRI: "FAILFAST" ends the job with an error that names the
            event, "DROPMALFORMED" drops the row, and "PERMISSIVE" returns it in the column
            `_corrupt_record`, which is null in rows of matches.
        observe: takes the counts of the rows: `events`, and `other_streams` for rows of streams
            that no query reads.
        limits: `max_groups`, `max_steps`, `max_matches`, `max_memory` and `on_limit`, as in
            `Program.start`, for each query in each task.

    Raises:
        QueryError, KbError, EventError: at once, if the query, knowledge base and events do not
            agree.
        ValueError: if no query has one of the `columns`. A column that only some queries have is
            null in the rows of the others.
        SpaseqError: for a streaming DataFrame.
    """
    if is_batch(df) is False:
        raise SpaseqError("match needs a DataFrame that is not streaming; use match_stream")
    program = compiled(query, bind)
    background = open_kb(kb or {})
    schema = schema_of(df)
    events.check_columns(schema, ())
    files = source_options(df)
    if files is not None and files.stream not in program.streams:
        raise EventError(
            f"the DataFrame reads the stream {files.stream}, and the query reads "
            f"{', '.join(program.streams)}"
        )
    if observe is not None:
        counted = df.observe(observe, *events.counts(schema, program.streams))
        df = with_schema(counted, schema)
    programs, kind = _apart(program), events.time_kind(schema)
    made = select_columns([columns_of(one, kind) for one in programs], columns)
    treatment = mode_of(mode)
    results = []
    for number, (one, own) in enumerate(zip(programs, made, strict=True)):
        # Raises for a missing graph before the job starts.
        one.start(background, entail=entail, **limits)
        earlier = {stream for other in programs[:number] for stream in other.streams}
        job = Job(
            one,
            background,
            own,
            Division((), ((),)),
            entail,
            functions=shipped(one),
            mode=treatment,
            reported=tuple(stream for stream in one.streams if stream not in earlier),
            time=arrow_type(schema["time"]),
            limits=limits,
        )
        results.append(_matched(df, schema, job, partitions, balance))
    found = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), results)
    if columns is not None and len(results) > 1:
        corrupt = [CORRUPT] if treatment == "PERMISSIVE" else []
        found = found.select(*dict.fromkeys([*columns, *corrupt]))
    return found if types is None else typed(found, types)


def compiled(
    query: Program | str | Sequence[str], bind: Mapping[str, Bindable] | None = None
) -> Program:
    """The program of the queries, with `bind` applied."""
    if isinstance(query, Program):
        return query.bind(bind or {})
    return compile_queries(query, bind=bind)


def _apart(program: Program) -> list[Program]:
    """One program per query, unless a query reads a stream that another query registers."""
    plans = [query.plan for query in program.queries]
    written = {plan.registers_stream for plan in plans}
    if len(plans) == 1 or any(written & set(plan.streams) for plan in plans):
        return [program]
    return [
        compile_queries(format_query(source), names=[name])
        for source, name in zip(program.sources, program.names, strict=True)
    ]


def _matched(
    df: DataFrame, given: StructType, whole: Job, partitions: int | None, balance: bool
) -> DataFrame:
    spark, program, schema = df.sparkSession, whole.program, spark_schema(whole.schema)
    with refused_as(f"match counts the cores in a job, {_NO_JOB}: pass partitions="):
        slots = partitions or parallelism(spark)
    tasks = partitions or _TASKS_PER_CORE * slots
    # Slices have equal sizes in bytes, and each also reads the window before it: fewer is cheaper.
    found = slices(df, whole, slots)
    if found is not None and _is_enough(found, program, slots):
        numbers = spark.range(0, found.count, 1, found.count)
        slicing = Slicing(shared(spark, whole), found)
        return numbers.mapInArrow(slicing.__call__, schema)
    prepared = events.prepared(df, given, program)
    division = _divided(prepared, given, whole, tasks, balance)
    job = shared(spark, replace(whole, division=division, buckets=tasks))
    if is_one_file(df):
        divided = prepared.mapInArrow(Dividing(job).__call__, _CHUNKS)
    else:
        gathered = prepared.mapInArrow(Gathering(job).__call__, _CHUNKS)
        divided = _by_part(gathered, tasks).mapInArrow(Numbering(job).__call__, _CHUNKS)
    return _by_part(divided, division.tasks).mapInArrow(Evaluating(job).__call__, schema)


def _by_part(made: DataFrame, tasks: int) -> DataFrame:
    """Chunks, each at the task of its part, in order of time."""
    sent = made.repartitionById(tasks, f.col("part"))
    return with_schema(sent.sortWithinPartitions("part", "first"), _CHUNKS)


def _is_enough(found: Slices, program: Program, wanted: int) -> bool:
    """Whether there are as many slices as wanted, or no other way to use several cores."""
    return found.count >= wanted or not isinstance(distribution(program), ByKey)


def _divided(
    prepared: DataFrame, given: StructType, job: Job, wanted: int, balance: bool
) -> Division:
    match distribution(job.program):
        case ByKey(variables):
            division = Division(variables, ((),) * wanted)
            if not balance:
                return division
            with refused_as(f"balance=True samples the events in a job, {_NO_JOB}"):
                return _balanced(prepared, job, division)
        case ByTime(back):
            shares = [number / wanted for number in range(1, wanted)]
            if not shares:
                return Division((), ((),), back)
            quantiles = f.percentile_approx(events.micros(given), shares, 1000)
            with refused_as(
                "match needs the times of the events to divide the work of this query, and reads "
                f"them in a job, {_NO_JOB}: pass partitions=1"
            ):
                (times,) = prepared.select(quantiles).collect()[0]
            return Division((), (spaced(times or (), MIN_LOOKBACKS_PER_SLICE * back),), back)
        case Single(reason):
            warnings.warn(f"one task does all the work: {reason}", SingleTaskWarning, stacklevel=4)
    return Division((), ((),))


def _balanced(prepared: DataFrame, whole: Job, division: Division) -> Division:
    """The division, with hot parts divided by time as well, if that is exact."""
    back = lookback(whole.program.queries[0].plan)
    if isinstance(back, str):
        warnings.warn(f"hot keys are not divided: {back}", SingleTaskWarning, stacklevel=5)
        return division
    columns = columns_of(whole.program, "string")
    job = shared(prepared.sparkSession, replace(whole, columns=columns, division=division))
    sample = prepared.sample(fraction=0.01, seed=0).mapInArrow(
        Sampling(job).__call__, "part int, micros long"
    )
    cuts = list(division.cuts)
    weights = sample.groupBy("part").agg(
        f.count("*"), f.percentile_approx("micros", [n / 16 for n in range(1, 16)], 1000)
    )
    rows = weights.collect()
    share = sum(row[1] for row in rows) / division.parts
    for part, weight, times in rows:
        slices = int(weight / (_HOT_SHARE * share)) + 1 if share else 1
        if slices > 1:
            step = max(1, len(times) // slices)
            cuts[part] = spaced(times[step - 1 :: step], MIN_LOOKBACKS_PER_SLICE * back)
    return Division(division.variables, tuple(cuts), back)
