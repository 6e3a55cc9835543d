"""The sources themselves: style, layers, sizes, and whether the paths they name exist.

Run with the other tests, so that one command is the gate. The layers are those of
docs/architecture.md: a module imports only from stages to the left of its own.
"""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import spaseq

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "spaseq"

ORDER = [
    {"records"},
    {"errors"},
    {"rules"},
    {"sparql"},
    {"rdf"},
    {"parser"},
    {"plan"},
    {"gpm", "nfa", "kb"},
    {"results"},
    {"engine"},
    {"explain", "io"},
    {"runs"},
    {"async_runs"},
    {"program"},
    {"keyed_runs"},
    {"pipeline"},
    {"inputs"},
    {"result"},
    {"execute"},
    {"live"},
    {"frames"},
    {"generate"},
    {"spark", "server", "client"},
    {"cli"},
]
RANK = {stage: rank for rank, stages in enumerate(ORDER) for stage in stages}

# Imports inside functions that close a circle within a stage.
LATE = {
    # The default writer is in the module that opens all of them, so that a run imports no other.
    "spaseq.io.formats": ("spaseq.io.sinks",),
    # The compiled writer of matches describes matches with the terms of the Python writer.
    "spaseq.io.native._match_blocks": ("spaseq.io.rdf_writer",),
}

# Guides, not aims: a file may be long where it is one concept.
BUDGETS = {".py": 700, ".pyx": 1500, ".pxi": 1500}
TEST_BUDGET = 1000
LONGEST = 100
TEXTS = {".py", ".pyx", ".pxi", ".pxd", ".pyi", ".lark", ".md", ".toml", ".rq", ".sh", ".txt"}
BUILT = {"build", "dist", "site"}

# Import and cimport alike, in Python and in Cython.
IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(\S+)[ \t]+c?import\b(.*)|c?import[ \t]+(\S+))", re.MULTILINE
)
IMPORTED = re.compile(
    r"^[ \t]*(?:from[ \t]+(spaseq[\w.]*)[ \t]+c?import[ \t]+(\([^)]*\)|.*)"
    r"|c?import[ \t]+(spaseq[\w.]+))",
    re.MULTILINE,
)
FOR_TYPES = re.compile(r"^if TYPE_CHECKING:\n(?:(?:[ \t]+.*)?\n)*", re.MULTILINE)
INCLUDED = re.compile(r'^include "(.*)"', re.MULTILINE)
MACHINE = re.compile(r"/(?:work|tmp|root|home|Users|mnt)/\w")
NAMED = re.compile(
    r"(?<![\w/:.-])((?:spaseq|docs|tests|examples|ontologies|benchmarks|\.ci)/[\w./*-]*)"
)
FILE = re.compile(r"`([\w./-]+\.(?:py|pyx|pxi|pyi|md|lark|toml))`")
MODULE = re.compile(r"(?<![\w/.-])spaseq(?:\.\w+)+")


def sources(*suffixes: str) -> list[Path]:
    """The package's own modules, in a fixed order."""
    return sorted(path for path in PACKAGE.rglob("*") if path.suffix in suffixes)


@cache
def texts() -> tuple[Path, ...]:
    """Every handwritten text file; files that tools generate are omitted."""
    found = [ROOT / "Makefile", ROOT / ".ci" / "run"]
    for path in ROOT.rglob("*"):
        first = path.relative_to(ROOT).parts[0]
        kept = first.startswith(".") or first in BUILT or first.endswith(".egg-info")
        if path.suffix in TEXTS and path.is_file() and not kept:
            found.append(path)
    return tuple(sorted(found))


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


# ------------------------------------------------------------------ style


def run(*command: str) -> None:
    result = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, f"\n{result.stdout}{result.stderr}"


def test_ruff_finds_nothing() -> None:
    run("ruff", "check", "--quiet", "--output-format", "concise", ".")


def test_ruff_would_format_nothing() -> None:
    run("ruff", "format", "--check", ".")


def test_the_version_is_told_once() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert spaseq.__version__ == project["version"]
    assert f"## {spaseq.__version__}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


# ------------------------------------------------------------------ layers


def stage(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].partition(".")[0]


def imports(path: Path) -> Iterator[tuple[int, str, str]]:
    """(line, module, names) of what a file imports; for the type checker too."""
    text = path.read_text("utf-8")
    for found in IMPORT.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        yield line, found[1] or found[3], (found[2] or "").strip()


def wrong_imports(path: Path) -> Iterator[str]:
    """What a module must not import, with the place."""
    own = stage(path)
    if own not in RANK:
        yield f"{shown(path)}: {own} has no place in the order of the stages"
        return
    for line, module, names in imports(path):
        where = f"{shown(path)}:{line}"
        parts = module.rstrip(",").split(".")
        if module.startswith("."):
            yield f"{where}: a relative import"
        elif parts[0] != "spaseq" or (module, names) == ("spaseq", "__version__"):
            continue
        elif len(parts) == 1:
            yield f"{where}: imports must name the module, not the package"
        elif parts[1] != own and RANK[parts[1]] >= RANK[own]:
            yield f"{where}: {own} must not import {module}"


def test_a_module_imports_only_from_stages_before_its_own() -> None:
    paths = set(sources(".py", ".pyx", ".pxi", ".pxd", ".pyi"))
    paths -= {PACKAGE / "__init__.py", PACKAGE / "__main__.py"}
    wrong = [fault for path in sorted(paths) for fault in wrong_imports(path)]
    assert not wrong, "\n".join(wrong)


def parts(path: Path) -> Iterator[Path]:
    """The files of one module: a compiled one has declarations and parts."""
    yield path
    if path.suffix == ".pyx":
        yield from filter(Path.exists, [path.with_suffix(".pxd")])
        yield from (path.parent / part for part in INCLUDED.findall(path.read_text("utf-8")))


def imports_of_stages() -> dict[str, set[str]]:
    """Each module and those of its stage that it imports, also inside functions; not for types."""
    modules = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sources(".py", ".pyx")
    }
    graph: dict[str, set[str]] = {}
    for module, path in modules.items():
        text = "\n".join(part.read_text("utf-8") for part in parts(path))
        found = graph[module] = set()
        for base, names, whole in IMPORTED.findall(FOR_TYPES.sub("", text)):
            inner = {f"{base}.{name}" for name in re.findall(r"\w+", names)} & modules.keys()
            found |= inner or {whole or base}
        own = module.split(".")[1:2]
        graph[module] = {name for name in found - {module} if name.split(".")[1:2] == own}
    return graph


def circle(graph: dict[str, set[str]]) -> list[str]:
    """The modules of a circle, each imported by the next; empty if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_circle_of_imports_is_within_a_stage() -> None:
    graph = imports_of_stages()
    kept = {module: found.difference(LATE.get(module, ())) for module, found in graph.items()}
    assert not circle(kept)
    for module, names in LATE.items():
        for name in names:
            assert name in graph[module], f"{module} no longer imports {name}"
            assert circle({**kept, module: kept[module] | {name}}), f"{name} closes no circle"


def test_the_docstring_of_the_package_shows_the_order() -> None:
    """The order that `spaseq/__init__.py` shows agrees with the one tested."""
    shown_there = [line for line in (spaseq.__doc__ or "").splitlines() if "→" in line]
    said = [set(part.replace("|", " ").split()) for part in " ".join(shown_there).split("→")]
    assert set().union(*said) == RANK.keys()
    ranks = [{RANK[name] for name in part} for part in said]
    assert all(len(rank) == 1 for rank in ranks)
    assert ranks == sorted(ranks, key=min)


# ------------------------------------------------------------------ sizes


def test_lines_of_compiled_modules_have_the_length_of_all_others() -> None:
    """ruff sees to those of Python."""
    long = [
        f"{shown(path)}:{number}"
        for path in sources(".pyx", ".pxi", ".pxd")
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if len(line) > LONGEST
    ]
    assert not long


def test_no_file_has_outgrown_one_idea() -> None:
    too_long = []
    for path in texts():
        budget = BUDGETS.get(path.suffix)
        if budget is None:
            continue
        if ROOT / "tests" in path.parents:
            budget = TEST_BUDGET
        lines = len(path.read_text("utf-8").splitlines())
        if lines > budget:
            too_long.append(f"{shown(path)}: {lines} lines, at most {budget}: split by concept")
    assert not too_long, "\n".join(too_long)


# ------------------------------------------------------------------ what is named exists


@cache
def docstrings(path: Path) -> str:
    """All docstrings of a Python file; all of the text of any other."""
    text = path.read_text("utf-8")
    if path.suffix != ".py":
        return text
    owners = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    found = (
        ast.get_docstring(node) for node in ast.walk(ast.parse(text)) if isinstance(node, owners)
    )
    return "\n".join(filter(None, found))


def documents() -> list[Path]:
    return [
        ROOT / "README.md",
        ROOT / "CHANGELOG.md",
        *sorted((ROOT / "docs").glob("*.md")),
        *sources(".py", ".pyx", ".pxi", ".pyi", ".lark"),
        *sorted((ROOT / "tests").rglob("*.py")),
        *sorted((ROOT / "benchmarks").rglob("*.py")),
    ]


@cache
def path_exists(name: str) -> bool:
    """Whether there is a path of a name, which may be a pattern."""
    return any(ROOT.glob(name))


def test_every_named_path_exists() -> None:
    missing = []
    for path in documents():
        text = docstrings(path)
        for name in {found[1].rstrip(".,-*/") for found in NAMED.finditer(text)}:
            if not path_exists(name):
                missing.append(f"{shown(path)}: {name}")
        homes = (ROOT, PACKAGE, path.parent, ROOT / "tests")
        for name in {found[1] for found in FILE.finditer(text)}:
            if not any((home / name).exists() for home in homes):
                missing.append(f"{shown(path)}: {name}")
    assert not missing, "\n".join(missing)


@cache
def module_exists(name: str) -> bool:
    """Whether a module, or what a module has, is there."""
    parts = name.split(".")
    if ROOT.joinpath(*parts).with_suffix(".pxd").exists():
        return True  # declarations, which may be all there is
    found: object = spaseq
    for number, part in enumerate(parts[1:], 2):
        if not hasattr(found, part):
            try:
                importlib.import_module(".".join(parts[:number]))
            except ImportError:
                return False
        found = getattr(found, part)
    return True


def test_every_named_module_exists() -> None:
    missing = [
        f"{shown(path)}: {name}"
        for path in documents()
        for name in {found[0] for found in MODULE.finditer(docstrings(path))}
        if not module_exists(name)
    ]
    assert not missing, "\n".join(missing)


def test_the_sections_that_docstrings_name_are_in_the_manual() -> None:
    manual = (ROOT / "docs" / "language.md").read_text("utf-8")
    sections = set(re.findall(r"^## (\d)\. ", manual, re.MULTILINE))
    assert sections == set("12345678")
    for path in [*sources(".py", ".pyx", ".pxi", ".lark"), *(ROOT / "tests").rglob("*.py")]:
        text = path.read_text("utf-8")
        for found in re.finditer(r"docs/language\.md,?\s+section\s+(\d+)", text):
            assert found[1] in sections, f"{shown(path)} names section {found[1]}"


def test_no_text_names_a_place_on_somebody_s_machine() -> None:
    for path in texts():
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            found = MACHINE.search(line)
            assert not found, f"{shown(path)}:{number}: {found[0] if found else ''}"
