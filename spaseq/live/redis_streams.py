"""Redis streams as a source and as a sink.

`redis://[user:password@]host[:port]/[database/]stream`. An entry of a stream has fields; the field
`data` is the message, and `content-type` its media type. The time of a message is that of the
entry's identifier.

Without a group the source reads all entries, and the state has the identifier of the last one. With
a group, several runs share the entries. Redis keeps the entries that a run has received until they
are acknowledged, which happens after the checkpoint. After a restart, the run receives them again,
and skips those that the checkpoint covers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from spaseq.errors import InputError, SpaseqError
from spaseq.live.addresses import Address, address, client
from spaseq.live.protocols import Chunk, Message, Position
from spaseq.live.receiving import Pauses
from spaseq.live.tls import trusted, untrusted
from spaseq.live.waiting import Waiting
from spaseq.results import Match
from spaseq.runs import Run

AT_ONCE = 1000
WAIT_SECONDS = 60.0
"""Seconds for which the sink tries to reach the server."""


def _address(url: str, options: tuple[str, ...]) -> tuple[Address, int, str]:
    """The parts of a URL, the number of the database and the name of the stream."""
    found = address(url, (*options, "field", "ca"))
    database, slash, name = found.path.partition("/")
    if not slash:
        database, name = "0", found.path
    if not database.isdigit() or not name:
        raise SpaseqError(f"{found.shown}: write {found.scheme}://HOST:PORT/[DATABASE/]STREAM")
    return found, int(database), name


def _client(found: Address, database: int) -> Any:
    redis = client("redis", "redis", "redis", "redis")
    host, colon, port = found.hosts.rpartition(":")
    if not colon or port.endswith("]"):
        host, port = found.hosts, "6379"
    if not port.isdigit():
        raise SpaseqError(f"{found.shown}: the port is not a number")
    trusted(found)  # the client reads the file itself
    # Sources and sinks retry themselves, and report it. The client repeats a call once, in case the
    # server has closed an idle connection.
    again = client("redis.retry", "redis", "redis", "redis").Retry(
        client("redis.backoff", "redis", "redis", "redis").NoBackoff(), 1
    )
    secure = {"ssl": True, "ssl_ca_certs": found.options.get("ca")}
    return redis.Redis(
        host=host.strip("[]"),
        port=int(port),
        db=database,
        username=found.user,
        password=found.password,
        socket_connect_timeout=10,
        socket_timeout=30,
        retry=again,
        **(secure if found.scheme == "rediss" else {}),
    )


def _order(identifier: str) -> tuple[int, int]:
    """The sort key of an identifier."""
    millis, _, number = identifier.partition("-")
    return int(millis), int(number or 0)


class RedisSource:
    """Reads one stream.

    Args:
        url: `redis:` or `rediss:`, with the options `start` (`earliest` or `latest`), `group`,
            `consumer` (the name of this run in the group, `spaseq`), `field`, `type` (the media
            type of messages without one) and `ca`.
        log: Reports what happens to the connection.

    Raises:
        SpaseqError: for a wrong URL, or without the client.
    """

    messages = True
    replays = True

    def __init__(self, url: str, log: Callable[[str], None]):
        options = ("start", "group", "consumer", "type")
        self._address, database, self._stream = _address(url, options)
        own = self._address.options
        self._latest = self._address.choice("start", ("earliest", "latest")) == "latest"
        self._group = own.get("group")
        self._consumer = own.get("consumer", "spaseq")
        self._field = own.get("field", "data").encode()
        self._type = own.get("type")
        self._redis = client("redis", "redis", "redis", "redis")
        self._client = _client(self._address, database)
        self._log = log
        self._last = "0-0"
        """The identifier of the last entry that was passed on."""
        self._pending: str | None = None
        """While entries that the group has not acknowledged are read: the last one read."""
        self._is_open = False
        self._saves = False
        """Whether checkpoints acknowledge entries; otherwise they are acknowledged immediately."""
        self._is_down = False
        self._pauses = Pauses()
        self._next = 0.0

    def open(self, position: Position | None) -> None:
        if position is not None:
            self._last = position["id"]
            self._latest = False

    def _begin(self) -> Sequence[Chunk]:
        """Find the first entry, or make the group; the position at which the run begins."""
        if self._latest:
            newest = self._client.xrevrange(self._stream, count=1)
            self._last = newest[0][0].decode() if newest else "0-0"
            self._latest = False
        if self._group is not None:
            try:
                self._client.xgroup_create(self._stream, self._group, self._last, mkstream=True)
            except self._redis.ResponseError as error:
                if not str(error).startswith("BUSYGROUP"):
                    raise
            self._pending = "0-0"
        self._is_open = True
        return [Chunk(b"", {"id": self._last}, mark=True)]

    @property
    def problem(self) -> str | None:
        """The problem that prevents reading, or None."""
        return "there is no connection" if self._is_down else None

    def poll(self, timeout: float) -> Sequence[Chunk] | None:
        left = self._next - time.monotonic()
        if left > 0:
            time.sleep(min(left, timeout))
            return ()
        try:
            if not self._is_open:
                return self._begin()
            entries = self._entries(timeout)
        except self._redis.AuthenticationError as error:
            raise InputError(f"the server refuses: {error}", self._address.shown) from error
        except (self._redis.ConnectionError, self._redis.TimeoutError) as error:
            refused = untrusted(error)
            if refused is not None:
                raise InputError(refused, self._address.shown) from error
            self._lost(str(error))
            return ()
        except self._redis.ResponseError as error:
            if str(error).startswith("LOADING"):
                self._lost(str(error))
                return ()
            raise InputError(f"the server refuses: {error}", self._address.shown) from error
        self._pauses.reset()
        if self._is_down:
            self._is_down = False
            self._log(f"{self._address.shown}: connected again")
        return self._passed(entries)

    def _lost(self, said: str) -> None:
        self._next = time.monotonic() + self._pauses.following()
        if self._group is not None and self._is_open:
            # Entries that were sent but did not reach this run are pending.
            self._pending = "0-0"
        if not self._is_down:
            self._is_down = True
            self._log(f"{self._address.shown}: {said.rstrip('.')}; connecting again")

    def _entries(self, timeout: float) -> Sequence[tuple[bytes, Mapping[bytes, bytes]]]:
        wait = max(1, int(timeout * 1000))
        if self._group is None:
            found = self._client.xread({self._stream: self._last}, AT_ONCE, wait)
            return _only(found)
        if self._pending is None:
            found = self._client.xreadgroup(
                self._group, self._consumer, {self._stream: ">"}, AT_ONCE, wait
            )
            return _only(found)
        found = self._client.xreadgroup(
            self._group, self._consumer, {self._stream: self._pending}, AT_ONCE
        )
        entries = _only(found)
        self._pending = entries[-1][0].decode() if entries else None
        # The entry was already passed on: the checkpoint covers it, or will cover it.
        return [each for each in entries if _order(each[0].decode()) > _order(self._last)]

    def _passed(self, entries: Sequence[tuple[bytes, Mapping[bytes, bytes]]]) -> Sequence[Chunk]:
        if not entries:
            return ()
        messages: list[Message] = []
        for raw, fields in entries:
            identifier = raw.decode()
            data = (fields or {}).get(self._field)
            if data is None:
                if fields:
                    self._log(
                        f"{self._address.shown}: the entry {identifier} has no field "
                        f"{self._field.decode()} and is skipped"
                    )
                continue
            kind = fields.get(b"content-type")
            named = self._type if kind is None else kind.decode("latin-1")
            messages.append((data, named, _order(identifier)[0] * 1000))
        self._last = entries[-1][0].decode()
        if self._group is not None and not self._saves:
            self._client.xack(self._stream, self._group, *[raw for raw, _ in entries])
        if not messages:
            return [Chunk(b"", {"id": self._last}, mark=True)]
        return [Chunk(b"", {"id": self._last}, together=messages)]

    def expect_checkpoints(self) -> None:
        self._saves = True

    def acknowledge(self, position: Position) -> None:
        if self._group is None:
            return
        try:
            while True:
                pending = self._client.xpending_range(
                    self._stream, self._group, "-", position["id"], AT_ONCE, self._consumer
                )
                if not pending:
                    return
                own = [each["message_id"] for each in pending]
                self._client.xack(self._stream, self._group, *own)
        except self._redis.RedisError as error:
            # The next checkpoint acknowledges them; a restart skips them.
            self._log(f"{self._address.shown}: the group {self._group} is not updated: {error}")

    def close(self) -> None:
        self._client.close()


def _only(found: Any) -> Sequence[tuple[bytes, Mapping[bytes, bytes]]]:
    """The entries of an answer about one stream."""
    if not found:
        return ()
    pairs = list(found.items()) if isinstance(found, dict) else found
    entries = pairs[0][1]
    while entries and isinstance(entries[0], list):
        entries = entries[0]
    return entries  # type: ignore[no-any-return]


class RedisSink:
    """Appends entries with the fields `data` (the match as JSON), `content-type` and `id`.

    A checkpoint waits until the server has all entries, so each match is in the stream at least
    once.

    Args:
        url: `redis:` or `rediss:`, with the options `maxlen` (about how many entries the stream
            keeps; all by default), `field` and `ca`.
        keeps: Whether there will be checkpoints.

    Raises:
        SpaseqError: for a wrong URL, or without the client.
    """

    def __init__(self, url: str, keeps: bool):
        self._address, database, self._stream = _address(url, ("maxlen",))
        most = self._address.number("maxlen", 0, 1)
        self._most = int(most) or None
        self._field = self._address.options.get("field", "data")
        self._redis = client("redis", "redis", "redis", "redis")
        self._client = _client(self._address, database)
        self._entries: list[dict[str, str]] = []
        self.waiting = Waiting(self._address.shown)
        self.written = 0

    def resume(self, state: str, tokens: Mapping[int, Any]) -> int:
        self._again(self._client.ping)
        return max(tokens, default=0)

    def attach(self, run: Run) -> None:
        """Do nothing, since entries are made from match objects."""

    def write(self, match: Match) -> None:
        self._entries.append(
            {
                self._field: match.to_json(),
                "content-type": "application/json",
                "id": match.id,
            }
        )
        self.written += 1
        if len(self._entries) >= AT_ONCE:
            self.write_block()

    def write_block(self) -> None:
        if self._entries:
            entries, self._entries = self._entries, []
            self._again(lambda: self._append(entries))

    def _append(self, entries: Sequence[dict[str, str]]) -> None:
        """Append entries in one transaction, so that a retry does not duplicate a part of them."""
        pipeline = self._client.pipeline(transaction=True)
        for entry in entries:
            pipeline.xadd(self._stream, entry, maxlen=self._most, approximate=True)
        pipeline.execute()

    def _again(self, call: Callable[[], Any]) -> None:
        """Repeat a call while the server cannot be reached."""
        pauses, until = Pauses(), time.monotonic() + WAIT_SECONDS
        while True:
            try:
                call()
                self.waiting.end()
                return
            except (self._redis.ConnectionError, self._redis.TimeoutError) as error:
                refused = isinstance(error, self._redis.AuthenticationError) or untrusted(error)
                if refused or time.monotonic() > until:
                    raise self._failed(error) from error
                self.waiting.begin(error)
                time.sleep(pauses.following())
            except self._redis.RedisError as error:
                raise self._failed(error) from error

    def _failed(self, error: Exception) -> SpaseqError:
        said = untrusted(error) or error
        return SpaseqError(f"{self._address.shown}: cannot be written: {said}")

    def prepare(self) -> Any:
        self.write_block()
        return {}

    def commit(self, number: int) -> None:
        """Do nothing, since the server already has all entries."""

    def close(self) -> None:
        try:
            self.write_block()
        finally:
            self._client.close()
