"""The lines that a source's process writes to stderr, with and without configured logging."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from helpers.servers import Server
from helpers.waiting import patience

PROGRAM = """
import json, logging, sys
from pyspark.sql.types import StringType
if sys.argv[2] == "configured":
    logging.basicConfig(level="INFO", format="mine %(message)s")
before = list(logging.getLogger().handlers), logging.getLogger().level
from pyspark_mysqlbinlog.connector.source.schema import output_schema
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.source.stream_reader import MySQLBinlogStreamReader
options = parse_options(json.loads(sys.argv[1]))
for _ in range(2):
    reader = MySQLBinlogStreamReader(options, output_schema(StringType()))
start = reader.initialOffset()
for _ in range(3):
    assert reader.latestOffset(start, reader.getDefaultReadLimit()) == start
print(start["file"] + ":" + str(start["pos"]))
assert (logging.getLogger().handlers, logging.getLogger().level) == before
"""


@pytest.fixture
def started(any_server: Server, table: str, request: pytest.FixtureRequest) -> tuple[str, str]:
    """Return stdout and stderr of a source's process."""
    options = any_server.options(tables=table, payload="json")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(options), request.param],
        capture_output=True,
        text=True,
        timeout=patience(300),
        check=True,
    )
    return done.stdout.strip(), done.stderr


@pytest.mark.parametrize("started", ["untouched"], indirect=True)
def test_stream_start_is_logged_in_one_line_with_time_level_and_logger(
    any_server: Server, table: str, started: tuple[str, str]
) -> None:
    position, lines = started
    found = re.findall(r"(?m)^.* pyspark_mysqlbinlog: .*$", lines)
    assert len(found) == 1
    expected = (
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} INFO pyspark_mysqlbinlog: reading "
        rf"{any_server.host}:{any_server.port} \(version ([^)]+)\) from {re.escape(position)}:"
        rf" tables {re.escape(table)}, payload json, decoder (c \(.*\)|python)"
    )
    match = re.fullmatch(expected, found[0])
    assert match is not None, found[0]
    assert any_server.version() in match[1]


@pytest.mark.parametrize("started", ["configured"], indirect=True)
def test_configured_logging_format_is_used(started: tuple[str, str]) -> None:
    _, lines = started
    assert lines.count("reading ") == lines.count("mine reading ") == 1
