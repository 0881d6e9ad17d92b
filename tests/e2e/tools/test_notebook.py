"""The notebook in examples/, run as a whole; its last cell compares its rows with SELECT."""

from __future__ import annotations

import pytest
from nbclient import NotebookClient
from nbformat import read

from helpers.servers import Server
from helpers.tools.documents_shop import ROOT
from helpers.waiting import patience

NOTEBOOK = ROOT / "examples" / "first_stream.ipynb"


def test_notebook_shows_the_changes(live_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in live_server.options().items():
        monkeypatch.setenv(f"MYSQL_{name.upper()}", value)
    # nbformat has no annotations.
    notebook = read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
    NotebookClient(notebook, timeout=patience(120), kernel_name="python3").execute()
    live_server.execute("DROP DATABASE notebook")
    shown = [
        "".join(output.get("text", "") for output in cell.outputs)
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]
    batch, stream, rows = map(_cells, shown[2:])
    assert [row[:3] for row in batch] == [
        ["c", "NULL", "{1, placed, 83.20}"],
        ["c", "NULL", "{2, placed, 12.00}"],
        ["u", "{1, placed, 83.20}", "{1, paid, 83.20}"],
        ["d", "{2, placed, 12.00}", "NULL"],
    ]
    assert stream == [
        ["c", "{3, placed, 5.00}"],
        ["c", "{4, placed, 7.50}"],
        ["u", "{3, placed, 6.00}"],
    ]
    assert rows == [["1", "paid", "83.20"], ["3", "placed", "6.00"], ["4", "placed", "7.50"]]


def _cells(shown: str) -> list[list[str]]:
    """Return the rows of a table that DataFrame.show has printed."""
    rows = [line for line in shown.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[1:]]
