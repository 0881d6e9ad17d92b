"""Memory stays bounded, whatever the size of the backlog, of a transaction or of a row.

The query runs in its own driver, into Spark's noop sink. The resident memory of every Python
process below it is sampled.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from helpers.servers import MySQL56Server, Server
from helpers.streams.forked_python import REAL_PYTHON

_LOG = logging.getLogger(__name__)
_SCRIPT = Path(__file__).parents[2] / "helpers" / "streams" / "noop_driver.py"
_MB = 1 << 20
_DRIVER = "python_streaming_source_runner"

# Ends each test with the reason if MySQL 5.6 is missing; each test starts its own server.
pytestmark = pytest.mark.usefixtures("mysql56")


def _status(pid: str) -> tuple[str, int, int]:
    """Return (command line, parent, resident bytes) of a process."""
    folder = Path("/proc") / pid
    command = folder.joinpath("cmdline").read_bytes().replace(b"\0", b" ").decode()
    fields = dict(line.split(":", 1) for line in folder.joinpath("status").read_text().splitlines())
    resident = int(fields.get("VmRSS", "0 kB").split()[0]) * 1024
    return command, int(fields["PPid"]), resident


def _below(root: int) -> dict[str, list[int]]:
    """Return the resident bytes of the driver's and the workers' Python processes below `root`."""
    found: dict[int, tuple[str, int, int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                found[int(entry.name)] = _status(entry.name)
            except (OSError, KeyError):
                continue  # it has ended meanwhile
    family = {root}
    grown = True
    while grown:
        more = {pid for pid, (_, parent, _) in found.items() if parent in family} - family
        family |= more
        grown = bool(more)
    memory: dict[str, list[int]] = {"driver": [], "worker": []}
    for pid in family - {root}:
        command, _, resident = found[pid]
        if _DRIVER in command:
            memory["driver"].append(resident)
        elif "pyspark.daemon" in command:
            memory["worker"].append(resident)
    return memory


def _run(server: Server, folder: Path, **options: Any) -> dict[str, Any]:
    """Stream the binlog into the noop sink; return rows, seconds and the peak MB of processes."""
    given = {
        "host": server.host,
        "port": server.port,
        "user": server.user,
        "password": server.password,
        "tables": "big.t",
        "startingOffset": "earliest",
    }
    settings = folder / "settings.json"
    checkpoint = str(folder / "checkpoint")
    settings.write_text(json.dumps({"options": given | options, "checkpoint": checkpoint}))
    peak = {"driver": 0, "worker": 0}
    started = time.monotonic()
    with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        command = [sys.executable, str(_SCRIPT), str(settings)]
        with subprocess.Popen(
            command, stdout=out, stderr=err, env=os.environ | REAL_PYTHON
        ) as process:
            while process.poll() is None:
                for kind, sizes in _below(process.pid).items():
                    peak[kind] = max([peak[kind], *sizes])
                time.sleep(0.1)
    assert process.returncode == 0, (folder / "err").read_text()[-4000:]
    result: dict[str, Any] = json.loads((folder / "out").read_text().splitlines()[-1])
    result |= {f"{kind} MB": round(size / _MB) for kind, size in peak.items()}
    result["seconds"] = round(time.monotonic() - started)
    _LOG.info("%s: %s", folder.name, result)
    return result


def _big(server: Server, columns: str) -> None:
    server.execute(
        "CREATE DATABASE big DEFAULT CHARACTER SET latin1",
        f"CREATE TABLE big.t (id INT PRIMARY KEY AUTO_INCREMENT, {columns}) ENGINE=MyISAM",
    )


def _check(result: dict[str, Any], rows: int) -> None:
    assert result["rows"] == rows
    # A lower bound, too: if no process was found, every upper bound would hold.
    assert 30 < result["driver MB"] < 300, result
    assert 30 < result["worker MB"] < 400, result


_OPTIONS = ["--max-allowed-packet=256M", "--max-binlog-size=1G"]


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("payload", ["json", "struct"])
def test_backlog_of_two_gigabytes_keeps_memory_bounded(tmp_path: Path, payload: str) -> None:
    with MySQL56Server(options=_OPTIONS) as server:
        _big(server, "v LONGTEXT")
        for _ in range(200):
            server.execute(
                "INSERT INTO big.t (v) VALUES " + ",".join(["(REPEAT('abcdefghij', 10000))"] * 100)
            )
        _check(_run(server, tmp_path, payload=payload), 20_000)


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_transaction_of_one_gigabyte_keeps_memory_bounded(tmp_path: Path) -> None:
    with MySQL56Server(options=_OPTIONS) as server:
        _big(server, "v LONGTEXT")
        server.execute("ALTER TABLE big.t ENGINE=InnoDB")
        with server.connect(autocommit=False) as connection, connection.cursor() as cursor:
            for _ in range(100):
                cursor.execute(
                    "INSERT INTO big.t (v) VALUES "
                    + ",".join(["(REPEAT('abcdefghij', 10000))"] * 100)
                )
            connection.commit()
        server.execute("INSERT INTO big.t (v) VALUES ('after it')")
        start = "mysql-bin.000001:" + str(_position_after_ddl(server))
        _check(_run(server, tmp_path, startingOffset=start), 10_001)


def _position_after_ddl(server: Server) -> int:
    rows = server.execute("SHOW BINLOG EVENTS LIMIT 20")
    return max(int(row[4]) for row in rows if str(row[5]).startswith("ALTER TABLE"))


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("payload", ["json", "struct"])
def test_rows_of_twenty_megabytes_keep_memory_bounded(tmp_path: Path, payload: str) -> None:
    with MySQL56Server(options=_OPTIONS) as server:
        _big(server, "v LONGTEXT")
        for _ in range(20):
            server.execute("INSERT INTO big.t (v) VALUES (REPEAT('abcdefghij', 2000000))")
        server.execute("UPDATE big.t SET v = CONCAT('x', v) WHERE id <= 5")
        _check(_run(server, tmp_path, payload=payload), 25)


def test_small_buffer_with_larger_backlog_keeps_memory_bounded(tmp_path: Path) -> None:
    """The short form: a backlog of 120 MB that contains rows of 5 MB."""
    with MySQL56Server(options=_OPTIONS) as server:
        _big(server, "v LONGTEXT")
        for _ in range(8):
            server.execute(
                "INSERT INTO big.t (v) VALUES " + ",".join(["(REPEAT('abcdefghij', 10000))"] * 100)
            )
            server.execute("INSERT INTO big.t (v) VALUES (REPEAT('abcdefghij', 500000))")
        _check(_run(server, tmp_path, bufferBytes="8m"), 808)
