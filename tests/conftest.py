"""The options of the test suite, and the folder of its data."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from endpoints import RealServer, real_server
from hypothesis import settings

# No deadline for an example, since its time depends on the load of the machine. In CI the examples
# are the same in every run of a commit; longer runs (SPASEQ_EXAMPLES) draw new ones.
settings.register_profile("any", deadline=None)
settings.register_profile("ci", derandomize=True, deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "any")

# Tests start the command line hundreds of times. Without kept bytecode, each start compiles the
# whole package again, which doubles its time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# An empty value counts as unset.
if not os.environ.get("SPASEQ_DATA"):
    os.environ.pop("SPASEQ_DATA", None)

# `--quick` omits these: they start processes or servers, or repeat other tests on large inputs.
NOT_QUICK = (
    "spark/",
    "test_aarhus_example.py",
    "test_benchmarks.py",
    "test_docs.py",
    "test_examples.py",
    "test_other_server.py",
    "test_remote_kb.py",
    "test_stubs.py",
    "unit/engine/test_core_large.py",
    "unit/engine/test_core_many_groups.py",
    "unit/engine/test_kb_joins.py",
    "unit/gpm/test_graph_views.py",
)
QUICK_EXAMPLES = "15"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite the golden files under tests/golden from the current results",
    )
    parser.addoption(
        "--quick", action="store_true", help="run the most effective tests only, in 90 seconds"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Reduce the number of generated cases under `--quick`, before a test module reads it."""
    if config.getoption("--quick"):
        os.environ.setdefault("SPASEQ_EXAMPLES", QUICK_EXAMPLES)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Omit the slow tests under `--quick`."""
    if not config.getoption("--quick"):
        return None
    path = collection_path.relative_to(Path(__file__).parent).as_posix()
    return True if f"{path}/".startswith(NOT_QUICK) or path.startswith(NOT_QUICK) else None


def pytest_collection_finish() -> None:
    """Leave the tests themselves, of which there are tens of thousands, out of all collections.

    Otherwise each `gc.collect` of a test or a benchmark visits them, which takes half a second.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether to rewrite golden files instead of comparing them."""
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
