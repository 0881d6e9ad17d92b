"""The command `ingest` under random changes, DDL and repeated kills: equal to SELECT.

Two writers fill the workload's tables (all kinds of types, transactions that roll back, a MyISAM
table, a table without a key). Meanwhile, a thread writes and alters two more tables, and then the
command with all its processes, a Python worker of Spark, or the server is killed. At the end,
each Delta table has the columns, types and rows that SELECT shows, and the change logs contain
each change of the binlog once. The tables are also equal after the checkpoint is lost.
"""

from __future__ import annotations

import contextlib
import logging
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pymysql.err import Error
from pyspark.sql import DataFrame, SparkSession

from helpers.logs.live_log import new_database, schemas_of, selected
from helpers.mirrors.mirrored_rows import assert_same_rows
from helpers.schemas.evolving_table import EvolvingTable
from helpers.servers import LocalServer, Server
from helpers.servers.available import own_kind
from helpers.streams.spark_session import DELTA_JARS, DELTA_SETTINGS, Reads
from helpers.tools.ingest_process import Ingest
from helpers.waiting import patience
from helpers.writers.workload_writer import TABLES, Writer

LOG = logging.getLogger(__name__)
EVOLVING = ("evolving", "changing")
# 5.7 executes an ALTER and logs it in two steps: a kill of the server between them loses one.
_ALTERING = Lock()


@dataclass(frozen=True)
class Run:
    """The number of kills, and of the changes that each of two writers makes between kills.

    step : the size of a sub-batch of a backlog, in bytes.
    """

    kills: int
    changes: int
    step: str


SHORT, FULL = Run(2, 200, "32k"), Run(20, 5_000, "128k")


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> list[str]:
    """Return the command's arguments for an engine."""
    if request.param == "spark" and not DELTA_JARS:
        pytest.skip("MYSQLBINLOG_DELTA_JARS names no jars of Delta's (delta-spark, delta-storage)")
    settings = {"spark.jars": DELTA_JARS} | DELTA_SETTINGS if request.param == "spark" else {}
    conf = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    return ["--engine", request.param, *conf]


@pytest.fixture
def own_server(live_server: Server) -> Iterator[Server]:
    """Yield a server that may be killed, or the user's server where the tests run on one."""
    if not isinstance(live_server, LocalServer):
        yield live_server
        return
    # Otherwise the binlog of a killed server can contain rows that the server has lost.
    durable = ["--innodb-flush-log-at-trx-commit=1", "--sync-binlog=1"]
    with own_kind()(durable) as server:
        yield server


@pytest.mark.sample(2, group="kills")
@pytest.mark.parametrize("engine", ["deltalake", "spark"], indirect=True)
@pytest.mark.parametrize(
    "run",
    [
        pytest.param(SHORT, id="short"),
        pytest.param(FULL, id="full", marks=[pytest.mark.slow, pytest.mark.timeout(5400)]),
    ],
)
def test_killed_ingest_is_equal_to_select(  # noqa: PLR0917 (fixtures)
    spark: SparkSession,
    own_server: Server,
    tmp_path: Path,
    ddl_seed: int,
    engine: list[str],
    run: Run,
) -> None:
    with new_database(own_server, "random_delta") as database:
        chance = random.Random(ddl_seed)
        empty = own_server.position()
        evolving = _tables(own_server, database, ddl_seed)
        start = own_server.position()
        more = ["--change-log", f"{tmp_path}/changes/{{table}}"]
        if "deltalake" in engine:
            # Not for Spark: its MERGE takes one to two seconds, and runs per sub-batch and table.
            more += ["--option", f"maxBytesPerTrigger={run.step}"]
        ingest = Ingest(own_server, database, tmp_path, [*engine, *more])
        with ingest:
            # The change logs contain all changes from here on.
            ingest.wait_for_batch()
            for number in range(run.kills):
                ingest.start()
                with _altering(own_server, database, evolving, ddl_seed + number):
                    _write(own_server, database, ddl_seed, number, run)
                    ingest.wait_for_batch()
                    _kill(chance.choice(["driver", "worker", "server"]), own_server, ingest)
            ingest.kill()
            ingest.once()
            _assert_equal(own_server, database, tmp_path)
            changes = Reads(spark, own_server).batch(
                tables=f"{database}.*", startingOffset="{}:{}".format(*empty)
            )
            _assert_each_once(tmp_path / "changes", changes, start)
            # Changes that the mirror has not read when its checkpoint is lost.
            _write(own_server, database, ddl_seed, run.kills, replace(run, changes=200))
            shutil.rmtree(ingest.checkpoint)
            ingest.once()
            _assert_equal(own_server, database, tmp_path)
    LOG.info(
        "%d kills, %d starts, %d alterations",
        run.kills,
        ingest.starts,
        sum(table.altered for table in evolving),
    )
    assert all(table.altered > 0 for table in evolving)


def _tables(server: Server, database: str, seed: int) -> list[EvolvingTable]:
    server.execute(*TABLES, database=database)
    version = server.execute("SELECT @@version")[0][0]
    evolving = [
        EvolvingTable(name, seed, has_json=not version.startswith("5.6")) for name in EVOLVING
    ]
    with server.connect(database=database, autocommit=True) as connection:
        for table in evolving:
            table.create(connection, 100)
    return evolving


def _write(server: Server, database: str, seed: int, number: int, run: Run) -> None:
    """Write changes of two writers, one after the other, with keys that no other round uses."""
    for writer_number in (2 * number, 2 * number + 1):
        with server.connect(database=database) as connection:
            writer = Writer(connection, writer_number, seed, 2 * (run.kills + 1))
            done = 0
            while done < run.changes:
                done += writer.operation()
            connection.commit()


@contextlib.contextmanager
def _altering(
    server: Server, database: str, tables: list[EvolvingTable], seed: int
) -> Iterator[None]:
    """Write and alter tables in a thread during the block; the server may be killed meanwhile."""
    stopped, errors = Event(), list[BaseException]()

    def work() -> None:
        chance = random.Random(seed)
        try:
            with server.connect(database=database, autocommit=True) as connection:
                for table in tables:
                    # Each table is altered at least once, which chance does not ensure.
                    while not table.altered:
                        with _ALTERING:
                            table.alter(connection)
                while not stopped.wait(0.005):
                    table = chance.choice(tables)
                    if chance.random() < 0.01:
                        with _ALTERING:
                            table.alter(connection)
                    else:
                        table.change(connection)
        except BaseException as error:  # noqa: BLE001 (raised again when the block ends)
            errors.append(error)

    thread = Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join(patience(60))
    # A statement that a killed server did not answer may or may not have been executed.
    if errors and not (isinstance(errors[0], Error) and errors[0].args[0] in {2006, 2013, 2003}):
        raise errors[0]


def _kill(what: str, server: Server, ingest: Ingest) -> None:
    LOG.info("killing the %s", what)
    if what == "worker":
        ingest.kill_worker()
    elif what == "server" and isinstance(server, LocalServer):
        with _ALTERING:
            server.kill()
        server.start()
    else:
        ingest.kill()


def _assert_equal(server: Server, database: str, folder: Path) -> None:
    schemas = schemas_of(server, database)
    assert len(schemas) > 6
    for schema, rows in zip(schemas, selected(server, *schemas), strict=True):
        assert_same_rows(folder / "lake" / database / schema.table, schema, rows)


def _assert_each_once(change_logs: Path, changes: DataFrame, start: tuple[str, int]) -> None:
    """Assert that the change logs contain each change from a position on exactly once.

    changes : the changes in the server's binlog.
    """
    columns = ["op", "table", "seq"]
    expected = _counted(changes.select(columns).toArrow(), start)
    found = Counter[tuple[Any, ...]]()
    for path in change_logs.iterdir():
        found += _counted(DeltaTable(path).to_pyarrow_table(columns=columns), start)
    assert expected.total() > 1000
    for name, left in ("missing", expected - found), ("too many", found - expected):
        assert not left, (name, left.total(), sorted(left)[:5])


def _counted(changes: pa.Table, start: tuple[str, int]) -> Counter[tuple[Any, ...]]:
    """Return how often each row change from a position on occurs."""
    begin = int(start[0].rpartition(".")[2]), start[1]
    counted = Counter[tuple[Any, ...]]()
    for row in changes.to_pylist():
        place = row["seq"]["file"], row["seq"]["pos"]
        if row["op"] in {"c", "u", "d"} and place >= begin:
            counted[row["table"], row["op"], *place, row["seq"]["row"]] += 1
    return counted
