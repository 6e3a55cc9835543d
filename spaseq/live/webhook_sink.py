"""Matches → HTTP requests.

Each match is one POST of its JSON. With a secret, requests are signed according to Standard
Webhooks 1.0: `webhook-id` (the id of the match, the same for every attempt), `webhook-timestamp`
and `webhook-signature`, an HMAC-SHA256 of both and the body. A thread sends them in order.

A request that fails is repeated with growing pauses. A request that fails permanently is written to
the dead-letter file; without such a file it ends the run. A checkpoint waits until all matches
before it are sent or written to this file, so each is delivered at least once.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import queue
import threading
import time
from collections.abc import Mapping
from typing import Any, TextIO

from spaseq.errors import SpaseqError
from spaseq.live.addresses import secret
from spaseq.live.receiving import Pauses
from spaseq.live.tls import untrusted
from spaseq.live.waiting import Waiting
from spaseq.live.web import RETRIED, http_client, web_address
from spaseq.results import Match
from spaseq.runs import Run

MAX_QUEUED = 1000
RETRIES = 10
TIMEOUT = 10.0
MOST_PAUSE = 60.0


def signature(key: bytes, identifier: str, seconds: int, body: bytes) -> str:
    """The signature of a request, as Standard Webhooks writes it."""
    signed = f"{identifier}.{seconds}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


class WebhookSink:
    """Sends requests.

    Args:
        url: `http:` or `https:`, with the options `secret-env` (a variable with the key of the
            signature; `whsec_` and base64, or any text), `dead` (the dead-letter file), `retries`
            (10), `timeout` (seconds for one request, 10), `token-env` and `ca` in the fragment.
        keeps: Whether there will be checkpoints.

    Raises:
        SpaseqError: for a wrong URL, or a missing secret.
    """

    def __init__(self, url: str, keeps: bool):
        self._address = web_address(url, ("secret-env", "dead", "retries", "timeout"))
        parts, shown = self._address.parts, self._address.shown
        self._retries = int(parts.number("retries", RETRIES))
        variable = parts.options.get("secret-env")
        self._key = None if variable is None else _key(secret(shown, variable), shown)
        self._http = http_client(self._address, parts.number("timeout", TIMEOUT, 0.001))
        self.waiting = Waiting(shown)
        self.dead_letters = parts.options.get("dead")
        """The path of the dead-letter file, which `resume` opens; None: there is none."""
        self._dead: TextIO | None = None
        self._queue: queue.Queue[tuple[str, bytes] | None] = queue.Queue(MAX_QUEUED)
        self._failure: SpaseqError | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._send_all, name="webhook", daemon=True)
        self.written = 0

    def resume(self, state: str, tokens: Mapping[int, Any]) -> int:
        if self.dead_letters is not None:
            try:
                self._dead = open(self.dead_letters, "a", encoding="utf-8")  # noqa: SIM115 (until `close`)
            except OSError as error:
                raise SpaseqError(
                    f"{self.dead_letters}: cannot be written: {error.strerror}"
                ) from error
        self._thread.start()
        return max(tokens, default=0)

    def attach(self, run: Run) -> None:
        """Do nothing, since requests are made from match objects."""

    def write(self, match: Match) -> None:
        item = match.id, match.to_json().encode()
        while True:
            self._raise_failure()
            try:
                self._queue.put(item, timeout=0.1)
                break
            except queue.Full:
                continue
        self.written += 1

    def write_block(self) -> None:
        self._raise_failure()

    def prepare(self) -> Any:
        self._drain()
        if self._dead is not None:
            self._dead.flush()
            os.fsync(self._dead.fileno())
        return {}

    def commit(self, number: int) -> None:
        """Do nothing, since all matches have been sent."""

    def close(self) -> None:
        try:
            if self._thread.is_alive() and self._failure is None:
                self._drain()
        finally:
            self._stopped.set()
            if self._thread.is_alive():
                self._queue.put(None)
                self._thread.join(TIMEOUT)
            self._http.close()
            if self._dead is not None:
                self._dead.close()

    def _drain(self) -> None:
        """Wait until all matches are sent, or in the dead-letter file."""
        with self._queue.all_tasks_done:
            while self._queue.unfinished_tasks and self._failure is None:
                self._queue.all_tasks_done.wait(0.1)
        self._raise_failure()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    # ------------------------------------------------------------ the thread

    def _send_all(self) -> None:
        while True:
            item = self._queue.get()
            if item is None or self._failure is not None:
                self._queue.task_done()
                return
            try:
                self._send(*item)
            except BaseException as error:  # raised again by the coordinator
                self._failure = (
                    error
                    if isinstance(error, SpaseqError)
                    else SpaseqError(f"{self._address.shown}: cannot be written: {error}")
                )
            self._queue.task_done()

    def _send(self, identifier: str, body: bytes) -> None:
        """Send a match, and retry as often as necessary."""
        pauses = Pauses(most=MOST_PAUSE)
        for attempt in range(self._retries + 1):
            said, again, wait = self._attempt(identifier, body)
            if said is None:
                self.waiting.end()
                return
            if not again or attempt == self._retries or self._stopped.is_set():
                break
            self.waiting.begin(said)
            self._stopped.wait(max(pauses.following(), wait))
        if self._dead is None:
            raise SpaseqError(
                f"{self._address.shown}: a match could not be delivered: {said} (#dead=FILE takes "
                "such matches)"
            )
        shown = {"id": identifier, "reason": said, "attempts": attempt + 1, "time": time.time()}
        self._dead.write(json.dumps({**shown, "match": json.loads(body)}, ensure_ascii=False))
        self._dead.write("\n")
        self._dead.flush()

    def _attempt(self, identifier: str, body: bytes) -> tuple[str | None, bool, float]:
        """Send a match once; returns the failure, whether to retry, and after how many seconds."""
        import httpx

        seconds = int(time.time())
        headers = {
            "Content-Type": "application/json",
            "webhook-id": identifier,
            "webhook-timestamp": str(seconds),
            **self._address.headers,
        }
        if self._key is not None:
            headers["webhook-signature"] = signature(self._key, identifier, seconds, body)
        try:
            answer = self._http.post(self._address.url, content=body, headers=headers)
        except httpx.HTTPError as error:
            refused = untrusted(error)
            if refused is not None:
                raise SpaseqError(f"{self._address.shown}: cannot be written: {refused}") from error
            return str(error) or type(error).__name__, True, 0.0
        status = answer.status_code
        if 200 <= status < 300:
            return None, False, 0.0
        after = answer.headers.get("retry-after", "")
        wait = min(float(after), MOST_PAUSE) if after.isdigit() else 0.0
        said = f"it answered {status} {answer.reason_phrase}"
        return said, status >= 500 or status in RETRIED, wait


def _key(text: str, shown: str) -> bytes:
    """The key of the signature."""
    if not text.startswith("whsec_"):
        return text.encode()
    try:
        return base64.b64decode(text.removeprefix("whsec_"), validate=True)
    except ValueError as error:
        raise SpaseqError(f"{shown}: the secret is not base64 after whsec_") from error
