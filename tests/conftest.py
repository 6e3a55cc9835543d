"""Options of the whole test suite, and where its data is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from endpoints import RealServer, real_server
from hypothesis import settings

# How long an example takes says how busy the machine is. In CI, one verdict for one commit: what is
# drawn anew belongs to longer runs (SPASEQ_EXAMPLES).
settings.register_profile("any", deadline=None)
settings.register_profile("ci", derandomize=True, deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "any")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite the golden files under tests/golden from what the code gives now",
    )


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be rewritten, not compared."""
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture(scope="session")
def data_directory() -> Path:
    """The directory of the published test data, named by SPASEQ_DATA."""
    path = os.environ.get("SPASEQ_DATA")
    if path is None:
        pytest.skip("SPASEQ_DATA does not name the directory of the test data")
    return Path(path)


@pytest.fixture(scope="session")
def sparql_server() -> Iterator[RealServer]:
    """A SPARQL server that really runs."""
    with real_server() as server:
        yield server
