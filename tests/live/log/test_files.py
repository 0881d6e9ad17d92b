"""Files of a live server's binlog, read by `path`: complete, with one missing, and renamed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql.types import StringType

from helpers.logs.binlog_download import download
from helpers.servers import LocalServer, Server
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.source.batch_reader import MySQLBinlogReader
from pyspark_mysqlbinlog.connector.source.schema import output_schema
from pyspark_mysqlbinlog.errors import BinlogGapError

pytestmark = pytest.mark.one_server

ROTATES = 4


def ids(path: Path, tables: str) -> list[int]:
    """Return the column `id` of the rows at a path."""
    options = parse_options({"path": str(path), "tables": tables, "payload": "json"})
    reader = MySQLBinlogReader(options, output_schema(StringType()))
    return [
        json.loads(row["after"])["id"]
        for part in reader.partitions()
        for batch in reader.read(part)
        for row in batch.to_pylist()
    ]


@pytest.fixture
def files(any_server: Server, any_database: str, tmp_path: Path) -> Sequence[str]:
    """Download five files with a table and a row in each; return their names.

    The last two files are created by rotations in sessions with a timestamp in the past.
    """
    first, _ = any_server.position()
    any_server.rotate()
    any_server.execute(f"CREATE TABLE {any_database}.t (id INT PRIMARY KEY)")
    for n in range(ROTATES + 1):
        any_server.execute(f"INSERT INTO {any_database}.t VALUES ({n})")
        if n < ROTATES:
            clock = "SET timestamp = 1000000000" if n >= ROTATES - 2 else "SET timestamp = DEFAULT"
            any_server.execute(clock, "FLUSH BINARY LOGS")
    names = [name for name, _ in any_server.binlog_files()]
    names = names[names.index(first) + 1 :]
    assert len(names) == ROTATES + 1
    download(any_server, names, tmp_path)
    return names


def test_missing_file_between_others_raises_binlog_gap_error(
    files: Sequence[str], any_database: str, tmp_path: Path
) -> None:
    tables = f"{any_database}.t"
    assert ids(tmp_path, tables) == list(range(ROTATES + 1))
    for n in range(1, ROTATES):
        away = tmp_path / files[n]
        away.rename(tmp_path.parent / away.name)
        with pytest.raises(BinlogGapError) as caught:
            ids(tmp_path, tables)
        assert (
            f"{files[n - 1]} ends with a ROTATE to {files[n]}, which is missing at the path; found"
            f" {files[n + 1]}" in str(caught.value)
        )
        (tmp_path.parent / away.name).rename(away)
    # The last file may be missing, because it may not have been copied yet.
    (tmp_path / files[-1]).unlink()
    assert ids(tmp_path, tables) == list(range(ROTATES))


def test_renamed_files_are_read_only_if_unnumbered_and_consecutive(
    files: Sequence[str], any_database: str, tmp_path: Path
) -> None:
    folder = tmp_path / "renamed"
    for names, are_one in (
        ({0: "mysql-bin.000001", 1: "mysql-bin.000002"}, False),
        ({0: "mysql-bin.000001", 2: "mysql-bin.000002"}, False),
        ({0: "a.binlog", 1: "b.binlog", 2: "c.binlog"}, True),
        ({0: "a.binlog", 2: "b.binlog"}, False),
        # The last file has no ROTATE, but it was not created when the first one ended.
        ({0: "a.binlog", ROTATES: "b.binlog"}, False),
    ):
        folder.mkdir()
        for n, name in names.items():
            shutil.copyfile(tmp_path / files[n], folder / name)
        if are_one:
            assert ids(folder, f"{any_database}.t") == list(names)
        else:
            with pytest.raises(BinlogGapError):
                ids(folder, f"{any_database}.t")
        shutil.rmtree(folder)


def test_truncated_file_yields_whole_transactions_with_a_warning(
    any_server: Server, any_database: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The copy ends anywhere in the second of two transactions, as while the server writes it."""
    any_server.rotate()
    name, _ = any_server.position()
    any_server.execute(f"CREATE TABLE {any_database}.t (id INT PRIMARY KEY) ENGINE=InnoDB")
    ends = []
    for n in range(2):
        any_server.execute(f"INSERT INTO {any_database}.t VALUES ({n})")
        ends.append(any_server.position()[1])
    download(any_server, [name], tmp_path)
    data = (tmp_path / name).read_bytes()
    for length in range(ends[0], ends[1], 3):
        (tmp_path / name).write_bytes(data[:length])
        caplog.clear()
        assert ids(tmp_path, f"{any_database}.t") == [0]
        assert len(caplog.records) == (length > ends[0])
    (tmp_path / name).write_bytes(data[: ends[1]])
    assert ids(tmp_path, f"{any_database}.t") == [0, 1]


@pytest.mark.parametrize("how", ["restart", "crash"])
def test_files_left_by_restarts_are_read_and_checked_for_gaps(
    own_server: LocalServer, tmp_path: Path, how: str
) -> None:
    """The files end without a ROTATE, as the server left them on its disk."""
    own_server.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
    for n in range(3):
        own_server.execute(f"INSERT INTO d.t VALUES ({n})")
        if n < 2:
            own_server.halt() if how == "restart" else own_server.kill()
            own_server.start()
    assert own_server.datadir is not None
    names = [name for name, _ in own_server.binlog_files()]
    for name in names:
        shutil.copyfile(own_server.datadir / name, tmp_path / name)
    assert ids(tmp_path, "d.t") == [0, 1, 2]
    (tmp_path / names[-2]).unlink()
    with pytest.raises(BinlogGapError, match=f"so only {names[-2]} can follow; found {names[-1]}"):
        ids(tmp_path, "d.t")
