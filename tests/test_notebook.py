"""The notebook in examples/ runs, prints what is stored in it, and is whole as a page of HTML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
NOTEBOOK = ROOT / "examples" / "notebook" / "patterns.ipynb"

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")
pytest.importorskip("polars")


def texts(notebook: Any) -> list[list[str]]:
    """The outputs of each cell as text."""
    return [
        [output.get("text") or output["data"]["text/plain"] for output in cell.get("outputs", [])]
        for cell in notebook.cells
    ]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the client's own dependencies
def test_the_notebook_prints_what_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    client = pytest.importorskip("nbclient")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    stored = texts(notebook)
    folder = {"metadata": {"path": str(NOTEBOOK.parent)}}
    client.NotebookClient(notebook, timeout=60, resources=folder).execute()
    assert texts(notebook) == stored
    assert any(stored)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_page_shows_tables_and_pictures() -> None:
    nbconvert = pytest.importorskip("nbconvert")
    page, _ = nbconvert.HTMLExporter().from_filename(str(NOTEBOOK))
    for part in ("data:image/svg+xml;base64,", "<caption>", "0 matches", "deepest fall"):
        assert part in page
    assert str(ROOT) not in page
