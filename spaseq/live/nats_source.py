"""A subject of a NATS JetStream → messages.

The source creates a pull consumer that begins after the position in the state, so the server sends
each message once, in stream order. After a checkpoint, it acknowledges the messages up to the
position, which removes them from streams with work-queue or interest retention. If the server has
lost the consumer, the source creates a new one that begins after the last message received.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from spaseq.errors import InputError, SpaseqError, StateError
from spaseq.live.addresses import address, client, secret
from spaseq.live.protocols import Chunk, Message, Position
from spaseq.live.receiving import Background, Pauses
from spaseq.live.tls import trusted, untrusted

AT_ONCE = 500
FETCH_SECONDS = 1.0
CHECK_SECONDS = 3.0
"""Seconds without a message after which the source checks that the server still has the
consumer."""
ACK_SECONDS = 24 * 3600.0
"""Seconds that the server waits for an acknowledgement, which comes with a checkpoint."""
INACTIVE_SECONDS = 300.0
"""Seconds for which the server keeps an unused consumer without a name."""


class NatsSource:
    """Reads the messages of a subject.

    Args:
        url: `nats://[USER:PASSWORD@]HOST[:PORT]/SUBJECT`, with the
            options `stream` (its name; by default the stream of the subject), `durable` (the name
            of a consumer that outlives the run), `start` (`earliest` or `latest`), `type` (the
            media type of messages without one), `token-env` and `ca` (for TLS).
        log: Reports what happens to the connection.

    Raises:
        SpaseqError: for a wrong URL, or without the client.
    """

    messages = True
    replays = True

    def __init__(self, url: str, log: Callable[[str], None]):
        names = ("stream", "durable", "start", "type", "token-env", "ca")
        self._address = address(url, names)
        options = self._address.options
        self._subject = self._address.path
        if not self._subject or "/" in self._subject:
            raise SpaseqError(f"{self._address.shown}: write nats://HOST:PORT/SUBJECT")
        self._latest = self._address.choice("start", ("earliest", "latest")) == "latest"
        self._stream = options.get("stream")
        self._durable = options.get("durable")
        self._type = options.get("type")
        variable = options.get("token-env")
        self._trusted = trusted(self._address)
        self._token = None if variable is None else secret(self._address.shown, variable)
        self._nats = client("nats", "nats-py", "nats", "nats")
        self._errors = client("nats.errors", "nats-py", "nats", "nats")
        self._js_errors = client("nats.js.errors", "nats-py", "nats", "nats")
        self._api = client("nats.js.api", "nats-py", "nats", "nats")
        self._log = log
        self._saves = False
        """Whether checkpoints acknowledge messages; otherwise they are acknowledged immediately."""
        self._background: Background | None = None
        self._last: int | None = None
        """The number in the stream of the last message received."""
        self._replies: deque[tuple[int, str]] = deque()
        """(number, address of its acknowledgement) of messages, or of the last of each chunk."""
        self._acks_each = False
        """Whether each message is acknowledged individually, and not all up to one of them."""
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._connection: Any = None
        self._is_down = False
        self._is_closing = False

    def open(self, position: Position | None) -> None:
        if position is not None:
            self._last = position["sequence"]
        self._background = Background(lambda own: asyncio.run(self._receive(own)), "nats")

    # ------------------------------------------------------------ the thread

    async def _receive(self, background: Background) -> None:
        """Connect, and fetch messages until the source is closed."""
        self._loop = asyncio.get_running_loop()
        try:
            await self._receive_all(background)
        finally:
            self._is_closing = True
            if self._connection is not None:
                with contextlib.suppress(self._errors.Error, OSError):
                    await self._connection.close()

    async def _receive_all(self, background: Background) -> None:
        """Fetch messages; after a failure, with a new consumer."""
        pauses = Pauses()
        while not background.stopped.is_set():
            try:
                if self._connection is None:
                    self._connection = await self._connect()
                consumer = await self._consumer(background)
                pauses.reset()
                self._came_back()
                await self._fetch_all(consumer, background)
            except self._js_errors.NotFoundError as error:
                raise InputError(
                    f"there is no stream for the subject {self._subject}", self._address.shown
                ) from error
            except self._js_errors.BadRequestError as error:
                raise InputError(f"the server refuses: {error}", self._address.shown) from error
            except (self._errors.Error, self._js_errors.Error, OSError) as error:
                if "authorization" in str(error).lower():
                    raise InputError(f"the server refuses: {error}", self._address.shown) from error
                self._lost(str(error) or type(error).__name__)
                await asyncio.sleep(min(pauses.following(), 2.0))

    def _came_back(self) -> None:
        if self._is_down:
            self._is_down = False
            self._log(f"{self._address.shown}: connected again")

    def _lost(self, said: str) -> None:
        if not self._is_down:
            self._is_down = True
            self._log(f"{self._address.shown}: {said}; connecting again")

    async def _connect(self) -> Any:
        refused: ssl.SSLError | None = None

        async def note(error: Exception) -> None:
            """The users of the connection see its errors, except those of TLS, after which the
            client would wait forever."""
            nonlocal refused
            if isinstance(error, ssl.SSLError):
                refused = error
                connecting.cancel()

        async def disconnected() -> None:
            background = self._background
            stops = self._is_closing or background is None or background.stopped.is_set()
            if not stops:
                self._lost("the connection is broken")

        more: dict[str, Any] = {}
        if self._address.user is not None:
            more |= {"user": self._address.user, "password": self._address.password or ""}
        if self._token is not None:
            more["token"] = self._token
        if self._trusted is not None:
            more["tls"] = self._trusted
        connecting = asyncio.ensure_future(
            self._nats.connect(
                f"nats://{self._address.hosts}",
                name="spaseq",
                error_cb=note,
                disconnected_cb=disconnected,
                max_reconnect_attempts=-1 if self._is_down or self._last is not None else 3,
                reconnect_time_wait=1,
                **more,
            )
        )
        try:
            return await connecting
        except asyncio.CancelledError:
            if refused is None:
                raise
            said = untrusted(refused) or f"cannot be read: {refused}"
            raise InputError(said, self._address.shown) from refused

    async def _consumer(self, background: Background) -> Any:
        """A new consumer, which begins after the last message."""
        api, jetstream = self._api, self._connection.jetstream()
        stream = self._stream or await jetstream.find_stream_name_by_subject(self._subject)
        described = await jetstream.stream_info(stream)
        state = described.state
        if self._durable is not None:
            with contextlib.suppress(self._js_errors.NotFoundError):
                info = await jetstream.consumer_info(stream, self._durable)
                if self._last is None:
                    self._last = info.ack_floor.stream_seq or None
                await jetstream.delete_consumer(stream, self._durable)
        is_new = self._last is None
        if self._last is None:
            self._last = state.last_seq if self._latest else max(state.first_seq - 1, 0)
        elif self._last > state.last_seq:
            raise StateError(
                f"{self._address.shown}: the saved state has read message {self._last}, but the "
                f"stream ends with {state.last_seq}: it is another stream; begin with another "
                "state folder"
            )
        elif self._last + 1 < state.first_seq:
            self._log(
                f"{self._address.shown}: the stream has lost the messages {self._last + 1} to "
                f"{state.first_seq - 1}; those of the subject are missing"
            )
        if is_new:
            await self._pass_on(background, Chunk(b"", {"sequence": self._last}, mark=True))
        wanted = api.ConsumerConfig(
            durable_name=self._durable,
            deliver_policy=api.DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=self._last + 1,
            ack_policy=api.AckPolicy.ALL,
            ack_wait=ACK_SECONDS,
            max_ack_pending=-1,
            filter_subject=self._subject,
            inactive_threshold=None if self._durable else INACTIVE_SECONDS,
        )
        if described.config.retention == api.RetentionPolicy.WORK_QUEUE:
            # A work queue holds the unacknowledged messages, and is read from its beginning. Each
            # message must be acknowledged.
            wanted.deliver_policy, wanted.opt_start_seq = api.DeliverPolicy.ALL, None
            wanted.ack_policy, self._acks_each = api.AckPolicy.EXPLICIT, True
        with self._lock:
            self._replies.clear()  # they belong to the previous consumer
        made = await jetstream.add_consumer(stream, wanted)
        return await jetstream.pull_subscribe_bind(made.name, stream)

    async def _fetch_all(self, consumer: Any, background: Background) -> None:
        silent = 0.0
        while not background.stopped.is_set():
            try:
                found = await consumer.fetch(AT_ONCE, FETCH_SECONDS)
            except (TimeoutError, self._errors.TimeoutError):
                silent += FETCH_SECONDS
                if silent >= CHECK_SECONDS:
                    silent = 0.0
                    try:
                        await consumer.consumer_info()
                    except self._js_errors.NotFoundError:
                        return
                    self._came_back()
                continue
            silent = 0.0
            self._came_back()
            await self._take(found, background)

    async def _take(self, found: Sequence[Any], background: Background) -> None:
        messages: list[Message] = []
        replies: list[tuple[int, str]] = []
        for each in found:
            metadata = each.metadata
            number = metadata.sequence.stream
            assert self._last is not None
            if self._acks_each:
                replies.append((number, each.reply))
            if number <= self._last:
                continue  # sent again, after a reconnection or a restart
            self._last = number
            if not self._acks_each:
                replies = [(number, each.reply)]
            headers = {name.lower(): value for name, value in (each.headers or {}).items()}
            kind = headers.get("content-type", self._type)
            micros = round(metadata.timestamp.timestamp() * 1_000_000)
            messages.append((each.data, kind, micros))
        if self._saves:
            with self._lock:
                self._replies.extend(replies)
        else:
            for _, reply in replies:
                await self._connection.publish(reply, b"+ACK")
        if not messages:
            return
        chunk = Chunk(b"", {"sequence": self._last}, together=messages)
        await self._pass_on(background, chunk)

    async def _pass_on(self, background: Background, chunk: Chunk) -> None:
        """Pass a chunk on; the connection is kept alive while the queue is full."""
        while not background.offer(chunk) and not background.stopped.is_set():
            await asyncio.sleep(0.01)

    # ------------------------------------------------------------ source

    @property
    def problem(self) -> str | None:
        """The problem that prevents reading, or None."""
        return "there is no connection" if self._is_down else None

    def poll(self, timeout: float) -> Sequence[Chunk] | None:
        assert self._background is not None
        return self._background.take(timeout)

    def expect_checkpoints(self) -> None:
        self._saves = True

    def acknowledge(self, position: Position) -> None:
        replies = []
        with self._lock:
            while self._replies and self._replies[0][0] <= position["sequence"]:
                replies.append(self._replies.popleft()[1])
        if replies and self._loop is not None and not self._loop.is_closed():
            # The last one also acknowledges all messages before it, unless each must be
            # acknowledged.
            some = replies if self._acks_each else replies[-1:]
            asyncio.run_coroutine_threadsafe(self._acknowledged(some), self._loop)

    async def _acknowledged(self, replies: Sequence[str]) -> None:
        with contextlib.suppress(self._errors.Error, OSError):
            for reply in replies:
                await self._connection.publish(reply, b"+ACK")
            await self._connection.flush()

    def close(self) -> None:
        if self._background is not None:
            self._background.stop(3.0)
