"""A server with its console, and a browser that looks at it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
)


def browser_path() -> str | None:
    """The Chromium of this machine."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    """A browser; while it is open, no other event loop can run in this thread."""
    from playwright.sync_api import sync_playwright

    path = browser_path()
    if path is None:
        pytest.skip("no Chromium: install the Debian package chromium")
    arguments = [*ARGUMENTS, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=path, args=arguments)
        yield made
        made.close()


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a server of its own, with the tokens of the parameter."""
    process = subprocess.Popen(
        [sys.executable, "-m", "spaseq", "serve", "--listen", "127.0.0.1:0", "--manage"],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "SPASEQ_TOKENS": getattr(request, "param", "")},
    )
    assert process.stderr is not None
    url = ""
    for line in process.stderr:
        if "listening at " in line:
            url = line.split("listening at ")[1].strip()
            break
    assert url, "the server did not start"
    yield url
    process.terminate()
    process.communicate(timeout=30)
