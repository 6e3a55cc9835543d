"""Runs the experiments and writes one page about them.

    python benchmarks/papers/report.py --peers --output report  (make report)
    python benchmarks/papers/report.py --short                  (make papers)

`report/index.html` has a section for each figure: the question, the data, the query, what others
report, what was measured here, and the ratios of this run. Beside it are the pictures as SVG and
the figures as JSON. `--record FILE` also writes the answers and medians into one file, for
`benchmarks/record/`.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from types import ModuleType

from driving import chosen
from figure import Figure, LeftOut, add_peers, rows, text
from plot import svg

from spaseq.parser.layout import laid_out

FOLDER = Path(__file__).parent

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.6 system-ui, sans-serif; max-width: 46rem; margin: 3rem auto; padding: 0 1rem; }
h2 { margin-top: 3.5rem; } pre { white-space: pre-wrap; padding: 0.8rem 1rem; border-radius: 8px;
background: color-mix(in srgb, currentColor 7%, transparent); font-size: 0.85rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.2rem 1rem; }
dt { opacity: 0.65; } dd { margin: 0; } svg { width: 100%; height: auto; }
.answer { font-weight: 600; } summary { cursor: pointer; } details pre { white-space: pre;
overflow-x: auto; }
"""


def scripts() -> list[Path]:
    """The scripts of all publications, in order."""
    return sorted(path for path in FOLDER.glob("*/*.py"))


def module_of(path: Path) -> ModuleType:
    """A script as a module; scripts of several folders may have one name."""
    name = f"{path.parent.name}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def measured(script: str) -> Figure:
    """The short form of a script, such as `core/lengths`."""
    found: Figure = module_of(FOLDER / f"{script}.py").figure(True)
    return found


def section(figure: Figure, path: Path) -> str:
    """One figure as HTML."""
    facts = {"Data": figure.data, "Others": figure.others, "Source": figure.source}
    listed = "".join(f"<dt>{name}</dt><dd>{escape(value)}</dd>" for name, value in facts.items())
    command = f"python benchmarks/papers/{path.relative_to(FOLDER).as_posix()}"
    return (
        f'<h2 id="{figure.name}">{escape(figure.question)}</h2>\n'
        f'<p class="answer">{escape(figure.answer)}</p>\n{svg(figure)}\n<dl>{listed}</dl>\n'
        f"<pre>{escape(laid_out(figure.query).strip())}</pre>\n<pre>{escape(command)}</pre>\n"
        "<details><summary>Values and counts</summary>"
        f"<pre>{escape(rows(figure))}</pre></details>\n"
    )


def circumstances() -> str:
    """The machine, the commit and the time."""
    commit = subprocess.run(
        ["git", "-C", str(FOLDER), "describe", "--always", "--dirty"],
        capture_output=True, text=True, check=False,
    ).stdout.strip()  # fmt: skip
    return (
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, commit {commit or 'unknown'}, "
        f"{os.cpu_count()} cores of {platform.machine()}, load {os.getloadavg()[0]:.1f}, "
        f"Python {platform.python_version()}. Times are processor times; bars show the least and "
        "the greatest of the passes."
    )


def page(sections: list[str], short: bool) -> str:
    size = "Short form: few events and one pass, to see that all runs. " if short else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>spaseq: experiments</title>'
        f"<style>{STYLE}</style></head><body>\n<h1>The experiments of the papers</h1>\n"
        f"<p>{size}{escape(circumstances())}</p>\n" + "\n".join(sections) + "</body></html>\n"
    )


def recorded(figures: list[Figure]) -> dict[str, object]:
    """The answers, and the median at each place."""
    return {
        figure.name: {
            "answer": figure.answer,
            "lines": {
                line.name: {f"{point.x:g}": round(point.median, 3) for point in line.points}
                for line in figure.lines
            },
        }
        for figure in figures
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--short", action="store_true", help="few events and one pass")
    parser.add_argument("--only", nargs="+", default=[], help="folders, such as core")
    add_peers(parser)
    parser.add_argument("--output", metavar="DIR", help="where the page is written")
    parser.add_argument("--record", metavar="FILE", help="write answers and medians as JSON")
    arguments = parser.parse_args()
    figures, sections = [], []
    for path in scripts():
        if arguments.only and path.parent.name not in arguments.only:
            continue
        more = []
        if path.parent.name == "peers":
            if arguments.peers is None:
                print("peers: left out, --peers is not given", end="\n\n")
                continue
            more.append(chosen(arguments.peers))
        try:
            figure: Figure = module_of(path).figure(arguments.short, *more)
        except LeftOut as why:
            print(f"{path.relative_to(FOLDER)}: left out, {why}", end="\n\n")
            continue
        print(text(figure), end="\n\n", flush=True)
        figures.append(figure)
        sections.append(section(figure, path))
        if arguments.output:
            folder = Path(arguments.output)
            folder.mkdir(parents=True, exist_ok=True)
            data = json.dumps(figure.to_dict(), indent=1)
            (folder / f"{figure.name}.json").write_text(data, "utf-8")
            (folder / f"{figure.name}.svg").write_text(svg(figure), "utf-8")
    if arguments.output:
        (Path(arguments.output) / "index.html").write_text(page(sections, arguments.short), "utf-8")
    if arguments.record:
        shown = {"date": f"{datetime.now(UTC):%Y-%m-%d}", "figures": recorded(figures)}
        Path(arguments.record).write_text(json.dumps(shown, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
