"""A description of a program as plain data (`to_dict`) and as text (`explain`).

For each query it states how its GPMs are evaluated, where each filter is evaluated, the registers
of each place of the automaton, and the maximum cost of an event (`cost`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from spaseq.engine.compiled import CompiledQueries, CompiledQuery, limit_clause, selection_clause
from spaseq.engine.entailment import widened_patterns
from spaseq.engine.evaluation import Evaluation
from spaseq.engine.key_division import KeyDivision, key_division
from spaseq.engine.native.dispatch_keys import Requirement, rarest, requirement_text
from spaseq.engine.native_groups import read_in_python
from spaseq.engine.place_names import STRATEGIES, Notation, skip_text, window_text
from spaseq.engine.residual_filters import left_to_python, valued_in_python
from spaseq.engine.sharing import hindrance, own_steps
from spaseq.explain.applied_rules import applied_rules, rules_text
from spaseq.explain.cost import DOUBLING_REMEDY, conditions, guarantee
from spaseq.explain.erred import Erred
from spaseq.explain.erred import erred as erred_of
from spaseq.explain.joining import joined_so_far, joining, joining_text
from spaseq.gpm.expression_errors import prefixes_of, with_prefixes
from spaseq.gpm.pattern import Pattern
from spaseq.gpm.plan_text import Observed, plan_lines, renamed, views
from spaseq.gpm.program import by_reference
from spaseq.parser import ast
from spaseq.parser.format import expression_line
from spaseq.plan import templates
from spaseq.plan.logical import GpmPlan, Grouping, Occurrence, Window
from spaseq.plan.prefixes import continues
from spaseq.plan.templates import Template

Data = dict[str, Any]
MOST_NAMES = 8
"""The number of GPMs with a shared pattern that the text names."""
_PLURALS = {"class": "classes", "subproperty": "subproperties"}


# ------------------------------------------------------------------ as data


def to_dict(
    program: CompiledQueries,
    observed: Sequence[Observed | None] | None = None,
    widened: Sequence[Sequence[Data]] | None = None,
    joined: Sequence[Data] | None = None,
    templates: Sequence[Template] | None = None,
) -> Data:
    """The plan as JSON-serialisable data.

    Args:
        program: The compiled queries.
        observed: The counters of a run for each task (a distinct graph pattern), or None for a task
            whose pattern the run matches only in a changed form.
        widened: For each task, the triple patterns that entailment widens.
        joined: For each query, the join strategy of a run.
        templates: The queries that a run evaluates as one, by number.
    """
    together = _together(program, templates)
    users: list[list[str]] = [[] for _ in program.tasks]
    for query in program.queries:
        for gpm, task in zip(query.plan.gpms, query.tasks, strict=True):
            users[task].append(f"{query.plan.name}.{gpm.name}")
    several = len(program.queries) > 1 and not any(widened or ())
    dispatch = rarest(program.tasks) if several else [None] * len(program.tasks)
    entailed = any(widened or ())
    division = _division("entailment adds triples" if entailed else key_division(program))
    return {
        "queries": [
            _query(program, number, users, dispatch, observed, widened)
            | {"joined": joining(program, number, joined), "division": division}
            | together[number]
            for number in range(len(program.queries))
        ],
        "evaluations_per_event": len(program.tasks),
        "gpms": sum(len(query.plan.gpms) for query in program.queries),
    }


def _together(program: CompiledQueries, shared: Sequence[Template] | None) -> Sequence[Data]:
    """Per query: the number and the first names of queries evaluated with it, or why there is none.

    `common_steps` is the number of steps that the query shares, if it does not share all.
    """
    names = [query.plan.name for query in program.queries]
    nothing = {"evaluated_with": None, "common_steps": None, "on_its_own": None}
    found: list[Data] = [dict(nothing) for _ in names]
    for template in shared or ():
        numbers = template.queries
        for some, count in zip(template.members, template.common, strict=False):
            for number in some:
                found[number]["common_steps"] = _steps(program.sources[number], count)
        first = numbers[: MOST_NAMES + 1]
        for number in numbers:
            others = [names[n] for n in first if n != number][:MOST_NAMES]
            found[number]["evaluated_with"] = {"queries": len(numbers) - 1, "first": others}
    if shared is not None and len(names) >= templates.LEAST:
        registers = any(query.plan.registers_stream for query in program.queries)
        for each, query, source in zip(found, program.queries, program.sources, strict=True):
            if registers:
                each["on_its_own"] = "a query registers a stream"
            elif each["evaluated_with"] is None:
                each["on_its_own"] = (
                    hindrance(query, source)
                    or own_steps(query, source)
                    or _continued(program, source, shared)
                )
    return found


def _steps(source: ast.Query, occurrences: int) -> int:
    """The number of steps of a query that contain its first occurrences of graph patterns."""
    steps, references = 0, 0
    for step in source.sequence.steps:
        references += sum(isinstance(node, ast.GpmRef) for node in ast.walk(step))
        if references > occurrences:
            break
        steps += 1
    return steps


def _continued(
    program: CompiledQueries, source: ast.Query, shared: Sequence[Template]
) -> str | None:
    """Whether queries that share steps continue the sequence of another one."""
    found = any(
        continues(program.sources[number], source)
        for template in shared
        if template.branches
        for number in template.queries
    )
    return "queries that share its steps continue them" if found else None


def _query(
    program: CompiledQueries,
    number: int,
    users: Sequence[Sequence[str]],
    dispatch: Sequence[Requirement | None],
    observed: Sequence[Observed | None] | None,
    widened: Sequence[Sequence[Data]] | None,
) -> Data:
    query = program.queries[number]
    plan, notation = query.plan, Notation(query)
    promise = guarantee(notation)
    output = plan.output
    return {
        "name": plan.name,
        "sequence": notation.sequence(),
        "streams": list(plan.streams),
        "writes": plan.registers_stream,
        "kb_graphs": None if plan.kb_graphs is None else list(plan.kb_graphs),
        "window": {
            "kind": plan.window.kind,
            "size": plan.window.size,
            "text": window_text(plan.window),
        },
        "partition": list(plan.partition),
        "emit": plan.emit,
        "chooses": selection_clause(query),
        "after_match": skip_text(plan),
        "output": {
            "form": output.form,
            "variables": [column.name for column in output.columns],
            "distinct": output.distinct,
            "limit": output.limit,
            "per": list(output.per),
            "every": output.every,
            "limit_clause": None if output.limit is None else limit_clause(output),
            "groups": None if output.grouping is None else _grouping(query, output.grouping),
        },
        "gpms": [
            _gpm(
                program.tasks[task],
                gpm,
                {
                    "task": task,
                    "shared_with": [u for u in users[task] if u != f"{plan.name}.{gpm.name}"],
                    "dispatched_by": _dispatch_text(dispatch[task]),
                    "entailed": [] if widened is None else list(widened[task]),
                },
                None if observed is None else observed[task],
            )
            for gpm, task in zip(plan.gpms, query.tasks, strict=True)
        ],
        "steps": [
            _step(notation, occurrence, [program.patterns[n] if n >= 0 else None for n in asked])
            for occurrence, asked in zip(plan.occurrences, query.asked, strict=True)
        ],
        "places": [_place(notation, place) for place in notation.order],
        "registers": _registers(notation),
        "rules": applied_rules(query),
        "guarantee": {
            "kind": promise.kind,
            "sentence": promise.sentence,
            "matches": promise.matches,
            "edges": [
                {"place": c.place, "gpm": c.edge, "kind": c.kind, "because": list(c.because)}
                for c in promise.edges
            ],
        },
    }


def _division(division: KeyDivision | str) -> Data:
    """The variable by which threads divide the events, and why; or why one thread matches all."""
    if isinstance(division, str):
        return {"key": None, "because": division}
    return {"key": division.variable, "because": division.why}


def _dispatch_text(requirement: Requirement | None) -> str | None:
    return None if requirement is None else requirement_text(requirement)


def _grouping(query: CompiledQuery, grouping: Grouping) -> Data:
    kind = ast.WindowKind.TUMBLING if grouping.tumbling else ast.WindowKind.SPAN
    window = Window(kind, grouping.size)
    return {
        "keys": [key.name for key in grouping.keys],
        "left_to_python": read_in_python(query),
        "over": grouping.size,
        "tumbling": grouping.tumbling,
        "text": window_text(window).replace("WITHIN", "OVER"),
        "aggregates": [aggregate.name for aggregate in grouping.aggregates],
        "let": [item.name for item in grouping.lets],
        "having": [expression_line(each) for each in grouping.having],
    }


def _gpm(pattern: Pattern, gpm: GpmPlan, sharing: Data, observed: Observed | None) -> Data:
    # Another GPM that shares the pattern may name its variables differently.
    names = dict(zip(pattern.program.variables, gpm.variables, strict=True))
    lines = renamed(plan_lines(pattern, observed), names)
    return {
        "name": gpm.name,
        "streams": list(gpm.streams),
        "variables": list(gpm.variables),
        "certain": sorted(gpm.certain & set(gpm.variables)),
        "evaluated": "natively" if pattern.native is not None else "by Python operators",
        "left_to_python": list(renamed(pattern.left_to_python, names)),
        **sharing,
        "entailed": [
            {**each, "triple": renamed((each["triple"],), names)[0]} for each in sharing["entailed"]
        ],
        "views": list(views(pattern)),
        "plan": list(lines),
        "observed": None if observed is None else _observed(observed),
        "by_pyoxigraph": _by_pyoxigraph((gpm.pattern, *(c.expression for c in gpm.local))),
        "local_filters": [condition.text for condition in gpm.local],
    }


def _observed(observed: Observed) -> Data:
    return {
        "events": observed.events,
        "rows": observed.rows,
        "passed_local_filters": observed.passed,
        "steps": {text: list(counts) for text, counts in observed.steps.items()},
        "asked": list(observed.asked),
    }


def _by_pyoxigraph(nodes: tuple[ast.Node, ...]) -> list[str]:
    """The functions in a tree that pyoxigraph computes."""
    names = map(by_reference, ast.walk(nodes))
    return list(dict.fromkeys(name for name in names if name is not None))


def _step(notation: Notation, occurrence: Occurrence, asked: Sequence[Pattern | None]) -> Data:
    return {
        "gpm": notation.names[occurrence.index],
        "negated": occurrence.negated,
        "iterated_in": [notation.unit(unit) for unit in occurrence.units],
        "stateful": [text for text, _ in conditions(occurrence)],
        "left_to_python": [
            reason
            for condition, pattern in zip(occurrence.residual, asked, strict=True)
            if (reason := left_to_python(condition.expression, pattern)) is not None
        ]
        + [
            reason
            for assignment in occurrence.assignments
            if (reason := valued_in_python(assignment.value.expression)) is not None
        ],
        "by_pyoxigraph": _by_pyoxigraph(tuple(c.expression for _, c in conditions(occurrence))),
    }


def _place(notation: Notation, number: int) -> Data:
    automaton, registers = notation.automaton, notation.plan.registers
    place = automaton.places[number]
    return {
        "place": notation.numbers[number],
        "label": notation.label(number),
        "start": place.start,
        "strategy": STRATEGIES[place.operator],
        "operator": place.operator,
        "guards": list(dict.fromkeys(map(notation.guard, place.guards))),
        "registers": [notation.register(registers[register]) for register in place.live],
        "edges": [
            {
                "gpm": notation.edge(edge),
                "index": notation.index(number, position),
                "targets": [notation.target(link) for link in notation.ways(edge)],
            }
            for position, edge in enumerate(place.edges)
        ],
    }


def _registers(notation: Notation) -> list[Data]:
    out = []
    for number, register in enumerate(notation.plan.registers):
        kept = [p for p in notation.order if number in notation.automaton.places[p].live]
        out.append(
            {
                "name": notation.register(register),
                "kind": register.kind,
                "meaning": notation.meaning(register),
                "places": [notation.numbers[place] for place in kept],
            }
        )
    return out


# ------------------------------------------------------------------ as text


def explain(
    program: CompiledQueries,
    observed: Sequence[Observed | None] | None = None,
    widened: Sequence[Sequence[Data]] | None = None,
    joined: Sequence[Data] | None = None,
    templates: Sequence[Template] | None = None,
    erred: Sequence[Sequence[Erred]] | None = None,
) -> str:
    """The plan as text.

    `erred` has, for each query of a run, the filters and BINDs that erred. The other arguments are
    those of `to_dict`.
    """
    data = to_dict(program, observed, widened, joined, templates)
    lines: list[str] = []
    if len(data["queries"]) > 1:
        names = _some([query["name"] for query in data["queries"]])
        lines += [
            f"{len(data['queries'])} queries, in the order in which they process an event: {names}",
            f"{data['gpms']} graph patterns, {data['evaluations_per_event']} of them distinct: "
            "equal patterns are evaluated once per event and shared",
            "",
        ]
    errors = erred or [()] * len(data["queries"])
    for query, position, some in zip(data["queries"], program.positions, errors, strict=True):
        lines += _query_text(query, prefixes_of(program.sources[position]))
        lines += _erred_text(some)
        lines.append("")
    return "\n".join(lines[:-1]) + "\n"


def explain_run(run: Evaluation, program: CompiledQueries) -> str:
    """The plan of a run as text, with what has been observed so far.

    Args:
        run: The run.
        program: Its queries.
    """
    matchers, patterns, listed = run.rows.matchers, run.listed.program.patterns, run.listed
    # What is observed has the variables of the pattern that the run has.
    own = [
        pattern if task < 0 else patterns[task]
        for pattern, task in zip(program.tasks, listed.tasks, strict=True)
    ]
    program = replace(program, tasks=tuple(own))
    counters = {executor: executor.state.counters() for executor in listed.executors}
    return explain(
        program,
        [None if task < 0 else matchers.observed(task) for task in listed.tasks],
        widened_patterns(program, {kbs: each.rules for kbs, each in run.entailed.items()}),
        [joined_so_far(query.state.native) for query in listed.queries],
        listed.templates,
        [
            erred_of(run, number, query.own_counters(counters[query.executor]))
            for number, query in enumerate(listed.queries)
        ],
    )


def _query_text(query: Data, prefixes: Mapping[str, str]) -> Iterator[str]:
    """The lines of a query; IRIs have its prefixes, except those of streams and KB graphs."""
    yield f"query {query['name']}"
    yield from _indented(_table(_clauses(query)))
    yield ""
    for line in _evaluation_text(query):
        yield with_prefixes(line, prefixes)


def _evaluation_text(query: Data) -> Iterator[str]:
    yield "  graph patterns (evaluated once per event of their streams, native unless noted)"
    for gpm in query["gpms"]:
        yield from _indented(_gpm_text(query, gpm), 4)
    yield ""
    yield "  filters and BINDs that read the partial match (evaluated where a row meets one)"
    yield from _indented(_stateful_text(query["steps"]), 4)
    yield ""
    yield "  automaton (^ start; > next places; kept: registers that distinguish groups)"
    yield from _indented(_places_text(query["places"]), 4)
    yield ""
    yield "  registers"
    yield from _indented(_registers_text(query["registers"]), 4)
    yield ""
    yield "  optimisation rules (SPASEQ_DISABLE=name,... switches them off)"
    yield from _indented(list(rules_text(query["rules"])) or ["none"], 4)
    yield ""
    besides = ", besides its matches" if query["guarantee"]["matches"] is not None else ""
    yield f"  cost: {query['guarantee']['sentence']}{besides}"
    for edge in query["guarantee"]["edges"]:
        what = f"place {edge['place']}, {edge['gpm']}"
        reasons = "; ".join(edge["because"])
        visits = "groups visited: " if edge["kind"] in ("groups", "ordered") else ""
        yield f"    {what}: {visits}{reasons}"
    yield from _indented(joining_text(query["joined"]), 4)
    yield from _indented(_emission_cost(query), 4)
    if query["guarantee"]["matches"] is not None:
        yield f"  matches: {query['guarantee']['matches']}"
        yield f"    {DOUBLING_REMEDY}"


def _erred_text(errors: Sequence[Erred]) -> Iterator[str]:
    if errors:
        yield ""
        yield "  filters and BINDs that erred so far"
        yield from _indented([f"{each.gpm}: {each}" for each in errors], 4)


def _clauses(query: Data) -> Iterator[tuple[str, str]]:
    yield "sequence", query["sequence"]
    yield "window", query["window"]["text"]
    yield "streams", ", ".join(f"<{iri}>" for iri in query["streams"])
    if query["kb_graphs"] is not None:
        yield "KB graphs", ", ".join(f"<{iri}>" for iri in query["kb_graphs"])
    if query["partition"]:
        yield "partition", "by " + " ".join(f"?{name}" for name in query["partition"])
    yield "emits", f"{query['emit']}, after a match {query['after_match']}"
    output = query["output"]
    words = [output["form"].upper()]
    words += ["DISTINCT"] * output["distinct"]
    words += [f"?{name}" for name in output["variables"]]
    words += ["(no variable)"] * (output["form"] == "select" and not output["variables"])
    words += [output["limit_clause"]] * (output["limit"] is not None)
    yield "result", " ".join(words)
    if output["groups"] is not None:
        yield "groups", _groups_text(output["groups"])
    if query["writes"] is not None:
        yield "writes", f"<{query['writes']}>"
    key, because = query["division"]["key"], query["division"]["because"]
    shared = f"divide the events of large files by ?{key} ({because})"
    yield "threads", f"one matches: {because}" if key is None else shared
    if query["evaluated_with"] is not None:
        others = query["evaluated_with"]
        rest = others["queries"] - len(others["first"])
        more = f" and {rest:,} more" if rest else ""
        steps = query["common_steps"]
        counted = "first step" if steps == 1 else f"first {steps} steps"
        what = "automaton" if steps is None else counted
        yield "shares", f"its {what} with {', '.join(others['first'])}{more}"
    elif query["on_its_own"] is not None:
        yield "shares", f"no automaton: {query['on_its_own']}"


def _groups_text(groups: Data) -> str:
    words = ["BY " + " ".join(f"?{key}" for key in groups["keys"]) if groups["keys"] else "one"]
    words.append(groups["text"])
    if groups["aggregates"]:
        words.append(f"with {', '.join(groups['aggregates'])}")
    return "; ".join(words)


def _gpm_text(query: Data, gpm: Data) -> Iterator[str]:
    head = f"{gpm['name']}: "
    head += " ".join(f"?{name}" for name in gpm["variables"]) or "no variables"
    if len(query["streams"]) > 1:
        head += " on " + ", ".join(f"<{iri}>" for iri in gpm["streams"])
    yield head
    yield from _indented(gpm["plan"])
    yield from map(_widened_text, gpm["entailed"])
    for text in gpm["local_filters"]:
        yield f"  local FILTER({text})"
    seen = gpm["observed"]
    if seen is not None:
        yield (
            f"  seen: {seen['events']:,} events, {seen['rows']:,} rows, "
            f"{seen['passed_local_filters']:,} passed the local filters"
        )
        yield from _indented(seen["asked"])
    maybe = [f"?{name}" for name in gpm["variables"] if name not in gpm["certain"]]
    if maybe:
        yield f"  may stay unbound: {' '.join(maybe)}"
    for reason in gpm["left_to_python"]:
        yield f"  by Python operators: {reason}"
    for function in gpm["by_pyoxigraph"]:
        yield f"  computed by pyoxigraph: {function}"
    if gpm["dispatched_by"] is not None:
        yield f"  reached by events with {gpm['dispatched_by']}"
    if gpm["shared_with"]:
        yield f"  shared with {_some(gpm['shared_with'])}"


def _some(names: Sequence[str]) -> str:
    """The first names of a list, and how many follow."""
    rest = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {rest:,} more" if rest > 0 else "")


def _widened_text(widened: Data) -> str:
    """A description of the widening of a triple pattern: `{"class": 12}` is 12 classes."""
    words = [
        f"{count:,} {name if count == 1 else _PLURALS.get(name, name + 's')}"
        for name, count in widened.items()
        if name != "triple"
    ]
    return f"  entailed {widened['triple']}  (also by {', '.join(words)})"


def _stateful_text(steps: Sequence[Data]) -> list[str]:
    lines = []
    for step in steps:
        lines += [f"{step['gpm']}: {text}" for text in step["stateful"]]
        lines += [f"{step['gpm']}: by Python operators: {text}" for text in step["left_to_python"]]
        lines += [
            f"{step['gpm']}: computed by pyoxigraph: {text}" for text in step["by_pyoxigraph"]
        ]
    return list(dict.fromkeys(lines)) or ["none"]


def _places_text(places: Sequence[Data]) -> list[str]:
    rows = []
    for place in places:
        head = f"{'^' if place['start'] else ' '}{place['place']}"
        wait = place["operator"] or ""
        guards = " ".join(place["guards"])
        kept = "kept: " + ", ".join(place["registers"]) if place["registers"] else ""
        for edge in place["edges"]:
            index = f"index: {' '.join(edge['index'])}" if edge["index"] else ""
            targets = "> " + ", ".join(edge["targets"])
            rows.append((head, guards, wait, edge["gpm"], targets, kept, index))
            head = wait = guards = kept = ""
    return _aligned(rows)


def _registers_text(registers: Sequence[Data]) -> list[str]:
    rows = []
    for register in registers:
        kept = ", ".join(map(str, register["places"]))
        where = f"kept in place {kept}" if kept else "not kept between events"
        rows.append((register["name"], register["meaning"], where))
    return _aligned(rows) or ["none"]


def _emission_cost(query: Data) -> Iterator[str]:
    if query["output"]["groups"] is not None:
        reason = query["output"]["groups"]["left_to_python"]
        how = "" if reason is None else f" (each made by Python operators, since {reason})"
        yield (
            f"GROUP: natively over results{how}: a result is added to its group once and removed "
            "once, whatever OVER is; memory: the results inside OVER"
        )
    if query["output"]["every"] is not None:
        yield (
            "EVERY: memory: a count for each value of PER that gave a result within EVERY"
            if query["output"]["per"]
            else "EVERY: memory: one count"
        )
    if query["after_match"].startswith("SKIP TO"):
        yield (
            f"AFTER MATCH {query['after_match']}: starts are kept apart: the matches of a start "
            "that has ended are still enumerated, and dropped; memory: the starts that have ended "
            "inside the window"
        )
    if query["chooses"] is not None:
        name = query["chooses"]["clause"]
        how = (
            "all matches of an instant are enumerated before the selection"
            if query["chooses"]["lists_all"]
            else "the selection prunes shared prefixes, and enumerates only selected matches"
        )
        yield f"{name}: {how}"


def _table(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, value in rows:
        yield f"{name:<11}{value}"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns as wide as their widest cell; empty columns are omitted."""
    if not rows:
        return []
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) for cell, width in zip(row, widths, strict=True) if width
        ).rstrip()
        for row in rows
    ]


def _indented(lines: Iterable[str], by: int = 2) -> Iterator[str]:
    return (" " * by + line for line in lines)
