"""`--config FILE`: the options of `run` and `serve` in a TOML file, and `--print-config`.

The file gives defaults: an option on the command line replaces its value in the file. Relative
paths are relative to the folder of the file. `${NAME}` in a string is an environment variable,
`${NAME:-TEXT}` has a default, and `$${` stands for `${`.

msgspec checks names and types, and reports the place of an error in the data; its line is found in
the text. It is chosen over pydantic because it has no dependencies and a tenth of the size.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import click

from spaseq.plan.wording import did_you_mean

_VARIABLE = re.compile(r"\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PATH = re.compile(r" - at `\$([^`]*)`$")
STDIN = "-"

OPTIONS: Mapping[str, Mapping[str, str]] = {
    "": {"queries": "queries", "query": "texts", "bind": "bound", "entail": "entail",
         "functions": "functions", "workers": "workers", "kb": "kbs"},
    "reading": {name: name.replace("-", "_") for name in (
        "time-predicate", "reuse-graph-names", "event-metadata", "arrival-time", "time-unit",
        "time-precision", "input-format", "on-error", "lateness", "time-column", "at-end",
    )} | {"events": "framing", "contexts": "contexts"},
    "output": {"sink": "output", "format": "format_", "limit": "limit", "late": "late"},
    "live": {"follow": "follow", "idle": "idle", "clock": "clock", "graph-quiet": "graph_quiet",
             "max-ahead": "max_ahead"},
    "state": {"folder": "state", "checkpoint-every": "checkpoint_every",
              "policy": "state_policy"},
    "limits": {name: name.replace("-", "_") for name in (
        "max-groups", "max-steps", "max-matches", "max-memory", "on-limit")},
    "watch": {"progress": "progress", "stats": "stats", "stats-json": "stats_json", "why": "why",
              "metrics": "metrics", "insecure": "insecure", "log-format": "log_format"},
}  # fmt: skip
"""Section → key of the file → parameter of the command. `streams` has a table for each stream."""
SERVE: Mapping[str, str] = {
    "kb": "kbs", "sink": "sinks", "queries-sink": "folder_sinks", "allow-url": "allowed_urls",
    "allow-origin": "origins", "events": "framing",
} | {name: name.replace("-", "_") for name in (
    "listen", "queries", "state", "manage", "entail", "lateness", "idle", "max-ahead",
    "time-predicate", "arrival-time", "on-error", "checkpoint-every", "tokens", "tls-cert",
    "tls-key", "insecure", "allow-private", "max-groups", "max-steps", "max-matches", "max-memory",
    "on-limit", "max-body", "max-queries", "max-subscribers", "replay", "log-format", "paused",
)}  # fmt: skip
"""Key of the section `serve` → parameter of that command, which otherwise reads only `streams`."""
_PATHS = frozenset(
    ("queries", "output", "late", "state", "functions", "tokens", "tls_cert", "tls_key")
)
"""The parameters that are paths, or lists of paths."""


@dataclass
class Settings:
    """A checked file.

    Args:
        path: The file.
        defaults: Parameter → default value.
        secrets: Value of an environment variable → its name, longest first.
    """

    path: str
    defaults: dict[str, Any] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)


def load(path: str, environment: Mapping[str, str] | None = None, serves: bool = False) -> Settings:
    """Read and check a file.

    Args:
        path: The file.
        environment: The environment variables; None: those of the process.
        serves: Whether to read the section for `serve`, and not those for `run`; both read
            `streams`.

    Raises:
        click.UsageError: with file and line, if it cannot be read or has an error.
    """
    import tomllib  # imported here like msgspec: most runs have no such file

    try:
        import msgspec
    except ImportError as error:
        raise click.UsageError("--config needs msgspec: pip install spaseq[config]") from error
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise click.UsageError(f"{path}: cannot be read: {reason}") from error
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise click.UsageError(f"{path}: {_with_line(str(error))}") from error
    settings = Settings(path)
    expand = _Expansion(path, text, os.environ if environment is None else environment, settings)
    raw = expand.all(raw, ())
    types = _types()

    def checked(value: Any, kind: Any, where: tuple[str, ...]) -> Any:
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            message = str(error)
            found = _PATH.search(message)
            inner = re.findall(r"[^.\[\]]+", found[1]) if found else []
            unknown = re.search(r"unknown field `([^`]*)`", message)
            inner += [unknown[1]] if unknown else []
            place = [*where, *(name for name in inner if name != "...")]
            shown = ".".join(place)
            message = _in_words(_PATH.sub("", message))
            if unknown and len(place) == len(where) + 1:
                known = [each.encode_name for each in msgspec.structs.fields(kind)]
                sections = [name for name in types if name] if not where else []
                question = did_you_mean(unknown[1], [*known, *sections])
                message += f"; {question}" if question else ""
            raise click.UsageError(
                f"{path}, line {line_of(text, place)}: {shown}: {message}"
            ) from error

    top = checked({k: v for k, v in raw.items() if k not in types}, types[""], ())
    defaults = settings.defaults
    if serves and "serve" not in raw:
        raise click.UsageError(f"{path}: there is no section [serve]")
    for section, options in {"serve": SERVE}.items() if serves else OPTIONS.items():
        if section and section not in raw:
            continue
        part = top if not section else checked(raw[section], types[section], (section,))
        for key, parameter in options.items():
            value = getattr(part, key.replace("-", "_"))
            if value is not msgspec.UNSET:
                defaults[parameter] = value
    folder = os.path.dirname(os.path.abspath(path))

    def beside(name: str) -> str:
        is_path = name != STDIN and not _URL.match(name) and not os.path.isabs(name)
        return os.path.join(folder, name) if is_path else name

    streams, maps = [], []
    tables = raw.get("streams", {})
    if not isinstance(tables, dict):
        raise click.UsageError(f"{path}, line {line_of(text, ['streams'])}: streams: not a table")
    for name, value in tables.items():
        part = checked(value, types["streams"], ("streams", name))
        sources = [part.source] if isinstance(part.source, str) else part.source
        streams += [f"{name}={beside(source)}" for source in sources]
        if serves and part.map is not msgspec.UNSET:
            raise click.UsageError(
                f"{path}, line {line_of(text, ['streams', name, 'map'])}: streams.{name}.map: the "
                "server reads RDF only"
            )
        maps += [] if part.map is msgspec.UNSET else [f"{name}={beside(part.map)}"]
    if streams:
        defaults["streams"] = streams
    if maps:
        defaults["maps"] = maps
    for name in _PATHS & defaults.keys():
        value = defaults[name]
        defaults[name] = beside(value) if isinstance(value, str) else list(map(beside, value))
    for parameter in ("kbs", "contexts"):
        if parameter in defaults:
            given = defaults[parameter]
            defaults[parameter] = [f"{iri}={beside(place)}" for iri, place in given.items()]
    if "sinks" in defaults:
        defaults["sinks"] = [f"{name}={url}" for name, url in defaults["sinks"].items()]
    if "bound" in defaults:
        defaults["bound"] = [f"{name}={_term(v)}" for name, v in defaults["bound"].items()]
    if isinstance(defaults.get("state_policy"), str):
        defaults["state_policy"] = [defaults["state_policy"]]
    for parameter in ("workers", "max_memory"):
        if parameter in defaults:
            defaults[parameter] = str(defaults[parameter])
    return settings


_KINDS = {
    "array": "a list", "bool": "true or false", "int": "a whole number", "object": "a table",
    "float": "a number", "str": "a text",
}  # fmt: skip
"""The types of TOML in words, by their names in messages of msgspec."""


def _in_words(message: str) -> str:
    """A message of msgspec in the words of TOML."""
    unknown = re.search(r"unknown field `([^`]*)`", message)
    if unknown:
        return f"there is no option {unknown[1]}"
    missing = re.search(r"missing required field `([^`]*)`", message)
    if missing:
        return f"{missing[1]} is missing"
    kinds = re.search(r"[Ee]xpected `([^`]*)`, got `([^`]*)`", message)
    if kinds:
        wanted = " or ".join(_KINDS.get(kind, kind) for kind in kinds[1].split(" | "))
        return f"{wanted} is needed, not {_KINDS.get(kinds[2], kinds[2])}"
    return message[:1].lower() + message[1:]


def _types() -> dict[str, Any]:
    """The structure of each section."""
    from msgspec import UNSET, UnsetType, defstruct

    strings = list[str] | UnsetType
    kinds: dict[str, Any] = {
        "queries": strings, "texts": strings, "functions": strings,
        "bound": dict[str, str | int | float | bool] | UnsetType,
        "kbs": dict[str, str] | UnsetType, "contexts": dict[str, str] | UnsetType,
        "state_policy": str | list[str] | UnsetType,
        "workers": int | str | UnsetType, "max_memory": int | str | UnsetType,
        **dict.fromkeys(("limit", "max_groups", "max_steps", "max_matches"), int | UnsetType),
        **dict.fromkeys(("reuse_graph_names", "event_metadata", "arrival_time", "follow",
                         "progress", "stats", "stats_json", "why", "insecure"), bool | UnsetType),
    }  # fmt: skip

    of_serve: dict[str, Any] = kinds | {
        "queries": str | UnsetType, "allowed_urls": strings, "origins": strings,
        "sinks": dict[str, str] | UnsetType, "folder_sinks": strings,
        **dict.fromkeys(("manage", "paused", "allow_private"), bool | UnsetType),
        **dict.fromkeys(("max_body", "max_queries", "max_subscribers", "replay"),
                        int | UnsetType),
    }  # fmt: skip

    def made(name: str, fields: Sequence[Any]) -> Any:
        return defstruct(name, fields, rename="kebab", forbid_unknown_fields=True, kw_only=True)

    def fields(options: Mapping[str, str], kinds: Mapping[str, Any]) -> list[Any]:
        return [
            (key.replace("-", "_"), kinds.get(parameter, str | UnsetType), UNSET)
            for key, parameter in options.items()
        ]

    found = {
        section: made(section or "file", fields(options, kinds))
        for section, options in OPTIONS.items()
    }
    found["serve"] = made("serve", fields(SERVE, of_serve))
    source = ("source", str | list[str])
    found["streams"] = made("stream", [source, ("map", str | UnsetType, UNSET)])
    return found


def _term(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class _Expansion:
    """Replaces environment variables in the strings of a file."""

    def __init__(self, path: str, text: str, environment: Mapping[str, str], settings: Settings):
        self._path, self._text = path, text
        self._environment = environment
        self._settings = settings

    def all(self, value: Any, where: tuple[str, ...]) -> Any:
        if isinstance(value, dict):
            return {name: self.all(part, (*where, name)) for name, part in value.items()}
        if isinstance(value, list):
            return [self.all(part, where) for part in value]
        if isinstance(value, str):
            return _VARIABLE.sub(lambda found: self._one(found, where), value)
        return value

    def _one(self, found: re.Match[str], where: tuple[str, ...]) -> str:
        name, default = found[1], found[2]
        if name is None:
            return "${"
        value = self._environment.get(name, default)
        if value is None:
            raise click.UsageError(
                f"{self._path}, line {line_of(self._text, where)}: {'.'.join(where)}: the "
                f"environment variable {name} is not set"
            )
        if name in self._environment and value:
            self._settings.secrets[value] = name
        return value


# ------------------------------------------------------------------ lines


def _with_line(message: str) -> str:
    """`Invalid value (at line 3, column 5)` → `line 3, column 5: invalid value`."""
    found = re.fullmatch(r"(.*) \(at (line \d+, column \d+)\)", message)
    if found is None:
        return message[:1].lower() + message[1:]
    return f"{found[2]}: {found[1][:1].lower()}{found[1][1:]}"


def line_of(text: str, path: Sequence[str]) -> int:
    """The line of a key in a TOML text, or of the longest part of its path that has one."""
    table: list[str] = []
    best, line = 0, 1
    for number, content in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[\[?([^\[\]]+)\]\]?\s*(#.*)?$", content)
        pair = re.match(r"""\s*((?:"[^"]*"|'[^']*'|[A-Za-z0-9_.\s-])+?)\s*=""", content)
        if header:
            table = names = _names(header[1])
        elif pair:
            names = [*table, *_names(pair[1])]
        else:
            continue
        common = min(len(names), len(path))
        if common > best and names[:common] == list(path[:common]):
            best, line = common, number
    return line


def _names(key: str) -> list[str]:
    return [found[1] or found[2] or found[0] for found in re.finditer(
        r"""[A-Za-z0-9_-]+|"([^"]*)"|'([^']*)'""", key)]  # fmt: skip


# ------------------------------------------------------------------ options


def config_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--config`, `--print-config` and `--check-config` to `run`."""
    for option in (
        click.option(
            "--check-config",
            is_flag=True,
            help="Connect to every source, the knowledge base and the output, report the results, "
            "and exit.",
        ),
        click.option(
            "--print-config",
            is_flag=True,
            help="Print the options that apply, from the file and the command line, without "
            "secrets, and exit.",
        ),
        click.option(
            "--config",
            metavar="FILE",
            is_eager=True,
            expose_value=False,
            callback=_adopt,
            help="Read options from this TOML file. Options of the command line take precedence.",
        ),
    ):
        command = option(command)
    return command


def serve_config_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--config` to `serve`."""
    return click.option(
        "--config",
        metavar="FILE",
        is_eager=True,
        expose_value=False,
        callback=_adopt_of_serve,
        help="Read options from the sections [serve] and [streams] of this TOML file. Options of "
        "the command line take precedence.",
    )(command)


def _adopt_of_serve(context: click.Context, parameter: click.Parameter, path: str | None) -> None:
    if path is not None:
        settings = load(path, serves=True)
        context.default_map = {**(context.default_map or {}), **settings.defaults}


def _adopt(context: click.Context, parameter: click.Parameter, path: str | None) -> None:
    if path is None:
        return
    settings = load(path)
    context.meta[__name__] = settings
    context.default_map = {**(context.default_map or {}), **settings.defaults}


def config_queries(
    context: click.Context, queries: Sequence[str], texts: Sequence[str]
) -> tuple[Sequence[str], Sequence[str]]:
    """The query files and texts: those of the command line, or else those of the file."""
    settings = settings_of(context)
    if settings is None:
        return queries, texts
    source = click.core.ParameterSource.COMMANDLINE
    if queries:
        return queries, texts if context.get_parameter_source("texts") == source else ()
    if context.get_parameter_source("texts") == source:
        return (), texts
    return settings.defaults.get("queries", ()), texts


def settings_of(context: click.Context) -> Settings | None:
    """The configuration file that was given."""
    found: Settings | None = context.meta.get(__name__)
    return found


def printed(context: click.Context, values: Mapping[str, Any]) -> str:
    """The effective configuration as TOML, with only the values that differ from the defaults."""
    try:
        import tomli_w
    except ImportError as error:
        raise click.UsageError("--print-config needs tomli-w: pip install spaseq[config]"
                               ) from error  # fmt: skip
    settings = settings_of(context)
    secrets = {} if settings is None else settings.secrets
    own = {p.name: p.default for p in context.command.params if p.name is not None}

    def shown(value: Any) -> Any:
        if isinstance(value, tuple | list):
            return list(map(shown, value))
        if isinstance(value, str):
            return hidden(value, secrets)
        return value

    found: dict[str, Any] = {}
    for section, options in OPTIONS.items():
        for key, parameter in options.items():
            value = values.get(parameter)
            if value is None or value in ((), [], False) or str(value) == str(own.get(parameter)):
                continue
            if parameter in ("kbs", "bound", "contexts"):
                value = dict(shown(pair).split("=", 1) for pair in value if "=" in pair)
            (found.setdefault(section, {}) if section else found)[key] = shown(value)
    streams: dict[str, Any] = {}
    for pair in values.get("streams", ()):
        name, _, source = _stream(pair)
        streams.setdefault(name, {"source": []})["source"].append(hidden(source, secrets))
    for pair in values.get("maps", ()):
        name, _, mapping = _stream(pair)
        streams.setdefault(name, {"source": []})["map"] = mapping
    if streams:
        found["streams"] = streams
    return tomli_w.dumps(found)


def _stream(pair: str) -> tuple[str, str, str]:
    """NAME=SOURCE; an IRI as the name may have `=` in its query."""
    return pair.partition("=")


def hidden(text: str, secrets: Mapping[str, str]) -> str:
    """A text without passwords, and with variables in place of their values."""
    from spaseq.live.addresses import redacted

    for value, name in sorted(secrets.items(), key=lambda pair: -len(pair[0])):
        text = text.replace(value, f"${{{name}}}")
    return redacted(text, "${")
