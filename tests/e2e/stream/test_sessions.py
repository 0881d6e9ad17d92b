"""Equal rows and errors in classic, Spark Connect and cluster sessions.

Both implementations are compared; the errors are read from what each session prints.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from helpers.servers import Server
from helpers.snapshots.connect_turn import connect_turn
from helpers.waiting import patience
from pyspark_mysqlbinlog.decoder.kernel.implementation import VARIABLE, implementation

_SCRIPT = Path(__file__).parents[2] / "helpers" / "streams" / "session_reads.py"
_ROWS = 3000


@pytest.fixture(scope="module")
def table(live_server: Server) -> str:
    """Create a table and make a few thousand changes in small and large transactions."""
    live_server.execute(
        "DROP DATABASE IF EXISTS sessions",
        "CREATE DATABASE sessions DEFAULT CHARACTER SET utf8mb4",
        "CREATE TABLE sessions.t"
        " (id INT PRIMARY KEY, v VARCHAR(40), n DECIMAL(30,4), d DATETIME(6))",
    )
    for first in range(0, _ROWS, 500):
        rows = ", ".join(
            f"({number}, 'ñ {number}', {number}.5, '2026-01-01 00:00:00.000001')"
            for number in range(first, first + 500)
        )
        live_server.execute(f"INSERT INTO sessions.t VALUES {rows}")
    for number in range(50):
        live_server.execute(f"UPDATE sessions.t SET v = '漢 {number}' WHERE id = {number}")
    live_server.execute(
        "CREATE TABLE sessions.`a date` (id INT PRIMARY KEY, d DATETIME)",
        "SET SESSION sql_mode = ''",
        "INSERT INTO sessions.`a date` VALUES (1, '0000-00-00')",
    )
    return "sessions.t"


def _failing(server: Server) -> dict[str, dict[str, Any]]:
    """Return reads that fail in planning, on the driver and in a task, and two of other sources."""
    options = server.options(startingOffset="earliest", payload="struct")
    in_task = options | {"tables": "sessions.`a date`", "zeroDates": "fail"}
    no_file = options | {"tables": "sessions.t", "startingOffset": "none.000001:4"}
    return {
        "an option, batch": {"options": options | {"hots": "x"}},
        "an option, stream": {"options": options | {"hots": "x"}, "sink": "noop"},
        "driver, batch": {"options": no_file},
        "driver, stream": {"options": no_file, "sink": "noop"},
        "task, batch": {"options": in_task},
        "task, stream": {"options": in_task, "sink": "noop"},
        "task, foreachBatch": {"options": in_task, "sink": "foreachBatch"},
        "analysis of another": {"options": {}, "query": "SELECT nope"},
        "task of another": {"options": {}, "query": "SELECT raise_error('no')"},
    }


def _run(
    kind: str,
    server: Server,
    table: str,
    folder: Path,
    environment: dict[str, str],
    *,
    failing: dict[str, Any] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run the script with these environment variables, and without MYSQLBINLOG_IMPL otherwise."""
    options = server.options(
        tables=table,
        payload="struct",
        startingOffset="earliest",
        # Many ranges, some of them inline and some fetched.
        maxBytesPerTrigger="100k",
        targetPartitionBytes="10k",
    )
    folder.mkdir()
    settings = folder / "settings.json"
    given = {"options": options, "folder": str(folder), "failing": failing or {}}
    settings.write_text(json.dumps(given), encoding="utf-8")
    inherited = {name: value for name, value in os.environ.items() if name != VARIABLE}
    with connect_turn() if kind == "connect" else nullcontext():
        return subprocess.run(
            [sys.executable, str(_SCRIPT), kind, str(settings)],
            env=inherited | environment,
            capture_output=True,
            text=True,
            timeout=patience(900),
            check=False,
        )


def _read(kind: str, server: Server, table: str, folder: Path) -> list[list[str]]:
    """Return the rows of a batch and a stream by the tested implementation; check the errors."""
    done = _run(kind, server, table, folder, {VARIABLE: implementation()}, failing=_failing(server))
    assert done.returncode == 0, done.stderr[-4000:]
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    _check_causes({line["read"]: line["cause"] for line in lines})
    return _rows(done)


def _check_causes(causes: dict[str, Any]) -> None:
    """Check what `cause_of` returns for each read of `_failing`."""
    for name in ("an option, batch", "an option, stream"):
        assert causes.pop(name) == {
            "class": "OptionError",
            "message": "unknown option 'hots': did you mean host?",
            "file": None,
            "position": None,
            "table": None,
        }
    for name in ("driver, batch", "driver, stream"):
        cause = causes.pop(name)
        assert cause["class"] == "BinlogPurgedError", cause
        assert cause["message"].startswith("the server has no binlog 'none.000001'"), cause
        assert (cause["file"], cause["position"], cause["table"]) == ("none.000001", 4, None)
    for name in ("task, batch", "task, stream", "task, foreachBatch"):
        cause = causes.pop(name)
        assert cause["class"] == "UnrepresentableValueError", cause
        assert "0000-00-00" in cause["message"], cause
        assert cause["position"] > 4, cause
        assert cause["table"] == "sessions.a date", cause
    assert causes == {"analysis of another": None, "task of another": None}


def _rows(done: subprocess.CompletedProcess[str]) -> list[list[str]]:
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]


@pytest.fixture(scope="module")
def rows(live_server: Server, table: str, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the rows of a classic local session; batch and stream are equal."""
    folder = tmp_path_factory.mktemp("sessions") / "local"
    batch, stream = _read("local", live_server, table, folder)
    assert len(batch) == _ROWS + 50
    assert stream == batch
    return batch


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", ["connect", "cluster"])
def test_every_kind_of_session_gives_the_same_rows_and_errors(
    live_server: Server, table: str, rows: list[str], tmp_path: Path, kind: str
) -> None:
    assert _read(kind, live_server, table, tmp_path / kind) == [rows, rows]


def test_python_implementation_gives_the_same_rows_and_logs_a_warning(
    live_server: Server, table: str, rows: list[str], without_kernel: Path, tmp_path: Path
) -> None:
    path = {"PYTHONPATH": str(without_kernel)}
    done = _run("local", live_server, table, tmp_path / "reads", path)
    assert done.returncode == 0, done.stderr[-4000:]
    assert _rows(done) == [rows, rows]
    assert "RuntimeWarning: pyspark-mysqlbinlog decodes in pure Python" in done.stderr


def test_unknown_implementation_in_the_environment_raises_option_error(
    live_server: Server, table: str, tmp_path: Path
) -> None:
    done = _run("local", live_server, table, tmp_path / "misspelt", {VARIABLE: "cpp"})
    assert done.returncode != 0
    assert "OptionError: the environment variable MYSQLBINLOG_IMPL must be c or" in done.stderr
