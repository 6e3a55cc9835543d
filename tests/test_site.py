"""The documentation site: it builds without a warning, and every link inside it leads somewhere.

It takes about six seconds of processor time, because the whole site is built.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parent.parent
_IDS = re.compile(r"""\bid="([^"]+)"|<a[^>]*\bname="([^"]+)\"""")
_TARGETS = re.compile(r"""(?:href|src)="([^"]+)\"""")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if find_spec("mkdocs") is None or find_spec("mkdocstrings") is None:
        pytest.skip("the site needs the extra docs")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


def test_links_lead_somewhere(site: Path) -> None:
    names: dict[Path, set[str]] = {}

    def anchors(path: Path) -> set[str]:
        if path not in names:
            found = _IDS.findall(path.read_text("utf-8"))
            names[path] = {one or other for one, other in found}
        return names[path]

    links = 0
    for page in sorted(site.rglob("*.html")):
        if page.name == "404.html":
            continue  # its links are absolute, for a server
        for target in _TARGETS.findall(page.read_text("utf-8")):
            url = urlsplit(target)
            if url.scheme or url.netloc:
                continue
            there = (page.parent / unquote(url.path)).resolve() if url.path else page
            if there.is_dir():
                there /= "index.html"
            assert there.is_file(), f"{page.relative_to(site)}: {target}"
            if url.fragment and there.suffix == ".html":
                known = anchors(there)
                assert unquote(url.fragment) in known, f"{page.relative_to(site)}: {target}"
            links += 1
    assert links > 1000


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    """Fonts and scripts are the site's own; links of people to follow are not loaded."""
    for page in site.rglob("*.html"):
        loaded = re.findall(
            r"<(?:script|img|iframe)[^>]*src=\"(https?:[^\"]+)", page.read_text("utf-8")
        )
        loaded += re.findall(
            r"<link[^>]*stylesheet[^>]*href=\"(https?:[^\"]+)", page.read_text("utf-8")
        )
        assert not loaded, page


def test_the_reference_has_the_public_names(site: Path) -> None:
    import spaseq

    text = (site / "reference" / "index.html").read_text("utf-8")
    missing = [name for name in spaseq.__all__ if f'id="spaseq.{name}"' not in text]
    assert not missing
    assert (site / "search" / "search_index.json").stat().st_size > 100_000
