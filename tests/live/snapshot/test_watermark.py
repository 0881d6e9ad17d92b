"""Visibility checks: a SELECT after the watermark returns every row logged before it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from time import monotonic, sleep

import pymysql
import pytest

from helpers.logs.live_log import client_of, log_rows, new_database, schemas_of
from helpers.mirrors.delayed_commits import Held, HeldBySemiSync, HeldBySync, SlowSyncServer
from helpers.servers import Server
from helpers.servers.available import every_server
from helpers.waiting import patience, wait_until
from helpers.writers.gtid_modes import switch, switchable_mode
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.server import pending_transactions as pending_module
from pyspark_mysqlbinlog.connector.snapshot.visibility import watermark as watermark_module
from pyspark_mysqlbinlog.connector.snapshot.visibility.checker import (
    RequestedCheck,
    VisibilityChecker,
)
from pyspark_mysqlbinlog.connector.snapshot.visibility.watermark import Watermark
from pyspark_mysqlbinlog.errors import (
    AccessDeniedError,
    MySQLBinlogError,
    OptionError,
    ServerError,
    SnapshotVisibilityTimeoutError,
)
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient, ServerSettings

DATABASE = "watermarks"
TABLE = (DATABASE, "t")
PROOFS: tuple[RequestedCheck, ...] = ("gtid", "innodb_trx", "lock")


def prove(
    settings: ServerSettings,
    wanted: RequestedCheck = "auto",
    *,
    engine: str = "InnoDB",
    patience: float = 60.0,
) -> Watermark:
    with ReplicaClient.connect(settings) as client:
        prover = VisibilityChecker.ask(client, wanted, case_sensitive=True)
        connect = partial(ReplicaClient.connect, settings)
        return prover.wait_until_visible(client, connect, TABLE, engine, patience=patience)


@dataclass
class Proving:
    """A visibility check that runs in its own thread."""

    settings: ServerSettings
    wanted: RequestedCheck
    result: Watermark | MySQLBinlogError | None = None

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.result = prove(self.settings, self.wanted)
        except MySQLBinlogError as error:
            self.result = error

    def ends(self) -> Watermark:
        self._thread.join(patience(60))
        assert isinstance(self.result, Watermark), self.result
        return self.result


def local(server: Server) -> ServerSettings:
    return server.settings(ssl_mode="DISABLED")


def ids(server: Server) -> set[int]:
    return {int(number) for (number,) in server.execute(f"SELECT id FROM {DATABASE}.t")}


def with_gtids(server: Server, wanted: RequestedCheck, stack: ExitStack) -> None:
    """Set `gtid_mode` for the check on MySQL 5.7; skip the gtid check on other servers."""
    if server.version().startswith("5.7."):
        stack.enter_context(switchable_mode(server))
        switch(server, "ON" if wanted == "gtid" else "OFF")
    elif wanted == "gtid":
        pytest.skip("GTIDs prove something on MySQL 5.7 only")


@pytest.fixture(params=every_server())
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """Yield each server in turn, with an empty table."""
    found: Server = request.getfixturevalue(request.param)
    with new_database(found, DATABASE):
        found.execute(f"CREATE TABLE {DATABASE}.t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)")
        yield found


@pytest.fixture(scope="module")
def slow_sync(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Held]:
    request.getfixturevalue("mysql56")  # ends the test if it is missing
    with SlowSyncServer(tmp_path_factory.mktemp("held")) as server:
        yield HeldBySync(server)


@pytest.fixture(params=every_server())
def held(request: pytest.FixtureRequest) -> Iterator[Held]:
    """Yield each server with an empty table; its commits can be held between binlog and engine."""
    with ExitStack() as stack:
        if request.param == "mysql56":
            found: Held = request.getfixturevalue("slow_sync")
        else:
            server = request.getfixturevalue(request.param)
            found = stack.enter_context(HeldBySemiSync.on(server))
        stack.enter_context(new_database(found.server, DATABASE))
        found.server.execute(f"CREATE TABLE {DATABASE}.t (id INT PRIMARY KEY, v INT)")
        yield found


# A SELECT that misses logged rows.


def test_watermark_without_visibility_check_misses_a_logged_row(held: Held) -> None:
    with held.committing(f"INSERT INTO {DATABASE}.t VALUES (7, 1)"):
        start = held.server.position()
        assert ids(held.server) == set()
    assert ids(held.server) == {7}
    assert log_rows(held.server, start, DATABASE, schemas_of(held.server, DATABASE)) == []


@pytest.mark.sample(2)
@pytest.mark.parametrize("wanted", PROOFS)
@pytest.mark.parametrize("statement", ["INSERT INTO {t} VALUES (7, 1)", "DELETE FROM {t}"])
def test_visibility_check_waits_until_logged_commit_is_visible(
    held: Held, wanted: RequestedCheck, statement: str
) -> None:
    with ExitStack() as stack:
        with_gtids(held.server, wanted, stack)
        if statement.startswith("DELETE"):
            held.server.execute(f"INSERT INTO {DATABASE}.t VALUES (1, 1)")
        now = ids(held.server)
        with held.committing(statement.format(t=f"{DATABASE}.t")):
            logged = held.server.position()
            proving = Proving(local(held.server), wanted)
            # Twice as long as one attempt waits for a lock.
            sleep(2.2)
            assert proving.result is None
            assert ids(held.server) == now
            held.release()
            watermark = proving.ends()
            assert ids(held.server) != now
        assert watermark.proof == wanted
        # The watermark includes the logged transaction.
        assert (watermark.position.file, watermark.position.pos) >= logged


@pytest.mark.parametrize("wanted", PROOFS)
def test_visibility_check_waits_for_xa_commit_of_ended_session(
    held: Held, wanted: RequestedCheck
) -> None:
    """The committing transaction has no session; one that is only prepared causes no delay."""
    server = held.server
    if server.version().startswith("5.6"):
        pytest.skip("5.6 rolls a prepared transaction back when its session ends")
    # Measured on 5.7.41: it waits for the replica only after the commit in the engine. The row is
    # then visible, and the check may end.
    is_visible = server.version().startswith("5.7")
    server.execute(f"CREATE TABLE {DATABASE}.u (id INT PRIMARY KEY)")
    with ExitStack() as stack:
        with_gtids(server, wanted, stack)
        for xid, table in (("'x'", "t (id)"), ("'y'", "u")):
            server.execute(
                f"XA START {xid}",
                f"INSERT INTO {table} VALUES (7)",
                f"XA END {xid}",
                f"XA PREPARE {xid}",
                database=DATABASE,
            )
        # InnoDB refreshes INNODB_TRX only after 100 ms without a read.
        wait_until(lambda: detached(server) == 2, "both sessions have ended", every=0.2)
        stack.callback(server.execute, "XA ROLLBACK 'y'")
        with held.committing("XA COMMIT 'x'"):
            proving = Proving(local(server), wanted)
            sleep(2.2)
            assert is_visible or proving.result is None
            assert ids(server) == ({7} if is_visible else set())
            held.release()
            proving.ends()
            assert ids(server) == {7}


def detached(server: Server) -> int:
    """Return the number of transactions without a session."""
    rows = server.execute("SELECT trx_mysql_thread_id FROM information_schema.INNODB_TRX")
    return sum(not thread for (thread,) in rows)


def clock(server: Server) -> int:
    return int(server.execute("SELECT UNIX_TIMESTAMP()")[0][0])


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the pauses between two visibility checks."""
    made: list[float] = []

    def pause(seconds: float) -> None:
        made.append(seconds)
        sleep(seconds)

    for module in (watermark_module, pending_module):
        monkeypatch.setattr(module, "sleep", pause)
    return made


@pytest.mark.parametrize("wanted", PROOFS)
def test_visibility_check_without_writers_does_not_wait(
    server: Server, wanted: RequestedCheck, pauses: list[float]
) -> None:
    with ExitStack() as stack:
        with_gtids(server, wanted, stack)
        server.execute(f"INSERT INTO {DATABASE}.t VALUES (1, 1)")
        position, began = server.position(), clock(server)
        found = prove(local(server), wanted)
        assert (found.position.file, found.position.pos) == position
        assert began <= found.time <= clock(server)
        assert found.server_id == server.execute("SELECT @@server_id")[0][0]
        assert len(pauses) <= 1


@pytest.mark.sample(2)
@pytest.mark.parametrize("wanted", PROOFS)
def test_rows_logged_before_the_watermark_are_visible(
    server: Server, wanted: RequestedCheck
) -> None:
    """Compare the rows that SELECT returns after each watermark with those logged before it."""
    with ExitStack() as stack:
        with_gtids(server, wanted, stack)
        start = server.position()
        found: list[tuple[Position, set[int]]] = []
        with synced(server), writers(server, 16):
            until, patience = monotonic() + 4, monotonic() + 300
            while monotonic() < until or len(found) < 3 or len(found[-1][1]) <= 50:
                assert monotonic() < patience
                watermark = prove(local(server), wanted)
                found.append((watermark.position, ids(server)))
        rows = log_rows(server, start, DATABASE, schemas_of(server, DATABASE))
    places = [
        (row["source"]["file"], row["source"]["pos"], json.loads(row["after"])["id"])
        for row in rows
    ]
    assert len(places) > 50
    for position, shown in found:
        end = (position.file, position.pos)
        before = {number for file, place, number in places if (file, place) < end}
        assert before <= shown


class synced:  # noqa: N801 (a context manager)
    """A binlog that is synced at each commit, which delays the visibility of logged rows."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._before = server.execute("SELECT @@GLOBAL.sync_binlog")[0][0]

    def __enter__(self) -> None:
        self._server.execute("SET GLOBAL sync_binlog = 1")

    def __exit__(self, *_: object) -> None:
        self._server.execute(f"SET GLOBAL sync_binlog = {self._before}")


class writers:  # noqa: N801 (a context manager)
    """Sessions that insert rows as fast as they can, one row per transaction."""

    def __init__(self, server: Server, number: int) -> None:
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._write, args=(server,), daemon=True) for _ in range(number)
        ]

    def __enter__(self) -> None:
        for thread in self._threads:
            thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(patience(30))

    def _write(self, server: Server) -> None:
        with server.connect() as connection, connection.cursor() as cursor:
            while not self._stop.is_set():
                cursor.execute(f"INSERT INTO {DATABASE}.t (v) VALUES (1)")


# Sessions that delay a check, and sessions that do not.


def test_idle_transaction_does_not_delay_innodb_trx_check(
    server: Server, pauses: list[float]
) -> None:
    """Its changed rows are logged after the watermark, if they are committed at all."""
    with server.connect(autocommit=False) as connection, connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO {DATABASE}.t VALUES (1, 1)")
        with client_of(server) as client:
            assert client.query("SELECT trx_id FROM information_schema.INNODB_TRX")
        watermark = prove(local(server), "innodb_trx")
        # For a list that is newer than the one that was just read.
        assert len(pauses) <= 1
        connection.commit()
    assert (watermark.position.file, watermark.position.pos) < server.position()


def test_open_transaction_blocks_lock_check_until_timeout(server: Server) -> None:
    with server.connect(autocommit=False) as connection, connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO {DATABASE}.t VALUES (1, 1)")
        with pytest.raises(
            SnapshotVisibilityTimeoutError, match="LOCK TABLES `watermarks`"
        ) as caught:
            prove(local(server), "lock", patience=2)
        assert caught.value.table == f"{DATABASE}.t"
        # The timed-out check leaves no lock request that blocks other writers.
        server.execute(
            "SET SESSION lock_wait_timeout = 60", f"INSERT INTO {DATABASE}.t VALUES (2, 2)"
        )
        connection.commit()
    assert prove(local(server), "lock").proof == "lock"


def test_running_statement_blocks_innodb_trx_check_and_is_named(server: Server) -> None:
    """The server does not show whether the statement is already logged, so the check waits."""
    server.execute(f"INSERT INTO {DATABASE}.t VALUES (1, 1), (2, 2)")
    with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT CONNECTION_ID()")
        ((thread,),) = cursor.fetchall()
        # The second row waits for a lock of the other session's.
        sql = f"UPDATE {DATABASE}.t SET v = v + IF(id = 2, GET_LOCK('gate', 300), 1) ORDER BY id"
        running = threading.Thread(target=cursor.execute, args=(sql,), daemon=True)
        modified = "SELECT trx_id FROM information_schema.INNODB_TRX WHERE trx_rows_modified > 0"
        with server.connect() as gate, gate.cursor() as keeper:
            keeper.execute("SELECT GET_LOCK('gate', 0)")
            running.start()
            wait_until(lambda: bool(server.execute(modified)), "a row is changed", every=0.15)
            # Then the list is renewed when it is read for the first time.
            sleep(0.2)
            with pytest.raises(SnapshotVisibilityTimeoutError, match=f"threads {thread}"):
                prove(local(server), "innodb_trx", patience=0.5)
        running.join(patience(60))
    prove(local(server), "innodb_trx")


def test_stale_transaction_list_makes_innodb_trx_check_time_out(server: Server) -> None:
    """The server reuses its copy of the list until 100 ms after the last read by any session."""

    def is_refused() -> bool:
        with _reading_the_list(server) as longest_pause:
            said = _refusal(server)
        if said:
            assert "a fresh list of transactions" in said
        else:
            # On a busy machine the reads can pause long enough for the list to be refreshed.
            assert longest_pause() >= 0.1
        return bool(said)

    wait_until(is_refused, "the list is not refreshed during a check")
    prove(local(server), "innodb_trx")


def _refusal(server: Server) -> str:
    """Return the message of the timeout of a check by INNODB_TRX, or "" if the check succeeds."""
    try:
        prove(local(server), "innodb_trx", patience=1)
    except SnapshotVisibilityTimeoutError as error:
        return error.message
    return ""


@contextmanager
def _reading_the_list(server: Server) -> Iterator[Callable[[], float]]:
    """Read INNODB_TRX continuously; yield a function that returns the longest possible pause.

    The server reads the list at an unknown time between a query's start and its answer.
    """
    stop = threading.Event()
    readings: list[tuple[float, float]] = []

    def read() -> None:
        with server.connect() as connection, connection.cursor() as cursor:
            while not stop.is_set():
                begin = monotonic()
                cursor.execute("SELECT 1 FROM information_schema.INNODB_TRX")
                readings.append((begin, monotonic()))
                stop.wait(0.02)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        wait_until(lambda: len(readings) > 2, "the list is read again and again")
        yield lambda: max(end - begin for (begin, _), (_, end) in pairwise(readings))
    finally:
        stop.set()
        reader.join(patience(10))


def test_myisam_table_is_checked_only_by_lock(server: Server) -> None:
    server.execute(f"ALTER TABLE {DATABASE}.t ENGINE = MyISAM")
    assert prove(local(server), engine="MyISAM").proof == "lock"
    for wanted in ("gtid", "innodb_trx"):
        with pytest.raises(OptionError, match="engine is MyISAM, expected InnoDB"):
            prove(local(server), wanted, engine="MyISAM")


def test_lock_check_of_missing_table_raises_server_error(server: Server) -> None:
    server.execute(f"DROP TABLE {DATABASE}.t")
    with pytest.raises(ServerError) as caught:
        prove(local(server), "lock")
    assert caught.value.code == 1146


def test_gtid_check_without_gtid_mode_on_is_rejected(live_server: Server) -> None:
    if live_server.is_mysql9():
        with pytest.raises(OptionError, match="the server is not MySQL"):
            prove(local(live_server), "gtid")
        return
    with switchable_mode(live_server):
        switch(live_server, "ON")
        with client_of(live_server) as client:
            prover = VisibilityChecker.ask(client, "gtid", case_sensitive=True)
            switch(live_server, "ON_PERMISSIVE")
            with pytest.raises(ServerError, match="switched from ON to ON_PERMISSIVE"):
                prover.wait_until_visible(client, partial(client_of, live_server), TABLE, "InnoDB")
        with pytest.raises(OptionError, match="gtid_mode is ON_PERMISSIVE, expected ON"):
            prove(local(live_server), "gtid")


# Grants.

Account = Callable[..., ServerSettings]


@pytest.fixture
def account(server: Server) -> Iterator[Account]:
    """``account("PROCESS ON *.*")`` creates an account with the grants of a stream and this one."""
    name = "'watermark_reader'@'%'"

    def make(*grants: str) -> ServerSettings:
        always = ["REPLICATION CLIENT ON *.*", f"SELECT ON {DATABASE}.*"]
        server.execute(
            f"CREATE USER {name} IDENTIFIED BY 's3cret'",
            *(f"GRANT {grant} TO {name}" for grant in [*always, *grants]),
        )
        return server.settings(user="watermark_reader", password="s3cret", ssl_mode="DISABLED")

    try:
        yield make
    finally:
        with suppress(pymysql.err.MySQLError):  # the account was not created
            server.execute(f"DROP USER {name}")


@pytest.fixture
def without_gtids(server: Server) -> Iterator[None]:
    with ExitStack() as stack:
        with_gtids(server, "lock", stack)
        yield


@pytest.mark.usefixtures("without_gtids")
@pytest.mark.parametrize(
    ("grants", "expected"),
    [
        (["PROCESS ON *.*"], "innodb_trx"),
        ([f"LOCK TABLES ON {DATABASE}.*"], "lock"),
        (["LOCK TABLES ON *.*"], "lock"),
        (["PROCESS ON *.*", f"LOCK TABLES ON {DATABASE}.*"], "innodb_trx"),
    ],
)
def test_automatic_visibility_check_is_chosen_by_the_grants(
    account: Account, grants: list[str], expected: str
) -> None:
    assert prove(account(*grants)).proof == expected


@pytest.mark.usefixtures("without_gtids")
def test_missing_grants_for_visibility_check_raise_access_denied_error(account: Account) -> None:
    settings = account("LOCK TABLES ON other_database.*")
    with pytest.raises(AccessDeniedError) as caught:
        prove(settings)
    assert "GRANT PROCESS ON *.* or GRANT SELECT, LOCK TABLES ON `watermarks`.*" in str(
        caught.value
    )
    with pytest.raises(AccessDeniedError, match=r"needs a grant: GRANT PROCESS ON \*\.\* to this"):
        prove(settings, "innodb_trx")
    with pytest.raises(AccessDeniedError, match="needs a grant: GRANT SELECT, LOCK TABLES ON"):
        prove(settings, "lock")


def test_gtid_check_needs_no_further_grant(account: Account, server: Server) -> None:
    with ExitStack() as stack:
        with_gtids(server, "gtid", stack)
        assert prove(account()).proof == "gtid"


def test_open_transaction_does_not_block_automatic_visibility_check(server: Server) -> None:
    """A transaction that is idle on the table delays only the lock check."""
    with server.connect(autocommit=False) as connection, connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO {DATABASE}.t VALUES (1, 1)")
        assert prove(local(server)).proof in ("gtid", "innodb_trx")
        connection.rollback()


def test_lock_check_accepts_backquote_in_table_name(server: Server) -> None:
    server.execute(f"CREATE TABLE {DATABASE}.`a``b` (id INT PRIMARY KEY)")
    settings = local(server)
    with ReplicaClient.connect(settings) as client:
        prover = VisibilityChecker.ask(client, "lock", case_sensitive=True)
        connect = partial(ReplicaClient.connect, settings)
        assert (
            prover.wait_until_visible(client, connect, (DATABASE, "a`b"), "InnoDB").proof == "lock"
        )


def test_server_answers_queries_while_binlog_sync_is_held(slow_sync: Held, tmp_path: Path) -> None:
    """Otherwise the server would hang, and no test could query it."""
    slow_sync.hold()
    try:
        assert slow_sync.server.execute("SELECT 1") == [(1,)]
    finally:
        slow_sync.release()
