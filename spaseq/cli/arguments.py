"""Arguments → queries, streams, knowledge bases and bound variables.

This module checks everything that can be wrong before the first event; its messages list the
valid choices.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from spaseq.records import dataclass

if TYPE_CHECKING:
    from spaseq.io.rows.mapping import RowMapping
    from spaseq.program import Program
    from spaseq.rdf.event import Parameter

STDIN = "-"
_URL = re.compile(r"https?://", re.IGNORECASE)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+:", re.IGNORECASE)
_BARE_IRI = re.compile(r"(?:https?|urn|file|mailto|ftp):\S+", re.IGNORECASE)
_PREFIXED = re.compile(r"((?:[^\W\d_][\w.-]*)?):\S*")
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?")
_VARIABLE = re.compile(r"[?$]?(\w+)")
_PREFIXES = {
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "prov": "http://www.w3.org/ns/prov#",
}


_BYTES = re.compile(r"(\d+)\s*(?:([KMGT])(?:i?B)?|B)?", re.IGNORECASE)


def byte_size(text: str) -> int:
    """A number of bytes; K, M, G and T are powers of 1024.

    Raises:
        click.BadParameter: for other text, and for zero.
    """
    match = _BYTES.fullmatch(text.strip())
    if match is None or int(match[1]) < 1:
        raise click.BadParameter(f"{text!r} is not a number of bytes, such as 65536, 512M or 2G")
    return int(match[1]) << 10 * " KMGT".index((match[2] or " ").upper())


def workers(text: str) -> int:
    """A number of threads; `auto` is the number of processors that the process may use.

    Raises:
        click.BadParameter: for other text, and for zero.
    """
    if text == "auto":
        usable = getattr(os, "sched_getaffinity", None)  # only some systems have it
        return len(usable(0)) if usable is not None else os.cpu_count() or 1
    if not text.isdecimal() or int(text) < 1:
        raise click.BadParameter(f"{text!r} is not a number of threads: use 1, 2, ... or auto")
    return int(text)


def match_columns(given: str | tuple[str, ...]) -> tuple[str, ...]:
    """Names of columns, separated by commas.

    Raises:
        click.BadParameter: for a name that is not a column of a match, or is given twice.
    """
    from spaseq.io.formats import MATCH_COLUMNS

    if isinstance(given, tuple):
        return given
    names = tuple(name.strip() for name in given.split(",")) if given else ()
    for name in names:
        if name not in MATCH_COLUMNS:
            raise click.BadParameter(f"{name!r} is not one of {', '.join(MATCH_COLUMNS)}")
        if names.count(name) > 1:
            raise click.BadParameter(f"{name} is given twice")
    return names


@dataclass(frozen=True, slots=True)
class QueryFile:
    """The text of a query, its file, and the name of the query in its matches."""

    path: str
    name: str
    text: str


def read_queries(paths: Sequence[str], texts: Sequence[str] = ()) -> list[QueryFile]:
    """Read query files (`-` is standard input), then queries that are given as text.

    The name of a query is the file's stem, or `query`, made unique by a number.
    """
    if not paths and not texts:
        raise click.UsageError("give a query: QUERY.rq, - for standard input, or -q TEXT")
    if paths.count(STDIN) > 1:
        raise click.UsageError("standard input is given for two queries")
    for path in paths:
        _refuse_events(path)
    given = [(_shown(path), _stem(path), _text(path)) for path in paths]
    given += [("-q", "query", text) for text in texts]
    queries: list[QueryFile] = []
    used: set[str] = set()
    for path, stem, text in given:
        _refuse_path(path, text)
        numbered = (f"{stem}-{number}" for number in count(2))
        name = next(n for n in chain([stem], numbered) if n not in used)
        used.add(name)
        queries.append(QueryFile(path, name, text))
    return queries


def _shown(path: str) -> str:
    return "<stdin>" if path == STDIN else path


def _stem(path: str) -> str:
    return "query" if path == STDIN else os.path.splitext(os.path.basename(path))[0]


def _refuse_events(path: str) -> None:
    """Refuse a file whose extension names a format of events, before it is read as a query."""
    from spaseq.io.recognition import extension_syntax
    from spaseq.io.rows.formats import row_format_of

    if extension_syntax(path) is not None or row_format_of(path) is not None:
        command = click.get_current_context().command
        reads = any("--stream" in option.opts for option in command.params)
        way = f": give the events as --stream NAME={path}" if reads else ""
        raise click.UsageError(f"{path} is a file of events, and a query is expected here{way}")


def _refuse_path(path: str, text: str) -> None:
    """Refuse the path of a query where its text is expected; Python calls accept both."""
    if "{" not in text and text.endswith((".rq", ".sparql")):
        hint = "; omit -q" if path == "-q" else ""
        raise click.UsageError(f"{path}: the text of a query is needed, not a path ({text}){hint}")


def _text(path: str) -> str:
    if path == STDIN and sys.stdin is None:
        raise click.UsageError("standard input is closed")
    try:
        if path == STDIN:
            return sys.stdin.buffer.read().decode("utf-8-sig")
        with open(path, encoding="utf-8-sig") as file:
            return file.read()
    except OSError as error:
        raise click.UsageError(
            f"the query {_shown(path)} cannot be read: {error.strerror or error}"
        ) from error
    except UnicodeDecodeError as error:
        raise click.UsageError(f"the query {_shown(path)} is not UTF-8: {error.reason}") from error


def stream_files(
    given: Iterable[str], program: Program, queries: Sequence[str] = ()
) -> dict[str, list[str]]:
    """Stream IRI → its files in the order given, with IRIs in the order of the queries.

    `queries` are the files of the queries: one of them may be standard input, too.
    Whether the files of the streams exist is not checked.
    """
    from spaseq.pipeline import shown_streams, stream_iri

    known = {*program.streams, *program.stream_names}
    files: dict[str, list[str]] = {iri: [] for iri in program.streams}
    for argument in given:
        name, path = _pair(argument, known, "--stream", "IRI=FILE")
        iri = stream_iri(program, name)
        if path in files[iri]:
            raise click.UsageError(f"the file {path} is given twice for the stream <{iri}>")
        files[iri].append(path)
    missing = [iri for iri, paths in files.items() if not paths]
    if missing:
        raise click.UsageError(
            f"no file for the stream <{missing[0]}>: add --stream '{missing[0]}=FILE'; "
            f"{shown_streams(program)}"
        )
    every = [path for paths in files.values() for path in paths]
    if every.count(STDIN) > 1:
        raise click.UsageError("standard input (-) can be used for one stream only")
    if STDIN in every and STDIN in queries:
        raise click.UsageError("standard input (-) is given both for a query and for a stream")
    if STDIN in every and sys.stdin is None:
        raise click.UsageError("standard input is closed, but --stream reads it (-)")
    return files


def check_files(files: Mapping[str, Sequence[str]]) -> None:
    """Refuse paths of streams that are not a file, pipe or device."""
    for path in chain.from_iterable(files.values()):
        check_file(path, "--stream")


def is_source_url(url: str) -> bool:
    """Whether a text is the URL of a source of the live stage."""
    return _is_url(url, "sources")


def is_sink_url(url: str) -> bool:
    """Whether a text is the URL of a sink of the live stage."""
    return _is_url(url, "sinks")


def _is_url(url: str, group: str) -> bool:
    if not _SCHEME.match(url) or os.path.exists(url):
        return False
    from spaseq.live.registry import is_url

    return is_url(url, group)


def check_file(path: str, option: str) -> None:
    """Refuse a path that is not a file, pipe, device or URL of a finished file."""
    if "://" in path:
        from spaseq.io.remote_files import is_remote_file

        if is_remote_file(path):
            return
    if path != STDIN and not os.path.isfile(path) and not _is_pipe(path):
        raise click.UsageError(f"{path}: {_why_not(path)} (named by {option})")


def mappings(given: Iterable[str], program: Program) -> dict[str, RowMapping]:
    """Stream IRI → its mapping."""
    from spaseq.pipeline import stream_iri

    known = {*program.streams, *program.stream_names}
    found: dict[str, RowMapping] = {}
    for argument in given:
        name, path = _pair(argument, known, "--map", "NAME=MAPPING.rq")
        iri = stream_iri(program, name)
        if iri in found:
            raise click.UsageError(f"the stream <{iri}> has two mappings")
        found[iri] = mapping_file(path)
    return found


def mapping_file(path: str) -> RowMapping:
    """The mapping of a file; its warnings are printed."""
    from spaseq.cli.reports import log
    from spaseq.io.rows.mapping import read_mapping

    mapping = read_mapping(Path(path))
    for warning in mapping.shown_warnings():
        log(warning, prefix="")
    return mapping


def kb_files(given: Iterable[str], program: Program) -> dict[str, str]:
    """Graph IRI → its file, the folder of its store, or the URL of its endpoint."""
    files: dict[str, str] = {}
    for argument in given:
        iri, path = _pair(argument, program.kb_graphs, "--kb", "IRI=FILE, IRI=FOLDER or IRI=URL")
        if iri in files:
            raise click.UsageError(f"the knowledge base graph <{iri}> is given twice")
        if _URL.match(path):
            from spaseq.kb.endpoint import check_url

            check_url(path)
        elif not os.path.isfile(path) and not os.path.isdir(path):
            raise click.UsageError(f"{path}: {_why_not(path)} (named by --kb)")
        files[iri] = path
    return files


def context_files(given: Iterable[str]) -> dict[str, str]:
    """URL → the file of the context; "" for a file that is given without a URL."""
    files: dict[str, str] = {}
    for argument in given:
        url, path = "", argument
        if _URL.match(argument):
            url, path = _pair(argument, (), "--context", "[URL=]FILE")
        if url in files:
            what = f"the context {url}" if url else "a context without a URL"
            raise click.UsageError(f"--context {argument}: {what} is given twice")
        if not os.path.isfile(path):
            raise click.UsageError(f"{path}: {_why_not(path)} (named by --context)")
        files[url] = path
    return files


def load_functions(paths: Iterable[str]) -> None:
    """Run modules that register functions.

    Raises:
        UsageError: for a file that does not exist, fails, or registers nothing.
    """
    from importlib.util import module_from_spec, spec_from_file_location

    from spaseq.sparql.registry import registered_names

    for path in paths:
        if not os.path.isfile(path):
            raise click.UsageError(f"{path}: {_why_not(path)} (named by --functions)")
        before = set(registered_names())
        name = os.path.splitext(os.path.basename(path))[0]
        spec = spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise click.UsageError(f"{path}: is not a Python module (named by --functions)")
        module = module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            raise click.UsageError(
                f"{path}: {type(error).__name__}: {error} (named by --functions)"
            ) from error
        if before == set(registered_names()):
            raise click.UsageError(
                f'{path}: registers no function; decorate one with @spaseq.function("IRI") '
                "(named by --functions)"
            )


FUNCTIONS_OPTION = click.option(
    "--functions",
    "functions",
    multiple=True,
    metavar="MODULE.py",
    help="A Python module that registers functions for queries with spaseq.function. The "
    "module runs without any restriction, so name only modules that you trust.",
)


def check_output(path: str, inputs: Iterable[str]) -> None:
    """Refuse an output file that is one of the input files, also by another name."""
    try:
        output = os.stat(path)
    except OSError:
        return
    if not stat.S_ISREG(output.st_mode):
        return
    for name in inputs:
        try:
            status = os.fstat(sys.stdin.fileno()) if name == STDIN else os.stat(name)
        except (OSError, ValueError):
            continue
        if os.path.samestat(output, status):
            shown = "standard input" if name == STDIN else name
            raise click.UsageError(
                f"--output {path} is the same file as the input {shown}, which it would "
                "overwrite; name another file"
            )


def _example(argument: str, known: Collection[str]) -> str:
    """What to write for an argument that is a file only, if there is one name to put before it."""
    names = [name for name in known if ":" not in name] or list(known)
    if len(names) != 1 or "=" in argument:
        return ""
    return f", as in {names[0]}={argument}"


def _pair(argument: str, known: Collection[str], option: str, form: str) -> tuple[str, str]:
    """The two sides of `IRI=FILE`, where both may contain `=` signs.

    The argument is split where the left side is known, otherwise where the right side is a file or
    a URL, otherwise at the first sign.
    """
    cuts = [
        (argument[: sign.start()].strip().removeprefix("<").removesuffix(">"),
         argument[sign.end() :].strip())
        for sign in re.finditer("=", argument)
    ]  # fmt: skip
    cuts = [cut for cut in cuts if cut[0] and cut[1]]
    if not cuts:
        raise click.UsageError(
            f"{option} {argument}: it must have the form {form}{_example(argument, known)}"
        )
    for cut in cuts:
        if cut[0] in known:
            return cut
    for cut in cuts:
        if os.path.exists(cut[1]) or cut[1] == STDIN or _URL.match(cut[1]):
            return cut
    return cuts[0]


def _is_pipe(path: str) -> bool:
    """Whether the path exists and is not a folder: a pipe or a device such as `/dev/stdin`."""
    return os.path.exists(path) and not os.path.isdir(path)


def _why_not(path: str) -> str:
    return "is a folder, not a file" if os.path.isdir(path) else "there is no such file"


def bound_values(given: Iterable[str], queries: Sequence[QueryFile]) -> dict[str, Parameter]:
    """Variable name → term, from `NAME=TERM`, with the prefixes that the queries declare."""
    values: dict[str, Parameter] = {}
    prefixes: Mapping[str, set[str]] | None = None
    for argument in given:
        name, sign, text = argument.partition("=")
        variable = _VARIABLE.fullmatch(name.strip())
        if not sign or variable is None:
            raise click.UsageError(f"--bind {argument}: it must have the form NAME=TERM")
        if variable[1] in values:
            raise click.UsageError(f"the variable ?{variable[1]} is bound twice")
        if not text.strip():
            raise click.UsageError(
                f"--bind {argument}: the value is missing; write {name}='\"\"' for an empty string"
            )
        prefixes = _prefixes(queries) if prefixes is None else prefixes
        values[variable[1]] = _bound_term(text.strip(), argument, prefixes)
    return values


def _prefixes(queries: Sequence[QueryFile]) -> dict[str, set[str]]:
    """Prefix → its IRIs, several if queries differ. Invalid queries are reported later."""
    from spaseq.errors import QueryError
    from spaseq.parser import parse

    prefixes: dict[str, set[str]] = {}
    for query in queries:
        try:
            declared = parse(query.text, query.name).prologue.prefixes
        except QueryError:
            continue
        for prefix, iri in declared:
            prefixes.setdefault(prefix, set()).add(iri)
    return {prefix: {iri} for prefix, iri in _PREFIXES.items()} | prefixes


def _bound_term(text: str, argument: str, prefixes: Mapping[str, set[str]]) -> Parameter:
    """A term in Turtle syntax, including bare numbers and booleans; any other text is a string."""
    import pyoxigraph as ox

    from spaseq.rdf.event import nodes_of

    if text[0] not in "<\"'" and not _NUMBER.fullmatch(text) and text not in ("true", "false"):
        name = _PREFIXED.fullmatch(text)
        if name is None:
            return ox.Literal(text)
        _check_prefix(name[1], text, argument, prefixes)
    known = "".join(
        f"@prefix {prefix}: <{iri}> . "
        for prefix, iris in prefixes.items()
        for iri in iris
        if len(iris) == 1
    )
    try:
        (quad,) = ox.parse(f"{known}<urn:s> <urn:p> {text} .", format=ox.RdfFormat.TURTLE)
    except (SyntaxError, ValueError) as error:
        raise click.UsageError(f"--bind {argument}: {text} is not an RDF term") from error
    if any(nodes_of(quad.object)):
        raise click.UsageError(f"--bind {argument}: the value must not have a blank node")
    return cast("Parameter", quad.object)


def _check_prefix(prefix: str, text: str, argument: str, prefixes: Mapping[str, set[str]]) -> None:
    """Refuse a name whose prefix no query declares, or queries declare differently."""
    iris = prefixes.get(prefix, set())
    if len(iris) == 1:
        return
    if iris:
        shown = " and ".join(f"<{iri}>" for iri in sorted(iris))
        raise click.UsageError(
            f"--bind {argument}: the queries declare {prefix}: as {shown}; write the whole <IRI>"
        )
    if _BARE_IRI.fullmatch(text):
        raise click.UsageError(
            f"--bind {argument}: write <{text}> for an IRI, or '\"{text}\"' for a string"
        )
    known = ", ".join(f"{other}:" for other in prefixes)
    raise click.UsageError(
        f"--bind {argument}: no query declares the prefix {prefix}: (known prefixes: {known}); "
        f"write <IRI> for an IRI, or '\"{text}\"' for a string"
    )
