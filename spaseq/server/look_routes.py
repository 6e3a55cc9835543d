"""Looking inside: the plan with live counts, the groups that wait, and why nothing matched."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from spaseq.engine.place_names import Notation
from spaseq.errors import EventError
from spaseq.explain.automaton_picture import LiveCounts
from spaseq.explain.automaton_svg import to_svg
from spaseq.explain.one_event import why_one
from spaseq.explain.report import explain as explain_text
from spaseq.explain.report import to_dict
from spaseq.explain.waiting import WaitingGroup, waiting_groups
from spaseq.io.read_options import ReadOptions, TimeDomain
from spaseq.rdf.encoded import EncodedEvent
from spaseq.rdf.event import Event
from spaseq.rdf.native._terms import Dictionary, Relevance
from spaseq.rdf.time import json_value
from spaseq.results.data import term_to_json
from spaseq.runs import Run
from spaseq.server import context
from spaseq.server.bodies import Body, BodyReader
from spaseq.server.inputs import time_of_json
from spaseq.server.problems import Problem

TEXT, SVG = "text/plain", "image/svg+xml"
_SVG_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
MAX_GROUPS = 10_000
_T = TypeVar("_T")


async def explain(request: Request) -> Response:
    """The plan of a query: as text, as JSON or drawn with live counts."""
    wanted = context.accepted(request, (TEXT, "application/json", SVG))
    if wanted == SVG:
        drawn = await _of_run(request, _drawn)
        headers = {"Content-Security-Policy": _SVG_POLICY, "Cache-Control": "no-store"}
        return Response(drawn, 200, headers, SVG)
    if wanted == "application/json":
        return JSONResponse(await _of_run(request, _described))
    return PlainTextResponse(await _of_run(request, _told))


def _counts(run: Run, number: int) -> LiveCounts:
    query = run.evaluation.listed.queries[number]
    places = query.own_counters(query.state.counters()).places
    return LiveCounts(
        {state.number: state.groups for state in places},
        {state.number: state.reached for state in places},
        query.matched,
    )


def _alone(run: Run, number: int) -> Any:
    """The program of one query of a run."""
    program = run.program
    return replace(program, queries=(program.queries[number],))


def _drawn(run: Run, number: int) -> str:
    return to_svg(_alone(run, number), [_counts(run, number)])


def _described(run: Run, number: int) -> dict[str, Any]:
    counts, query = _counts(run, number), run.program.queries[number]
    (shown,) = to_dict(_alone(run, number))["queries"]
    notation = Notation(query)
    shown["live"] = {
        "matches": counts.matches,
        "evaluated_with": run.evaluation.listed.queries[number].others,
        "places": [
            {
                "place": notation.numbers[place],
                "title": notation.title(place),
                "waiting": counts.waiting.get(place, 0),
                "entered": counts.entered.get(place, 0),
                "start": notation.automaton.places[place].start,
            }
            for place in notation.order
        ],
    }
    return dict(shown)


def _told(run: Run, number: int) -> str:
    return explain_text(_alone(run, number))


async def groups(request: Request) -> Response:
    """The waiting groups of partial matches, filtered by place and by register."""
    place = context.number_of(request, "place", None, 10_000)
    limit = context.number_of(request, "limit", 100, MAX_GROUPS) or 100
    wanted = _key(request)

    def find(run: Run, number: int) -> dict[str, Any]:
        notation = Notation(run.program.queries[number])
        found: list[dict[str, Any]] = []
        total = 0
        for group in waiting_groups(run.evaluation, number):
            if place is not None and notation.numbers[group.number] != place:
                continue
            shown = {name: term_to_json(term) for name, term in group.registers.items()}
            if any(shown.get(name, {}).get("value") != value for name, value in wanted.items()):
                continue
            total += 1
            if len(found) < limit:
                found.append(_group(group, notation, shown))
        return {"items": found, "total": total}

    return JSONResponse(await _of_run(request, find))


def _key(request: Request) -> dict[str, str]:
    """The parameter `key`: a value of any register, or `name=value`; repeatable."""
    found = {}
    for text in request.query_params.getlist("key"):
        name, equals, value = text.partition("=")
        if not equals:
            raise Problem(400, "key: VARIABLE=VALUE", "parameter")
        found[name.lstrip("?")] = value
    return found


def _group(group: WaitingGroup, notation: Notation, shown: dict[str, Any]) -> dict[str, Any]:
    return {
        "place": notation.numbers[group.number],
        "title": group.place,
        "registers": shown,
        "earliest": json_value(group.earliest),
        "latest": json_value(group.latest),
        "until": None if group.until is None else json_value(group.until),
        "exact": group.is_exact,
    }


async def why(request: Request) -> Response:
    """How far the pattern of a query got, and what stopped it."""
    name = request.path_params["name"]
    return PlainTextResponse(await _of_run(request, lambda run, number: run.why_not(name)))


async def why_event(request: Request) -> Response:
    """Why one event advances a query or not; the event is not pushed."""
    server = context.allow(request, "read")
    data = await context.json_of(request, server.limits.query)
    if not isinstance(data, dict) or not isinstance(data.get("graph"), str):
        raise Problem(422, 'write {"graph": "…", "at": …, "stream": "…", "type": "…"}', "event")
    name = request.path_params["name"]

    def find(run: Run, number: int) -> dict[str, Any]:
        plan = run.program.queries[number].plan
        stream = plan.streams[0]
        if "stream" in data:
            stream = server.engine.machine.stream(str(data["stream"])).iri
        elif len(plan.streams) > 1:
            raise Problem(422, f"stream: one of {', '.join(plan.streams)}", "event")
        event = _event(run, stream, data)
        return {
            "query": name,
            "stream": stream,
            "at": json_value(event.time),
            "patterns": why_one(run.evaluation, number, event),
        }

    return JSONResponse(await _of_run(request, find))


def _event(run: Run, stream: str, data: dict[str, Any]) -> Event:
    """The event that a client gives: its graph in Turtle, or the syntax of `type`."""
    at = data.get("at")
    kind = data.get("type", "text/turtle")
    if not isinstance(kind, str):
        raise Problem(422, "type: a media type of RDF", "event")
    options = ReadOptions(arrival_time=at is not None)
    reader = BodyReader(stream, options, TimeDomain())
    body = Body(data["graph"].encode(), kind, "auto", False, time.time_ns() // 1000)
    batch = reader.read(body, Relevance(Dictionary())).batch
    if batch is None or len(batch) != 1:
        count = 0 if batch is None else len(batch)
        raise Problem(422, f"graph: it has {count} events, not one", "event")
    found = EncodedEvent(batch, 0)
    stamp = found.time if at is None else time_of_json(at)
    if run.clock.domain is not None and stamp.domain != run.clock.domain:
        raise EventError(f"at: the times of the run are of the kind {run.clock.domain}")
    return Event(stream, stamp, 0, tuple(batch.facts(0)), batch.name(0))


async def _of_run(request: Request, find: Callable[[Run, int], _T]) -> _T:
    """Ask the run about the query of a request, with its counters up to date."""
    server = context.allow(request, "read")
    name = request.path_params["name"]

    def ask() -> _T:
        run, number = server.engine.machine.running(name)
        run.settle()
        run.evaluation.sync()
        return find(run, number)

    return await server.do(ask)


ROUTES = [
    Route("/v1/queries/{name}/explain", explain, methods=["GET"]),
    Route("/v1/queries/{name}/groups", groups, methods=["GET"]),
    Route("/v1/queries/{name}/why", why, methods=["GET"]),
    Route("/v1/queries/{name}/why", why_event, methods=["POST"]),
]
