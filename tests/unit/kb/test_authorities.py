"""Clients share one context of trusted authorities."""

from __future__ import annotations

import ssl
from pathlib import Path

import certifi
import pytest

from spaseq.kb.authorities import default_trust
from spaseq.kb.client import Client
from spaseq.kb.endpoint import Endpoint
from spaseq.kb.public_transport import PublicTransport
from spaseq.live.web import http_client, web_address


def test_the_authorities_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    trust = default_trust()
    monkeypatch.setattr(ssl, "create_default_context", None)
    Client(Endpoint("https://example.org/sparql")).close()
    PublicTransport().close()
    http_client(web_address("https://example.org/events", ())).close()
    assert default_trust() is trust


def test_they_are_those_that_the_environment_names(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    every = default_trust().cert_store_stats()["x509_ca"]
    first, _, _ = Path(certifi.where()).read_text("utf-8").partition("-----END CERTIFICATE-----")
    (tmp_path / "one.pem").write_text(f"{first}-----END CERTIFICATE-----\n", "utf-8")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "one.pem"))
    assert default_trust().cert_store_stats()["x509_ca"] == 1 < every
