"""What a user sees when something is wrong: one line that names it, and what to do.

Each error is provoked on a real server or file and read where a user reads it: in the exception of
the query. `fails` checks the form (one line, our name in front, no cause, no secret), the tests
here what it says.
"""

from __future__ import annotations

import json
import re
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from e2e.conftest import SECRET, Account, ShownError
from pyspark.sql import Row, SparkSession

from servers import MySQL56Server, Server, serve_binlogs
from servers.base import free_port
from servers.captured import CAPTURED
from spark_session import Reads
from waiting import until

Fails = Callable[..., ShownError]
AVAILABLE_NOW = {"availableNow": True}
REPLICATION = "REPLICATION SLAVE, REPLICATION CLIENT ON *.*"


@pytest.fixture(scope="module")
def shop(own_server: Server) -> Server:
    """A server with the table shop.orders and three transactions on it."""
    own_server.execute(
        "CREATE DATABASE shop",
        "CREATE TABLE shop.orders (id INT PRIMARY KEY, note VARCHAR(20))",
        "INSERT INTO shop.orders VALUES (1, 'one')",
        "INSERT INTO shop.orders VALUES (2, 'two')",
        "INSERT INTO shop.orders VALUES (3, 'three')",
    )
    return own_server


@pytest.fixture(params=["stream", "available now", "batch"])
def reading(request: pytest.FixtureRequest, fails: Fails) -> Callable[..., ShownError]:
    """``reading(reads, tables=…)``: the error of a read of this kind."""

    def read(reads: Reads, **options: Any) -> ShownError:
        if request.param == "batch":
            return fails(lambda: reads.batch(**options))
        trigger = AVAILABLE_NOW if request.param == "available now" else None
        return fails(lambda: reads.stream(**options), trigger=trigger)

    return read


def events(server: Server, kind: str) -> list[tuple[str, int, int]]:
    """(file, start, end) of the events of a kind in the server's first file."""
    file = server.binlog_files()[0][0]
    rows = server.execute(f"SHOW BINLOG EVENTS IN '{file}'")
    return [(file, int(row[1]), int(row[4])) for row in rows if row[2] == kind]


# --- the way to the server


def test_wrong_host(shop: Server, account: Account, reading: Callable[..., ShownError]) -> None:
    started = monotonic()
    error = reading(account(shop), host="no-such-host.invalid", tables="shop.orders")
    assert error.name == "ConnectionFailedError"
    assert error.message.startswith("no host of that name: no-such-host.invalid:")
    assert error.message.endswith("check the option host")
    assert monotonic() - started < 15


def test_closed_port(shop: Server, account: Account, reading: Callable[..., ShownError]) -> None:
    port = free_port()
    error = reading(account(shop), port=port, tables="shop.orders")
    assert error.name == "ConnectionFailedError"
    assert f"127.0.0.1:{port} does not answer" in error.message
    assert "Connection refused" in error.message
    assert "3 tries" in error.message


@pytest.fixture
def listener() -> Iterator[Callable[[bytes], int]]:
    """``listener(greeting)``: the port of somebody who says that and nothing more."""
    made: list[socket.socket] = []

    def listen(greeting: bytes) -> int:
        server = socket.create_server(("127.0.0.1", 0))
        made.append(server)

        def accept() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return  # closed: the test is over
                made.append(connection)
                connection.sendall(greeting)

        threading.Thread(target=accept, daemon=True).start()
        port: int = server.getsockname()[1]
        return port

    yield listen
    for made_one in made:
        made_one.close()


@pytest.mark.parametrize(
    ("greeting", "says"),
    [
        (b"", "does not answer while connecting"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "gave an answer that is not MySQL's"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "gave an answer that is not MySQL's"),
        (b"\x05\0\0\0\x0aabcd", "gave an answer that is not MySQL's"),
    ],
    ids=["silence", "ssh", "http", "cut short"],
)
def test_port_of_somebody_else(
    *,
    greeting: bytes,
    says: str,
    listener: Callable[[bytes], int],
    shop: Server,
    account: Account,
    fails: Fails,
) -> None:
    reads, port = account(shop), listener(greeting)
    started = monotonic()
    error = fails(lambda: reads.stream(port=port, tables="shop.orders", connectTimeout="1s"))
    assert error.name == "ConnectionFailedError"
    assert f"127.0.0.1:{port} {says}" in error.message
    assert error.message.endswith("host and port")
    assert monotonic() - started < 20


# --- accounts and settings


def test_wrong_password(shop: Server, account: Account, reading: Callable[..., ShownError]) -> None:
    reads = account(shop, REPLICATION, "SELECT ON *.*")
    reads.options["password"] = SECRET + "not"
    error = reading(reads, tables="shop.orders")
    assert error.name == "AccessDeniedError"
    assert "Access denied for user 'reader_0'" in error.message
    assert error.message.endswith("check the options user and password")


@pytest.mark.parametrize("missing", ["REPLICATION SLAVE", "REPLICATION CLIENT"])
def test_missing_replication_grant(
    missing: str, shop: Server, account: Account, fails: Fails
) -> None:
    (other,) = {"REPLICATION SLAVE", "REPLICATION CLIENT"} - {missing}
    reads = account(shop, f"{other} ON *.*", "SELECT ON shop.*")
    for trigger in (None, AVAILABLE_NOW):
        error = fails(
            lambda: reads.stream(tables="shop.orders", startingOffset="earliest"),
            trigger=trigger,
            checkpoint=None,
        )
        assert error.name == "AccessDeniedError"
        assert "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.*" in error.message
        assert "user and password" not in error.message
    assert fails(lambda: reads.batch(tables="shop.orders")).name == "AccessDeniedError"


def test_missing_select_on_a_named_table(
    shop: Server, account: Account, reading: Callable[..., ShownError]
) -> None:
    here = shop.position()
    reads = account(shop, REPLICATION)
    # From behind its CREATE TABLE, so that only the server could tell its columns.
    error = reading(reads, tables="shop.orders", startingOffset=f"{here[0]}:{here[1]}")
    assert error.name == "UnknownTableError"
    assert "SELECT grant" in error.message
    assert error.message.endswith("(table shop.orders)")


def test_missing_select_under_a_glob_shows_with_the_first_row(
    shop: Server, account: Account, fails: Fails
) -> None:
    reads = account(shop, REPLICATION)
    file, pos = shop.position()
    shop.execute("DELETE FROM shop.orders WHERE id = 3")
    error = fails(lambda: reads.stream(tables="shop.*", startingOffset=f"{file}:{pos}"))
    assert error.name == "UnknownSchemaError"
    assert "shop.orders" in error.message
    assert "GRANT SELECT" in error.message


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("--skip-log-bin", "writes no binlog.*--log-bin"),
        ("--binlog-format=STATEMENT", "binlog_format is STATEMENT"),
        ("--binlog-format=MIXED", "binlog_format is MIXED"),
    ],
)
def test_server_that_logs_no_rows(
    option: str, says: str, mysql56: Server, spark: SparkSession, fails: Fails
) -> None:
    with MySQL56Server([option]) as server:
        server.execute("CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY)")
        reads = Reads(spark, server)
        for error in (
            fails(lambda: reads.stream(tables="shop.orders")),
            fails(lambda: reads.stream(tables="shop.orders"), trigger=AVAILABLE_NOW),
            fails(lambda: reads.batch(tables="shop.orders")),
        ):
            assert error.name == "BinlogSettingsError"
            assert "ROW" in error.message
            assert re.search(says, error.message) is not None


# --- positions


def test_position_inside_an_event(
    shop: Server, account: Account, reading: Callable[..., ShownError]
) -> None:
    reads = account(shop, REPLICATION, "SELECT ON *.*")
    file, start, _ = events(shop, "Write_rows")[1]
    error = reading(reads, tables="shop.orders", startingOffset=f"{file}:{start + 7}")
    assert error.name == "InvalidPositionError"
    assert "no event begins" in error.message
    assert error.message.endswith(f"(at {file}:{start + 7})")


def test_position_past_the_end(
    shop: Server, account: Account, reading: Callable[..., ShownError]
) -> None:
    reads = account(shop, REPLICATION, "SELECT ON *.*")
    file, size = shop.binlog_files()[-1]
    error = reading(reads, tables="shop.orders", startingOffset=f"{file}:{size + 1}")
    assert error.name == "InvalidPositionError"
    assert f"past the end of its file, which has {size} bytes" in error.message
    assert error.message.endswith(f"(at {file}:{size + 1})")


def test_ending_past_the_end(shop: Server, account: Account, fails: Fails) -> None:
    reads = account(shop, REPLICATION, "SELECT ON *.*")
    file, size = shop.binlog_files()[-1]
    error = fails(lambda: reads.batch(tables="shop.orders", endingOffset=f"{file}:{size + 1}"))
    assert error.name == "InvalidPositionError"
    assert error.message.endswith(f"(at {file}:{size + 1})")


def test_ending_in_an_unknown_file(shop: Server, account: Account, fails: Fails) -> None:
    """Its number alone would be that of another file."""
    reads = account(shop, REPLICATION, "SELECT ON *.*")
    place = f"misspelt.{shop.binlog_files()[0][0].rpartition('.')[2]}:4"
    error = fails(lambda: reads.batch(tables="shop.orders", endingOffset=place))
    assert error.name == "BinlogPurgedError"
    assert "the server has no binlog 'misspelt." in error.message
    assert error.message.endswith(f"(at {place})")


@pytest.mark.parametrize("kind", ["Table_map", "Write_rows", "Xid"])
def test_position_in_mid_transaction(
    kind: str, shop: Server, account: Account, reading: Callable[..., ShownError]
) -> None:
    reads = account(shop, REPLICATION, "SELECT ON *.*")
    file, start, _ = events(shop, kind)[1]
    error = reading(reads, tables="shop.orders", startingOffset=f"{file}:{start}")
    assert error.name == "InvalidPositionError"
    assert "lies inside one; give a position between two transactions" in error.message
    assert error.message.endswith(f"(at {file}:{start})")


@pytest.mark.parametrize(
    ("kind", "into", "says"),
    [
        ("Write_rows", 0, "the end lies inside a transaction"),
        ("Xid", 0, "the end lies inside a transaction"),
        ("Xid", 5, "the end lies inside an event"),
    ],
)
def test_ending_in_mid_transaction(
    *, kind: str, into: int, says: str, shop: Server, account: Account, fails: Fails
) -> None:
    reads = account(shop, REPLICATION, "SELECT ON *.*")
    file, start, end = events(shop, kind)[1]
    place = f"{file}:{start + into}"
    error = fails(lambda: reads.batch(tables="shop.orders", endingOffset=place))
    assert error.name == "InvalidPositionError"
    assert says in error.message
    assert error.message.endswith(f"(at {place})")
    if kind == "Xid":
        read = reads.batch(tables="shop.orders", endingOffset=f"{file}:{end}").collect()
        assert [json.loads(row.after)["id"] for row in read] == [1, 2]


def test_unknown_file(shop: Server, account: Account, reading: Callable[..., ShownError]) -> None:
    reads = account(shop, REPLICATION, "SELECT ON *.*")
    error = reading(reads, tables="shop.orders", startingOffset="mysql-bin.000999:4")
    assert error.name == "BinlogPurgedError"
    assert "the server has no binlog 'mysql-bin.000999'" in error.message
    assert "mysql-bin.000001" in error.message


# --- names


def test_unknown_table(shop: Server, account: Account, reading: Callable[..., ShownError]) -> None:
    reads = account(shop, REPLICATION, "SELECT ON *.*")
    error = reading(reads, tables="shop.orders,shop.ordres")
    assert error.name == "UnknownTableError"
    assert "check the spelling" in error.message
    assert error.message.endswith("(table shop.ordres)")


@pytest.mark.parametrize(
    ("given", "meant"),
    [("pasword", "password"), ("startingOfset", "startingOffset"), ("table", "tables")],
)
def test_unknown_option(
    given: str, meant: str, shop: Server, account: Account, reading: Callable[..., ShownError]
) -> None:
    # Its value may be the secret: `fails` looks for it in all that is shown.
    error = reading(account(shop), tables="shop.orders", **{given: SECRET})
    assert error.name == "OptionError"
    assert error.message == f"unknown option {given.lower()!r}: did you mean {meant}?"


def test_wrong_option_shows_what_was_given(
    shop: Server, account: Account, reading: Callable[..., ShownError]
) -> None:
    error = reading(account(shop), tables="shop.orders", heartbeatInterval="soon")
    assert error.name == "OptionError"
    assert "heartbeatInterval" in error.message
    assert error.message.endswith("found 'soon'")


# --- what the log holds


def path_reader(spark: SparkSession, path: Path, tables: str) -> Callable[[], Any]:
    return lambda: spark.read.format("mysqlbinlog").options(path=str(path), tables=tables).load()


def test_statement_format_by_path(spark: SparkSession, fails: Fails) -> None:
    log = CAPTURED / "statements.001.binlog"
    error = fails(path_reader(spark, log, "fx_statements.t"))
    assert error.name == "StatementFormatError"
    assert "'insert into t (v) values (2), (3)'" in error.message
    assert error.message.endswith(f"(at {log.name}:1047, table fx_statements.t)")


@pytest.mark.parametrize("trigger", [None, AVAILABLE_NOW], ids=["default", "available now"])
def test_statement_format_streamed(
    trigger: dict[str, Any] | None,
    serve_captured: Callable[[str], Server],
    spark: SparkSession,
    fails: Fails,
) -> None:
    reads = Reads(spark, serve_captured("statements"))
    rows: list[Row] = []
    error = fails(
        lambda: reads.stream(tables="fx_statements.t", startingOffset="earliest"),
        trigger=trigger,
        rows=rows,
    )
    assert error.name == "StatementFormatError"
    assert error.message.endswith("(at mysql-bin.000002:1047, table fx_statements.t)")
    # What was logged as rows before it is delivered first.
    assert [json.loads(row.after) for row in rows] == [{"id": 1, "v": 1}]


def test_two_phase_xa(
    serve_captured: Callable[[str], Server], spark: SparkSession, fails: Fails
) -> None:
    log = CAPTURED / "transactions.001.binlog"
    by_path = fails(path_reader(spark, log, "fx_transactions.a"))
    reads = Reads(spark, serve_captured("transactions"))
    rows: list[Row] = []
    streamed = fails(
        lambda: reads.stream(tables="fx_transactions.a", startingOffset="earliest"), rows=rows
    )
    for error in (by_path, streamed):
        assert error.name == "UnsupportedTransactionError"
        assert "two-phase XA is not followed yet" in error.message
    assert len(rows) > 0
    assert not any("xa" in (row.after or "") for row in rows)


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A copy of a captured log with one bit flipped inside the values of its first rows event."""
    (tmp_path / "damaged").mkdir()
    copy = tmp_path / "damaged" / "numbers.001.binlog"
    data = bytearray((CAPTURED / copy.name).read_bytes())
    assert data[1017 + 4] == 30  # WRITE_ROWS, 102 bytes
    data[1017 + 60] ^= 1
    copy.write_bytes(data)
    return copy


def test_bad_checksum_by_path(damaged: Path, spark: SparkSession, fails: Fails) -> None:
    error = fails(path_reader(spark, damaged, "fx_numbers.*"))
    assert error.name == "ChecksumError"
    assert "the log is damaged" in error.message
    assert error.message.endswith(f"(at {damaged.name}:1017)")


# What a file can suffer: what is done to its bytes -> the error, and words of it. The first rows
# event is at 1017.
DAMAGES: list[tuple[str, Callable[[bytes], bytes], str, str]] = [
    ("cut in an event", lambda data: data[:1030], "MalformedEventError", "cut short"),
    ("cut in a header", lambda data: data[:1020], "MalformedEventError", "cut short"),
    ("a byte lost", lambda data: data[:1030] + data[1031:], "ChecksumError", "damaged"),
    ("zeroes", lambda data: data[:1017] + bytes(len(data) - 1017), "MalformedEventError", "length"),
    ("encrypted", lambda data: b"\xfdbin" + data[4:], "UnsupportedEventError", "encrypted"),
    ("no binlog", lambda _: b"id,name\n1,alpha\n" * 99, "FormatError", "no binlog"),
    ("empty", lambda _: b"", "FormatError", "no binlog"),
    (
        "an event that claims more than there is",
        lambda data: data[: 1017 + 9] + (1 << 30).to_bytes(4, "little") + data[1017 + 13 :],
        "MalformedEventError",
        "claims 1073741824 bytes",
    ),
]


@pytest.mark.parametrize(
    ("damage", "name", "words"),
    [case[1:] for case in DAMAGES],
    ids=[case[0] for case in DAMAGES],
)
def test_damaged_file(
    damage: Callable[[bytes], bytes],
    name: str,
    words: str,
    *,
    tmp_path: Path,
    spark: SparkSession,
    fails: Fails,
) -> None:
    copy = tmp_path / "numbers.001.binlog"
    copy.write_bytes(damage((CAPTURED / copy.name).read_bytes()))
    error = fails(path_reader(spark, copy, "fx_numbers.*"))
    assert error.name == name
    assert words in error.message
    assert copy.name in error.message


def test_table_map_that_does_not_fit(tmp_path: Path, spark: SparkSession, fails: Fails) -> None:
    """A log whose CREATE TABLE says something else than its table maps."""
    copy = tmp_path / "gtid_no_checksum.001.binlog"  # without checksums, bytes can be changed
    data = (CAPTURED / copy.name).read_bytes()
    assert data.count(b"v varchar(30)") == 1
    copy.write_bytes(data.replace(b"v varchar(30)", b"v varchar(99)"))
    error = fails(path_reader(spark, copy, "fx_gtid_no_checksum.*"))
    assert error.name == "SchemaMismatchError"
    assert "column 2 `v`: expected" in error.message
    assert "table fx_gtid_no_checksum.t" in error.message


def test_bad_checksum_streamed(
    damaged: Path, mysql56: Server, spark: SparkSession, fails: Fails
) -> None:
    with serve_binlogs([damaged]) as server:
        reads = Reads(spark, server)
        options = {"tables": "fx_numbers.*", "startingOffset": "earliest"}
        for error in (
            fails(lambda: reads.stream(**options)),
            fails(lambda: reads.stream(**options), trigger=AVAILABLE_NOW),
            fails(lambda: reads.batch(**options)),
        ):
            assert error.name == "ChecksumError"
            assert error.message.endswith("(at mysql-bin.000002:1017)")


def test_a_column_that_the_struct_lacks(shop: Server, account: Account, fails: Fails) -> None:
    shop.execute("CREATE TABLE shop.altered (id INT PRIMARY KEY)")
    reads = account(shop, REPLICATION, "SELECT ON *.*")
    rows: list[Row] = []

    def change() -> None:
        until(lambda: len(shop.dump_threads()) > 0, "the stream has not connected")
        shop.execute(
            "INSERT INTO shop.altered VALUES (1)",
            "ALTER TABLE shop.altered ADD COLUMN more INT",
            "INSERT INTO shop.altered VALUES (2, 2)",
        )

    stream = reads.stream(tables="shop.altered", payload="struct")
    error = fails(lambda: stream, rows=rows, started=change)
    assert error.name == "SchemaChangedError"
    assert error.message.startswith("column `more` (int) is in the table from here on")
    assert "restart the query" in error.message
    assert "table shop.altered" in error.message
    assert [row.after.asDict() for row in rows] == [{"id": 1}]


# --- checkpoints


@pytest.fixture
def checkpoint(shop: Server, account: Account, tmp_path: Path) -> tuple[Reads, Path]:
    """A checkpoint of a query on shop.orders that has delivered something."""
    reads = account(shop, REPLICATION, "SELECT ON *.*")
    shop.execute("REPLACE INTO shop.orders VALUES (100, LEFT(UUID(), 20))")
    path = tmp_path / "checkpoint"
    delivered = reads.available_now(path, tables="shop.orders", startingOffset="earliest")
    assert any(delivered)
    return reads, path


def rewrite_newest_offset(checkpoint: Path, **changes: Any) -> None:
    newest = max((checkpoint / "offsets").glob("[0-9]*"), key=lambda file: int(file.name))
    *head, last = newest.read_text().splitlines()
    newest.write_text("\n".join([*head, json.dumps(json.loads(last) | changes)]))
    newest.with_name(f".{newest.name}.crc").unlink(missing_ok=True)


@pytest.mark.parametrize("trigger", [None, AVAILABLE_NOW], ids=["default", "available now"])
@pytest.mark.parametrize(
    ("changes", "name", "says"),
    [
        ({"v": 2}, "OffsetError", "written by a newer pyspark-mysqlbinlog: upgrade"),
        ({"pos": 1 << 30}, "InvalidPositionError", "lost its tail"),
    ],
    ids=["newer version", "past the end"],
)
def test_checkpoint_that_does_not_fit(
    *,
    changes: dict[str, Any],
    name: str,
    says: str,
    trigger: dict[str, Any] | None,
    checkpoint: tuple[Reads, Path],
    fails: Fails,
) -> None:
    reads, path = checkpoint
    rewrite_newest_offset(path, **changes)
    error = fails(lambda: reads.stream(tables="shop.orders"), trigger=trigger, checkpoint=path)
    assert error.name == name
    assert says in error.message


@pytest.mark.parametrize("trigger", [None, AVAILABLE_NOW], ids=["default", "available now"])
def test_checkpoint_of_another_server(
    *,
    trigger: dict[str, Any] | None,
    checkpoint: tuple[Reads, Path],
    shop: Server,
    mysql56: Server,
    account: Account,
    fails: Fails,
) -> None:
    _, path = checkpoint
    reads = account(mysql56, REPLICATION, "SELECT ON *.*")
    error = fails(lambda: reads.stream(tables="shop.orders"), trigger=trigger, checkpoint=path)
    assert error.name == "ServerError"
    for server in (shop, mysql56):
        assert server.execute("SELECT @@server_uuid")[0][0] in error.message
    assert "new checkpoint" in error.message


@pytest.mark.parametrize("trigger", [None, AVAILABLE_NOW], ids=["default", "available now"])
def test_checkpoint_whose_file_was_purged(
    trigger: dict[str, Any] | None,
    checkpoint: tuple[Reads, Path],
    shop: Server,
    fails: Fails,
    tmp_path: Path,
) -> None:
    reads, path = checkpoint
    file = shop.binlog_files()[-1][0]
    kept = tmp_path / "kept"
    shutil.copytree(path, kept)
    shop.rotate()
    shop.rotate()
    shop.execute(f"PURGE BINARY LOGS TO '{shop.binlog_files()[-1][0]}'")
    assert file not in [name for name, _ in shop.binlog_files()]
    error = fails(lambda: reads.stream(tables="shop.orders"), trigger=trigger, checkpoint=kept)
    assert error.name == "BinlogPurgedError"
    assert "the server no longer has this binlog" in error.message
    assert "new checkpoint" in error.message
    assert f"at {file}:" in error.message
