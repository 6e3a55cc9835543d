"""A folder of `.rq` files as standing queries: `spaseq serve --queries DIR`.

The name of a file without `.rq` is the name of its query. A file that appears or changes is
registered: partial matches are kept if they fit the new text, and otherwise begin anew. The query
of a file that disappears is removed. A file with an error is reported and has no effect, so its
former query continues. Files are checked once a second, by time, size and inode.

Queries that clients registered under the same names are not touched.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from spaseq.errors import ChangeError, QueryError, SpaseqError
from spaseq.program import Program
from spaseq.server.context import Context
from spaseq.server.problems import Problem
from spaseq.server.standing import (
    NAME,
    Definition,
    checked_services,
    compile_all,
)

POLL_SECONDS = 1.0
MAX_QUERY_BYTES = 1 << 20
_Stamp: TypeAlias = tuple[int, int, int]
"""(time of modification, size, inode)."""


class QueryFolder:
    """Keeps the queries of a server in step with the files of a folder.

    Args:
        path: The folder.
        context: The server, whose engine runs when `look` is called.
        log: Reports files that cannot be used.
        sinks: The names of the sinks that the matches go to.
        paused: Whether queries that are new at the start are paused.
    """

    def __init__(
        self,
        path: Path,
        context: Context,
        log: Callable[[str], None],
        sinks: Sequence[str] = (),
        paused: bool = False,
    ):
        self._path = path
        self._sinks = list(sinks)
        self._context = context
        self._log = log
        self._pauses = paused
        self._seen: dict[str, _Stamp] = {}

    def begin(self) -> None:
        """Register all files together before the engine runs, which is faster than one by one."""
        found = self._scan()
        machine = self._context.engine.machine
        if not machine.runs and not self._pauses:
            fresh = {
                name: text
                for name in found
                if name not in machine.queries and (text := self._text(name)) is not None
            }
            definitions = [self._definition(name, text) for name, text in fresh.items()]
            self._begin_all(definitions)
            self._seen = {name: found[name] for name in fresh}

    def _begin_all(self, definitions: list[Definition]) -> None:
        """Register the queries that compile, and report the others."""
        checked = definitions
        while checked:
            try:
                program = compile_all(checked)
                checked_services(program, self._context.urls)
                self._context.engine.begin_queries(checked, program)
                return
            except QueryError as error:
                wrong = {error.name, *(other.name for other in error.others)}
                self._log(str(error))
                left = [one for one in checked if one.name not in wrong]
                if len(left) == len(checked):
                    break
                checked = left
            except (SpaseqError, Problem, ValueError) as error:
                self._log(f"{self._path}: {error}; its files are registered one by one")
                break
        for definition in checked:
            try:
                program = definition.compile()
                checked_services(program, self._context.urls)
                self._context.engine.put_query(definition, program, "fresh")
            except (SpaseqError, Problem, ValueError) as error:
                self._log(f"{self._path / definition.name}.rq: {error}")

    def look(self) -> None:
        """Register the changes since the last call; always call it from the same thread."""
        found = self._scan()
        for name, stamp in found.items():
            before = self._seen.get(name)
            if before != stamp:
                self._seen[name] = stamp
                self._register(name, before is not None)
        for name in [name for name in self._seen if name not in found]:
            del self._seen[name]
        self._remove_missing(found)
        self._pauses = False

    def _scan(self) -> dict[str, _Stamp]:
        found: dict[str, _Stamp] = {}
        try:
            with os.scandir(self._path) as entries:
                for entry in sorted(entries, key=lambda each: each.name):
                    if entry.name.endswith(".rq") and not entry.name.startswith("."):
                        stat = entry.stat()
                        stamp = stat.st_mtime_ns, stat.st_size, stat.st_ino
                        found[entry.name.removesuffix(".rq")] = stamp
        except OSError as error:
            self._log(f"{self._path}: {error.strerror or error}")
            return dict(self._seen)
        return found

    def _text(self, name: str) -> str | None:
        path = self._path / f"{name}.rq"
        try:
            if not NAME.fullmatch(name):
                raise ValueError("its name cannot be that of a query")
            data = path.read_bytes()
            if len(data) > MAX_QUERY_BYTES:
                raise ValueError(f"it has more than {MAX_QUERY_BYTES} bytes")
            return data.decode()
        except (OSError, ValueError) as error:
            self._log(f"{path}: {error}")
            return None

    def _definition(self, name: str, text: str) -> Definition:
        return Definition(name, text, folder=True, sinks=self._sinks)

    def _register(self, name: str, again: bool) -> None:
        """Register a file; `again`: it was written while the server ran."""
        text = self._text(name)
        if text is None:
            return
        definition = self._definition(name, text)
        before = self._context.engine.machine.queries.get(name)
        if before is not None and not before.definition.folder:
            self._log(f"{self._path / name}.rq: a client has registered a query of this name")
            return
        is_paused = self._pauses if before is None else before.definition.paused
        definition = replace(definition, paused=is_paused)
        # Writing the file of a failed query restarts the query; a restart of the server does not.
        begins = before is None or (before.failure and again)
        if not begins and before is not None and before.definition == definition:
            return
        try:
            program = definition.compile()
            checked_services(program, self._context.urls)
            self._put(definition, program)
        except (SpaseqError, Problem, ValueError) as error:
            self._log(f"{self._path / name}.rq: {error}")

    def _put(self, definition: Definition, program: Program) -> None:
        engine = self._context.engine
        try:
            _answer(engine.call(lambda: engine.put_query(definition, program, "keep")))
        except ChangeError as error:
            _answer(engine.call(lambda: engine.put_query(definition, program, "fresh")))
            self._log(f"query {definition.name}: it begins without partial matches: {error}")
        else:
            self._log(f"query {definition.name}: registered")

    def _remove_missing(self, found: Mapping[str, _Stamp]) -> None:
        engine = self._context.engine
        for name, standing in list(engine.machine.queries.items()):
            if standing.definition.folder and name not in found:
                try:
                    _answer(engine.call(partial(engine.remove_query, name)))
                    self._log(f"query {name}: removed")
                except (SpaseqError, Problem) as error:
                    self._log(f"{self._path / name}.rq: {error}")


def _answer(future: Future[Any]) -> None:
    future.result()
