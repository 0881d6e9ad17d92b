"""Server restarts during a stream, and the server's list of its replicas."""

from __future__ import annotations

import json
import logging
import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from helpers.servers import LocalServer, Server
from helpers.streams.source_runner import Offset, Spark
from helpers.waiting import wait_until
from live.conftest import NewStream
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.errors import AccessDeniedError, LostConnectionError
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient

pytestmark = pytest.mark.one_server

# A table that is opened again gets a new table id.
REOPEN = "FLUSH NO_WRITE_TO_BINLOG TABLES"


@pytest.fixture
def shop(own_server: LocalServer) -> LocalServer:
    """Return a server with two tables."""
    own_server.execute(
        "CREATE DATABASE shop",
        "CREATE TABLE shop.sold (id INT PRIMARY KEY)",
        "CREATE TABLE shop.lent (back DATE, id INT PRIMARY KEY)",
    )
    return own_server


def sell(server: Server, *numbers: int) -> None:
    for number in numbers:
        server.execute(f"{REOPEN} shop.sold", f"INSERT INTO shop.sold VALUES ({number})")


def lend(server: Server, *numbers: int) -> None:
    for number in numbers:
        insert = f"INSERT INTO shop.lent VALUES ('2021-02-03', {number})"
        server.execute(f"{REOPEN} shop.lent", insert)


def table_ids(server: Server) -> dict[str, set[int]]:
    """Return the ids of each table in each binlog file: `file table` -> table ids."""
    found: dict[str, set[int]] = {}
    for file, _ in server.binlog_files():
        for row in server.execute(f"SHOW BINLOG EVENTS IN '{file}'"):
            if row[2] == "Table_map":
                match = re.match(r"table_id: (\d+) \((?:shop|elsewhere)\.(\w+)\)", str(row[5]))
                assert match is not None, row
                found.setdefault(f"{file} {match[2]}", set()).add(int(match[1]))
    return found


def open_tables_until(server: Server, number: int) -> None:
    """Open a table of another database until it has had this table id in the current file."""
    server.execute("CREATE DATABASE elsewhere", "CREATE TABLE elsewhere.t (id INT)")
    file = server.position()[0]

    def opened() -> bool:
        server.execute(f"{REOPEN} elsewhere.t", "INSERT INTO elsewhere.t VALUES (1)")
        return max(table_ids(server)[f"{file} t"]) >= number

    wait_until(opened, "the server has opened as many tables")


def read_rows(stream: Spark, start: Offset, count: int) -> tuple[list[tuple[str, object]], Offset]:
    """Return (table, image) of the next rows, and the offset after them."""
    rows: list[tuple[str, object]] = []
    while len(rows) < count:
        end = stream.next_batch(start)
        found = stream.rows(start, end)
        rows += [(row["table"], json.loads(row["after"])) for row in found]
        start = end
    return rows, start


@pytest.mark.parametrize("how", ["restart", "crash"])
def test_table_ids_reused_after_server_restart_do_not_mix_tables(
    shop: LocalServer, new_stream: NewStream, how: str
) -> None:
    """The server counts table ids from the start again, so that an id can get another table."""
    stream = new_stream(shop, "shop.*")
    start = stream.initial()
    assert stream.latest(start) == start
    sell(shop, 1, 2, 3, 4)
    before, middle = read_rows(stream, start, 4)
    sell(shop, 5)
    if how == "restart":
        shop.restart()
    else:
        shop.kill()
        shop.start()
    if shop.is_mysql9():  # it opened many of its own tables at its first start
        open_tables_until(shop, min(set.union(*table_ids(shop).values())) - 1)
    lend(shop, 6, 7, 8, 9)
    sell(shop, 10)
    after_restart, end = read_rows(stream, middle, 6)
    assert before == [("sold", {"id": number}) for number in range(1, 5)]
    assert after_restart == [
        ("sold", {"id": 5}),
        *(("lent", {"back": "2021-02-03", "id": number}) for number in range(6, 10)),
        ("sold", {"id": 10}),
    ]
    # No row is delivered twice, and a new stream reads the same rows.
    sell(shop, 11)
    assert read_rows(stream, end, 1)[0] == [("sold", {"id": 11})]
    again = new_stream(shop, "shop.*")
    assert read_rows(again, middle, 7)[0] == [*after_restart, ("sold", {"id": 11})]

    first, second = (file for file, _ in shop.binlog_files()[-2:])
    ids = table_ids(shop)
    assert ids[f"{first} sold"] & ids[f"{second} lent"]


@pytest.mark.sample(1)
@pytest.mark.parametrize("trigger", ["default", "available now", "replay"])
def test_resumed_stream_retries_until_the_server_starts(
    shop: LocalServer, new_stream: NewStream, caplog: pytest.LogCaptureFixture, trigger: str
) -> None:
    """There are more tries than the three of a first start; the log shows them in order."""
    caplog.set_level(logging.WARNING, "pyspark_mysqlbinlog")
    first = new_stream(shop, "shop.*")
    start = first.initial()
    assert first.latest(start) == start
    sell(shop, 1)
    _, middle = read_rows(first, start, 1)
    sell(shop, 2)
    first.reader.stop()
    shop.halt()
    caplog.clear()

    def go_on() -> list[tuple[str, object]]:
        again = new_stream(shop, "shop.*")
        if trigger == "available now":
            again.reader.prepareForTriggerAvailableNow()
        if trigger == "replay":
            again.rows(start, middle)
        return read_rows(again, middle, 1)[0]

    def logged(words: str) -> list[float]:
        return [each.created for each in caplog.records if each.getMessage().startswith(words)]

    with ThreadPoolExecutor(1) as pool:
        rows = pool.submit(go_on)
        wait_until(lambda: rows.done() or bool(logged("try 4 failed")), "there are four tries")
        shop.start()
        assert rows.result(300) == [("sold", {"id": 2})]
    tries = logged("try ")
    (again,) = logged("connected again after ")
    assert tries == sorted(tries)
    assert tries[-1] <= again
    (seconds,) = re.findall(r"connected again after ([\d.]+) s", caplog.text)
    assert logged("try 4")[0] - logged("try 1")[0] - 0.1 <= float(seconds)


def test_wrong_password_on_resume_is_not_retried(
    shop: LocalServer, new_stream: NewStream, caplog: pytest.LogCaptureFixture
) -> None:
    start = new_stream(shop, "shop.*").initial()
    again = new_stream(shop, "shop.*", user="nobody", password="wrong")
    with pytest.raises(AccessDeniedError):
        again.latest(start)
    assert "try 1 failed" not in caplog.text


def test_replica_id_stays_in_the_server_id_range_after_reconnects(
    shop: LocalServer, new_stream: NewStream
) -> None:
    stream = new_stream(shop, "shop.*", serverId="6000-6001")
    start = stream.initial()
    assert stream.latest(start) == start
    stream.latest(start)
    killed: set[int] = set()

    def fed() -> bool:
        return not killed.issuperset(shop.dump_threads())

    for _ in range(4):
        wait_until(fed, "the server feeds the stream")
        show = "SHOW REPLICAS" if shop.is_mysql9() else "SHOW SLAVE HOSTS"
        replicas = {int(row[0]) for row in shop.execute(show)}
        assert replicas
        assert replicas <= {6000, 6001}
        killed.update(shop.kill_dumps())


def test_every_query_on_a_killed_connection_raises_lost_connection_error(shop: LocalServer) -> None:
    """After the first error, pymysql raises an error without a number and without a text."""
    settings = parse_options(shop.options()).server_settings()
    with ReplicaClient.connect(settings) as client:
        shop.execute(f"KILL {client.query('SELECT CONNECTION_ID()')[0][0]}")
        for _ in range(2):
            with pytest.raises(LostConnectionError):
                client.query("SELECT 1")
