"""A Linked Data Event Stream → messages, one per member, in ascending time order.

The source follows the relations between pages. A member is passed on when, according to the
relations over the path of timestamps, no unread page can have an earlier one. Pages that the server
declares immutable are read once; the others are read repeatedly.

The position is the time of the last member, together with the members of that time and of the pages
that may change. After a restart, pages whose relations say that they end before it are not read
again.
"""

from __future__ import annotations

import heapq
import re
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

from spaseq.errors import InputError, StateError
from spaseq.io.redirections import check_redirection
from spaseq.live.addresses import redacted
from spaseq.live.ldes_page import Member, Page, merged, read_page
from spaseq.live.order_log import OrderLog
from spaseq.live.protocols import Chunk, Message, Position
from spaseq.live.receiving import Pauses
from spaseq.live.tls import untrusted
from spaseq.live.web import http_client, opened, refusal, web_address

ACCEPT = (
    "application/trig, application/n-quads, text/turtle;q=0.9, application/n-triples;q=0.9, "
    "application/ld+json;q=0.5"
)
REFRESH_SECONDS = 10.0
MAX_PAGE_BYTES = 1 << 26
MAX_AT_ONCE = 1000
LEAST = -(1 << 63)
_MAX_AGE = re.compile(r"max-age\s*=\s*([0-9]{1,9})")


class LdesSource:
    """Follows one event stream.

    Args:
        url: `ldes+https:` or `ldes+http:` and the URL of the stream or of its first page, with the
            options `refresh` (seconds between two reads of a page that may change; 10, unless the
            server asks for a longer time), `token-env` and `ca` in the fragment.
        log: Reports what happens to the connection.

    Raises:
        SpaseqError: for a wrong URL.
    """

    messages = True
    replays = True

    def __init__(self, url: str, log: Callable[[str], None]):
        self._address = web_address(url.partition("+")[2], ("refresh",))
        self._refresh = self._address.parts.number("refresh", REFRESH_SECONDS, 0.01)
        self._log = log
        self._http: Any = None
        self._path: str | None = None
        self._last = LEAST
        """The time of the last member that was passed on."""
        self._passed: set[str] = set()
        """The members of that time, and of pages that may change, that have been passed on."""
        self._queue: list[tuple[int, float, str]] = []
        """A heap of pages to read: (least time of a member, when, URL)."""
        self._known: set[str] = set()
        """The pages that have been or will be read."""
        self._changing: dict[str, tuple[str | None, frozenset[str]]] = {}
        """Page that may change → its ETag, and its members."""
        self._waiting: dict[str, Member] = {}
        """Members that have been read and not passed on."""
        self._again: list[tuple[float, str]] = []
        """A heap of pages to read again: (when, URL)."""
        self._repeat: deque[str] = deque()
        """Members to be passed on first, in the order of an earlier run."""
        self._order: OrderLog[str] = OrderLog()
        """The members passed on since the last checkpoint."""
        self._pauses = Pauses()
        self._not_before = 0.0
        self._is_down = False
        self._is_open = False
        """Whether the position of an earlier run is known; checkpoints may be made before."""

    def open(self, position: Position | None) -> None:
        self._http = http_client(self._address)
        if position is not None:
            self._last, self._order.count = position["time"], position["count"]
            self._passed = set(position["passed"])
            self._repeat = deque(position.get("order", ()))
        self._add(self._address.url, LEAST)
        self._is_open = True

    def _add(self, url: str, least: int) -> None:
        self._known.add(url)
        heapq.heappush(self._queue, (least, 0.0, url))

    # ------------------------------------------------------------ reading

    @property
    def problem(self) -> str | None:
        """The problem that prevents reading, or None."""
        return "there is no connection" if self._is_down else None

    def poll(self, timeout: float) -> Sequence[Chunk] | None:
        now = time.monotonic()
        if now < self._not_before:
            time.sleep(min(timeout, self._not_before - now))
            return ()
        if self._queue:
            least, _, url = heapq.heappop(self._queue)
            if not self._read(url, least):
                heapq.heappush(self._queue, (least, 0.0, url))
        elif self._again and self._again[0][0] <= now:
            _, url = heapq.heappop(self._again)
            if not self._read(url, LEAST):
                heapq.heappush(self._again, (now, url))
        elif not self._waiting or self._repeat:
            due = self._again[0][0] - now if self._again else timeout
            time.sleep(max(0.0, min(timeout, due)))
            if not self._again and not self._waiting:
                return None  # all pages are immutable
        return self._passed_on()

    def _read(self, url: str, least: int) -> bool:
        """Read a page; returns whether the server has answered."""
        import httpx

        root = self._address.url
        own = _origin(url) == _origin(root)
        headers = {"Accept": ACCEPT}
        etag, before = self._changing.get(url, (None, frozenset()))
        if etag is not None:
            headers["If-None-Match"] = etag
        try:
            authorization = self._address.headers if own else {}
            linked = None if url == root else root
            with opened(self._http, url, headers, authorization, linked) as (response, at):
                error = refusal(response, redacted(url))
                if error is not None:
                    raise error
                if response.status_code == 304:
                    self._came_back()
                    self._later(url, response.headers)
                    return True
                if response.status_code != 200:
                    self._lost(f"it answered {response.status_code} {response.reason_phrase}")
                    return False
                data = b"".join(self._pieces(response, url))
                kind = response.headers.get("content-type", "")
                page = read_page(data, kind, at, self._path)
                self._came_back()
                self._take(page, url, least, before, response.headers)
                return True
        except httpx.HTTPError as error:
            refused = untrusted(error)
            if refused is not None:
                raise InputError(refused, redacted(url)) from error
            self._lost(str(error) or type(error).__name__)
            return False

    def _pieces(self, response: Any, url: str) -> Any:
        size = 0
        for piece in response.iter_bytes():
            size += len(piece)
            if size > MAX_PAGE_BYTES:
                raise InputError(f"a page of more than {MAX_PAGE_BYTES} bytes", url)
            yield piece

    def _lost(self, said: str) -> None:
        self._not_before = time.monotonic() + self._pauses.following()
        if not self._is_down:
            self._is_down = True
            self._log(f"{self._address.shown}: {said}; trying again")

    def _came_back(self) -> None:
        self._pauses.reset()
        if self._is_down:
            self._is_down = False
            self._log(f"{self._address.shown}: connected again")

    def _take(self, page: Page, url: str, least: int, before: frozenset[str], headers: Any) -> None:
        """Remember the members of a page, and the pages that it leads to."""
        self._path = page.timestamp_path
        immutable = "immutable" in headers.get("cache-control", "")
        repeated = set(self._repeat)
        for member in page.members:
            name = member.identifier
            if name in self._passed or name in before:
                continue
            # The members of a finished page before the position have been passed on.
            if name in repeated or not immutable or member.micros >= self._last:
                self._waiting[name] = member
        if immutable:
            self._changing.pop(url, None)
        else:
            names = frozenset(member.identifier for member in page.members)
            self._changing[url] = (headers.get("etag"), names)
            self._later(url, headers)
        for view in [] if page.relations or page.members else page.views:
            self._link(view.partition("#")[0], least)
        for link in merged(page.relations).values():
            if link.greatest is not None and link.greatest < self._last and not repeated:
                continue  # it ends before the position
            self._link(link.url, least if link.least is None else max(least, link.least))

    def _link(self, url: str, least: int) -> None:
        """Read a page that another one leads to, unless it is known."""
        if url not in self._known:
            check_redirection(self._address.url, url)
            self._add(url, least)

    def _later(self, url: str, headers: Any) -> None:
        """Read a page again after a while."""
        found = _MAX_AGE.search(headers.get("cache-control", ""))
        age = min(float(found[1]), 3600.0) if found else 0.0
        heapq.heappush(self._again, (time.monotonic() + max(age, self._refresh), url))

    # ------------------------------------------------------------ order

    def _passed_on(self) -> Sequence[Chunk]:
        """The members that no earlier one can precede, as one chunk."""
        with self._order.lock:
            chosen = self._repeated()
            if not self._repeat:
                bound = self._queue[0][0] if self._queue else None
                ready = [m for m in self._waiting.values() if bound is None or m.micros < bound]
                ready.sort(key=lambda member: (member.micros, member.identifier))
                chosen += ready[: MAX_AT_ONCE - len(chosen)] if len(chosen) < MAX_AT_ONCE else []
            if not chosen:
                return ()
            messages: list[Message] = []
            for member in chosen:
                self._waiting.pop(member.identifier, None)
                if member.micros > self._last:
                    self._last = member.micros
                    self._forget()
                self._passed.add(member.identifier)
                self._order.append(member.identifier)
                messages.append((member.data, "application/n-quads", member.micros))
        position = {"time": self._last, "passed": sorted(self._passed), "count": self._order.count}
        return [Chunk(b"", position, together=messages)]

    def _repeated(self) -> list[Member]:
        """The next members in the order of an earlier run, as far as they have been read."""
        chosen: list[Member] = []
        while self._repeat and self._repeat[0] in self._waiting:
            chosen.append(self._waiting.pop(self._repeat.popleft()))
        if self._repeat and not self._queue and not self._is_down:
            raise StateError(
                f"{self._address.shown}: the member {self._repeat[0]}, which the saved state has "
                "read, is gone; begin with another state folder"
            )
        return chosen

    def _forget(self) -> None:
        """Advance the time, and forget earlier members that are on no page that may change."""
        changing: set[str] = set()
        for _, names in self._changing.values():
            changing |= names
        self._passed &= changing

    # ------------------------------------------------------------ positions

    def order_after(self, position: Position) -> Position:
        """A position with the members that were passed on after it, in order."""
        if not self._is_open:
            return position
        with self._order.lock:
            order = [*self._order.after(position["count"])[1], *self._repeat]
        return {**position, "order": order}

    def acknowledge(self, position: Position) -> None:
        if not self._is_open:
            return
        self._order.forget(position["count"])

    def close(self) -> None:
        if self._http is not None:
            self._http.close()


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc
