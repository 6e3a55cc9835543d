"""Requests to an endpoint: answers, failures and statistics."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

import endpoints as server
import pyoxigraph as ox
import pytest
from endpoints import Misbehaving, RealServer, misbehaving

from spaseq.errors import EndpointError, KbError
from spaseq.kb.answer import TooManyRows
from spaseq.kb.client import Client
from spaseq.kb.endpoint import Endpoint, authorisation

EX = "http://example.org/"
DATA = f'<{EX}a> <{EX}p> 1, "x"@en, "y", true, <{EX}b>, [] .'
QUERY = f"SELECT ?x WHERE {{ <{EX}a> <{EX}p> ?x }}"
KINDS = sorted(
    map(str, (ox.Literal(1), ox.Literal("x", language="en"), ox.Literal("y"), ox.Literal(True)))
)


@pytest.fixture
def proxy(sparql_server: RealServer) -> Iterator[Misbehaving]:
    with misbehaving(sparql_server.graph(DATA)) as found:
        yield found


def client(url: str, **options: object) -> Client:
    quick = {"timeout": 5.0, "backoff": 0.001} | options
    return Client(Endpoint(url, **quick))  # type: ignore[arg-type]


def check(rows: list[tuple[object, ...]]) -> None:
    terms = [row[0] for row in rows]
    assert sorted(str(t) for t in terms if isinstance(t, ox.Literal)) == KINDS
    assert ox.NamedNode(EX + "b") in terms
    (blank,) = (term for term in terms if isinstance(term, ox.BlankNode))
    assert blank.value.startswith("kbr")


def test_a_real_server_answers(sparql_server: RealServer) -> None:
    asked = client(sparql_server.graph(DATA))
    check(asked.rows(QUERY, ("x",), 10))
    assert asked.counters.requests == 1
    assert asked.counters.rows == 6


@pytest.mark.parametrize(
    "behaviour",
    [
        server.busy,
        server.truncated,
        server.cut_short,
        server.killed,
        server.garbled,
        server.rubbish,
        server.refused(429, Retry_After="0"),
    ],
    ids=["busy", "truncated", "cut_short", "killed", "garbled", "rubbish", "too_many"],
)
def test_a_failure_is_tried_again(proxy: Misbehaving, behaviour: server.Behaviour) -> None:
    proxy.todo = [behaviour, behaviour]
    asked = client(proxy.url)
    check(asked.rows(QUERY, ("x",), 10))
    assert asked.counters.requests == 3
    assert asked.counters.retries == 2
    assert asked.counters.failures == 0
    assert proxy.queries == [QUERY] * 3


@pytest.mark.parametrize(
    ("behaviours", "waits"),
    [
        ([server.busy] * 3, [0.5, 1.0, 2.0]),
        ([server.refused(503, Retry_After="7"), server.refused(429, Retry_After="100")], [7, 30]),
        ([server.refused(503, Retry_After="tomorrow")], [0.5]),
    ],
)
def test_how_long_it_waits_in_between(
    proxy: Misbehaving, behaviours: list[server.Behaviour], waits: list[float]
) -> None:
    class Waits(Event):
        def wait(self, timeout: float | None = None) -> bool:
            waited.append(timeout)
            return False

    waited: list[float | None] = []
    asked = client(proxy.url, attempts=4, backoff=0.5)
    asked._closed = Waits()
    proxy.todo = behaviours
    check(asked.rows(QUERY, ("x",), 10))
    assert waited == waits


@pytest.mark.parametrize(
    ("behaviour", "cause"),
    [
        (server.busy, "it answered 503 Service Unavailable: too many of you"),
        (server.rubbish, "its answer cannot be read: it is text/html: '<html><h1>Welcome"),
        (server.garbled, "its answer cannot be read: it is not SPARQL Results in JSON"),
        (server.killed, "disconnected"),
        (server.truncated, "peer closed connection"),
        (server.cut_short, "its answer cannot be read"),
    ],
)
def test_an_error_names_endpoint_query_and_cause(
    proxy: Misbehaving, behaviour: server.Behaviour, cause: str
) -> None:
    proxy.otherwise = behaviour
    asked = client(proxy.url)
    with pytest.raises(EndpointError) as raised:
        asked.rows(QUERY, ("x",), 10)
    assert (raised.value.endpoint, raised.value.query) == (proxy.url, QUERY)
    assert raised.value.attempts == len(proxy.queries) == 3
    shown = str(raised.value)
    assert cause in shown
    assert proxy.url in shown
    assert QUERY in shown
    assert asked.counters.failures == 1


@pytest.mark.parametrize(
    ("behaviour", "cause"),
    [
        (server.refused(401), "it answered 401 Unauthorized: no"),
        (server.refused(404), "it answered 404 Not Found"),
        (
            server.refused(301, Location="https://else.org/"),
            "a redirection to https://else.org/; use",
        ),
    ],
)
def test_a_refusal_is_final(proxy: Misbehaving, behaviour: server.Behaviour, cause: str) -> None:
    proxy.otherwise = behaviour
    with pytest.raises(EndpointError, match=cause):
        client(proxy.url).rows(QUERY, ("x",), 10)
    assert len(proxy.queries) == 1


def test_a_query_that_the_server_cannot_read_is_final(sparql_server: RealServer) -> None:
    asked = client(sparql_server.graph(DATA))
    with pytest.raises(EndpointError, match="it answered 400"):
        asked.rows("SELECT nothing", ("x",), 10)
    assert asked.counters.requests == 1


@pytest.mark.parametrize("behaviour", [server.slow(1.0), server.dripping], ids=["slow", "drips"])
def test_an_answer_has_to_come_in_time(proxy: Misbehaving, behaviour: server.Behaviour) -> None:
    proxy.otherwise = behaviour
    with pytest.raises(EndpointError, match="did not answer in time"):
        client(proxy.url, timeout=0.2, attempts=1).rows(QUERY, ("x",), 10)


def test_a_server_that_is_gone() -> None:
    with server.nobody() as gone, pytest.raises(EndpointError, match="cannot be reached"):
        client(gone).rows(QUERY, ("x",), 10)


@pytest.mark.parametrize("behaviour", [server.as_virtuoso, server.as_xml])
def test_quirks_are_tolerated(proxy: Misbehaving, behaviour: server.Behaviour) -> None:
    proxy.otherwise = behaviour
    asked = client(proxy.url)
    check(asked.rows(QUERY, ("x",), 10))
    check(asked.rows(QUERY, ("x",), 10))
    assert asked.counters.retries == 0


@pytest.mark.parametrize("header", ["?x", "x", '"x"'])
def test_tsv_headers_of_three_kinds(proxy: Misbehaving, header: str) -> None:
    body = f"{header}\n<{EX}b>\n80000\n".encode()
    proxy.otherwise = lambda request: request.reply(body, "text/tab-separated-values")
    rows = client(proxy.url).rows(QUERY, ("x",), 10)
    assert rows == [(ox.NamedNode(EX + "b"),), (ox.Literal(80000),)]


def test_columns_are_found_by_their_names(sparql_server: RealServer) -> None:
    asked = client(sparql_server.graph(f"<{EX}a> <{EX}p> <{EX}b> ."))
    rows = asked.rows("SELECT ?s ?o ?n WHERE { ?s ?p ?o }", ("o", "n", "s"), 1)
    assert rows == [(ox.NamedNode(EX + "b"), None, ox.NamedNode(EX + "a"))]
    with pytest.raises(EndpointError, match=r"no column \?z"):
        client(asked.endpoint.url, attempts=1).rows("SELECT ?s WHERE { ?s ?p ?o }", ("z",), 1)


def test_the_answer_to_an_ask_is_none_to_a_select(sparql_server: RealServer) -> None:
    asked = client(sparql_server.graph(DATA), attempts=1)
    with pytest.raises(EndpointError, match="the answer to an ASK"):
        asked.rows("ASK {}", ("x",), 10)


def test_bounds(sparql_server: RealServer) -> None:
    url = sparql_server.graph(DATA)
    with pytest.raises(TooManyRows):
        client(url).rows(QUERY, ("x",), 5)
    small = client(url, size=100)
    with pytest.raises(EndpointError, match=r"larger than 100 bytes; raise the `size`"):
        small.rows(QUERY, ("x",), 10)
    assert small.counters.requests == 1


def test_blank_nodes_of_different_answers_are_different(sparql_server: RealServer) -> None:
    asked = client(sparql_server.graph(f"[] <{EX}p> 1 ."))
    query = "SELECT ?s WHERE { ?s ?p ?o }"
    assert asked.rows(query, ("s",), 1) != asked.rows(query, ("s",), 1)


# ------------------------------------------------------------------ credentials


def test_who_asks_is_told_in_headers(proxy: Misbehaving, monkeypatch: pytest.MonkeyPatch) -> None:
    def sent(**options: object) -> dict[str, str]:
        client(proxy.url, **options).rows(QUERY, ("x",), 10)
        return proxy.seen[-1]

    assert "Authorization" not in sent()
    assert sent(token="t1")["Authorization"] == "Bearer t1"
    assert sent(user="u", password="p")["Authorization"] == "Basic dTpw"
    assert sent(headers={"X-Key": "k"})["X-Key"] == "k"
    monkeypatch.setenv("SPASEQ_KB_AUTH", f"{proxy.url} Bearer t2")
    assert sent()["Authorization"] == "Bearer t2"
    assert sent(token="t1")["Authorization"] == "Bearer t1"
    assert sent(user="u", password="p")["Authorization"] == "Basic dTpw"


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("https://a.org/sparql", "Basic 1"),
        ("https://a.org:443/sparql/x", "Basic 1"),
        ("https://a.org/sparql2", None),
        ("https://a.org/", None),
        ("http://a.org/sparql", None),
        ("https://a.org.evil.org/sparql", None),
        ("https://b.org/anything", "Bearer 2"),
        ("https://b.org/deeper/still", "Bearer 3"),
    ],
)
def test_credentials_go_to_their_own_server_only(url: str, found: str | None) -> None:
    listed = """
        https://a.org/sparql Basic 1; https://b.org Bearer 2
        https://b.org/deeper Bearer 3
    """
    assert authorisation(url, listed) == found


@pytest.mark.parametrize("listed", ["https://a.org", "a.org Basic 1"])
def test_a_list_of_credentials_that_reads_wrong(listed: str) -> None:
    with pytest.raises(KbError, match="SPASEQ_KB_AUTH has an entry"):
        authorisation("https://a.org/", listed)


def test_credentials_are_not_shown() -> None:
    endpoint = Endpoint(
        EX, token="secret", user="secret", password="secret", headers={"A": "secret"}
    )
    assert "secret" not in repr(endpoint)


@pytest.mark.parametrize(
    ("url", "options", "said"),
    [
        ("http://u:secret@a.org/", {}, "contains credentials"),
        ("http://", {}, "is not the URL of an endpoint"),
        ("http://a.org:port/", {}, "cannot be read"),
        (EX, {"join": "hash"}, "join is 'hash'; it must be one of auto, materialise, bind"),
        (EX, {"on_failure": "pray"}, "one of stop, skip, unenriched"),
        (EX, {"batch": 0}, "batch must be more than 0"),
        (EX, {"refresh": 0.0}, "refresh must be more than 0"),
    ],
)
def test_options_that_make_no_sense(url: str, options: dict[str, object], said: str) -> None:
    with pytest.raises(KbError, match=said) as raised:
        Endpoint(url, **options)  # type: ignore[arg-type]
    assert "secret" not in str(raised.value)
