"""Inspection of random and damaged logs: equal statistics, and no errors other than typed ones."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import helpers.parity.require_kernel  # noqa: F401 (skips this module if there is no kernel)
from helpers.logs.corrupt_logs import damaged
from helpers.logs.made_logs import logs, tables
from helpers.parity.fuzzing import fuzz
from pyspark_mysqlbinlog.connector.inspection.entries import Entries
from pyspark_mysqlbinlog.connector.inspection.figures.report import report_page
from pyspark_mysqlbinlog.connector.inspection.figures.statistics import LogStatistics, collect
from pyspark_mysqlbinlog.connector.inspection.hexdump import hexdump
from pyspark_mysqlbinlog.connector.inspection.json_lines import json_line
from pyspark_mysqlbinlog.connector.inspection.selection import Selection
from pyspark_mysqlbinlog.connector.inspection.sources import BinlogFiles
from pyspark_mysqlbinlog.connector.inspection.text import line, statements
from pyspark_mysqlbinlog.decoder.kernel.implementation import Implementation, using
from pyspark_mysqlbinlog.errors import MySQLBinlogError

EXAMPLES = 60


def counted(path: Path, implementation: Implementation) -> tuple[LogStatistics, str]:
    """Return the statistics up to the first error, and the text of the error."""
    statistics = LogStatistics()
    with using(implementation):
        source = BinlogFiles([str(path)])
        try:
            collect(source, Selection(), lambda: Entries(source), statistics)
        except MySQLBinlogError as error:
            return statistics, str(error)
    return statistics, ""


def shown(path: Path, form: str, implementation: Implementation) -> list[str]:
    """Return all events in a form, and the text of the error, if any."""
    lines: list[str] = []
    with using(implementation):
        entries = Entries(BinlogFiles([str(path)]))
        try:
            for entry in entries:
                lines.append(line(entry))
                if form == "rows":
                    rows = [*statements(entries, entry)]
                    assert sum(1 for text in rows if ".`" in text) >= entry.rows
                    lines += [*rows, json_line(entries, entry, with_rows=True)]
                if form == "hexdump":
                    dump = [*hexdump(entry, entries.columns(entry))]
                    assert dump
                    lines += dump
        except MySQLBinlogError as error:
            lines.append(str(error))
    return lines


def test_inspection_of_damaged_logs_is_equal_in_both_implementations() -> None:
    @given(st.data(), tables(), st.booleans())
    def run(data: st.DataObject, made: Any, checksum: bool) -> None:
        raw = data.draw(damaged(data.draw(logs(made, checksum=checksum)), checksum=checksum))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "b.000007"
            path.write_bytes(raw)
            compiled, python = counted(path, "c"), counted(path, "python")
            assert compiled == python
            assert report_page(compiled[0])
            for form in ("rows", "hexdump"):
                assert shown(path, form, "c") == shown(path, form, "python")

    fuzz(run, EXAMPLES, share=0.1)
