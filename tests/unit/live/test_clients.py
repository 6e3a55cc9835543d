"""Client libraries: imported when they are used, and named when they are missing."""

from __future__ import annotations

import subprocess
import sys
import tomllib

import pytest
from followed import ROOT

from spaseq.errors import SpaseqError
from spaseq.live import registry

CLIENTS = {
    "kafka://h/t": ("confluent_kafka", "kafka"),
    "mqtt://h/t": ("paho.mqtt.client", "mqtt"),
    "redis://h/t": ("redis", "redis"),
    "nats://h/t": ("nats", "nats"),
    "ws://h/t": ("websockets.sync.client", "websocket"),
    "postgresql://h/t": ("psycopg", "postgresql"),
}
"""URL → (module, extra)."""


@pytest.mark.parametrize("url", CLIENTS)
def test_a_missing_client_says_what_to_install(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, extra = CLIENTS[url]
    for name in list(sys.modules):
        if name == module or name.startswith(f"{module}."):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    wanted = rf"URLs need the package [\w-]+: pip install 'spaseq\[{extra}\]'"
    makers = [lambda: registry.open_source(url, str), lambda: registry.open_sink(url, False)]
    made = [
        maker
        for maker, known in zip(makers, (registry.SOURCES, registry.SINKS), strict=True)
        if registry.scheme_of(url) in known
    ]
    assert made
    for maker in made:
        with pytest.raises(SpaseqError, match=wanted) as caught:
            maker()
        assert "\n" not in str(caught.value)


def test_every_extra_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    for _, extra in CLIENTS.values():
        assert extra in extras
        # The tests need all of them.
        assert set(extras[extra]) <= set(extras["dev"])


def test_no_client_is_imported_before_it_is_used() -> None:
    names = sorted({module.partition(".")[0] for module, _ in CLIENTS.values()} | {"httpx"})
    text = (
        "import sys, spaseq.cli, spaseq.live.session, spaseq.live.registry\n"
        f"print([name for name in {names} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout == "[]\n", done.stderr
