"""Hooks of the documentation site (mkdocs.yml): pages outside docs/, links to them, and fences.

The documents are written to be read in the repository too, where a link such as
`../examples/README.md` leads to a file. On the site, such a file is a page, or the link is text.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from pygments import lexers, token
from pygments.lexer import inherit
from pygments.lexers.rdf import SparqlLexer

ROOT = Path(__file__).parent.parent
RENAMED = {
    "README.md": "readme.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
"""Page of the repository → page of the site."""
FOLDERS = ("examples", "ontologies", "benchmarks")
"""Folders whose READMEs are pages of the same path."""
# The languages of the tests' fences, in those that the highlighter knows.
LANGUAGES = {
    "console": "console", "csv": "text", "error": "text", "events": "text", "kb": "text",
    "matches": "text", "sparql": "spaseq", "trig": "turtle",
}  # fmt: skip
_FENCE = re.compile(r"^```(\w+)(?: ([^\n`]+))?$", re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])+)\]\(([^)\s]+)\)")
_CELL = re.compile(r"<td[^>]*>.*?</td>", re.DOTALL)
_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


class SpaseqLexer(SparqlLexer):
    """SPARQL with the keywords of queries over streams."""

    name = "SPAseq"
    aliases = ["spaseq"]  # noqa: RUF012 (as in the base class)
    filenames: list[str] = []  # noqa: RUF012
    tokens = {  # noqa: RUF012
        "root": [
            (
                r"(?i)\b(?:AFTER|DEFINE|EMIT|EVENTS?|EVERY|GPM|LET|MATCH|ON|OVER|PARTITION|PER|QUERY"
                r"|REGISTER|SEQ|SKIP|STREAM|TUMBLING|UNBOUNDED|WITHIN"
                r"|(?:MILLISECOND|SECOND|MINUTE|HOUR|DAY|WEEK)S?)\b",
                token.Keyword,
            ),
            inherit,
        ]
    }


lexers.LEXERS["SpaseqLexer"] = (__name__, SpaseqLexer.name, ("spaseq",), (), ())
lexers._lexer_cache[SpaseqLexer.name] = SpaseqLexer


def _outside() -> dict[str, str]:
    """Path in the repository → path on the site, of the pages outside docs/."""
    pages = dict(RENAMED)
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("README.md")):
            name = path.relative_to(ROOT).as_posix()
            pages[name] = name
    return pages


def on_files(files: Files, config: Any) -> Files:
    """Add the pages outside docs/."""
    for name, page in _outside().items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / name)))
    return files


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    """Show a pipe in the code of a table as one: Markdown needs `\\|` there, and keeps it."""
    return _CELL.sub(lambda cell: cell[0].replace("\\|", "|"), html)


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Rewrite links and fences of a page."""
    outside = _outside()
    sources = {page: name for name, page in outside.items()}
    here = sources.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    pages = {f"docs/{file.src_uri}": file.src_uri for file in files} | outside

    def link(found: re.Match[str]) -> str:
        text, target = found[1], found[2]
        if re.match(r"[a-z]+:|#", target):
            return found[0]
        name, _, anchor = target.partition("#")
        there = posixpath.normpath(posixpath.join(posixpath.dirname(here), name))
        if (ROOT / there).is_dir() and f"{there}/README.md" in pages:
            there += "/README.md"
        if there not in pages:
            return text
        relative = posixpath.relpath(pages[there], posixpath.dirname(page.file.src_uri) or ".")
        return f"[{text}]({relative}{'#' if anchor else ''}{anchor})"

    parts, end = [], 0
    for block in _BLOCK.finditer(markdown):
        parts += [_LINK.sub(link, markdown[end : block.start()]), _FENCE.sub(_fence, block[0])]
        end = block.end()
    return "".join([*parts, _LINK.sub(link, markdown[end:])])


def _fence(found: re.Match[str]) -> str:
    language = LANGUAGES.get(found[1], found[1])
    title = f' title="{found[2]}"' if found[2] else ""
    return f"```{language}{title}"
