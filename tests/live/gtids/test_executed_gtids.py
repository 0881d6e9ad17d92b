"""The GTIDs in a stream's offsets are those that the server has executed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack
from uuid import UUID

import pytest

import helpers.parity.require_kernel  # noqa: F401 (skips without the kernel)
from helpers.servers import MySQL56Server, Server
from helpers.servers.available import every_server
from helpers.writers.gtid_modes import switch, switchable_mode
from live.conftest import NewStream
from pyspark_mysqlbinlog.checkpoints.gtid_set import GtidSet
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.source.start_offset import start_of_files, start_of_server
from pyspark_mysqlbinlog.decoder.kernel.implementation import Implementation, using
from pyspark_mysqlbinlog.errors import InvalidPositionError

DATABASE = "executed_gtids"
SEED = 20261127
OTHERS = [str(UUID(int=number)) for number in (1, 2)]


# 5.6 cannot switch the mode while it runs.
ON_FROM_START = ["--gtid-mode=ON", "--enforce-gtid-consistency", "--log-slave-updates"]


@pytest.fixture(params=["mysql56", "mysql9", *every_server()[2:]])
def gtid_server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """Yield a server with gtid_mode=ON and the database `DATABASE`."""
    shared: Server = request.getfixturevalue(request.param)
    with ExitStack() as stack:
        server = shared
        if isinstance(shared, MySQL56Server):
            server = stack.enter_context(MySQL56Server(options=ON_FROM_START))
        elif server.execute("SELECT @@GLOBAL.gtid_mode")[0][0] != "ON":
            stack.enter_context(switchable_mode(server))
            switch(server, "ON")
            server.rotate()
        server.execute(f"DROP DATABASE IF EXISTS {DATABASE}", f"CREATE DATABASE {DATABASE}")
        yield server
        server.execute(f"DROP DATABASE {DATABASE}")


def executed(server: Server) -> GtidSet:
    return GtidSet.parse(str(server.execute("SELECT @@GLOBAL.gtid_executed")[0][0]))


def write(server: Server, rng: random.Random) -> None:
    """Write transactions of all sizes and kinds, from three sources and, on 9.x, with tags."""
    tags = ["", ":billing", ":audit_1"] if server.version() >= "9" else [""]
    number = rng.randrange(1, 1 << 40)
    with server.connect(database=DATABASE) as connection:
        cursor = connection.cursor()
        for _ in range(60):
            if rng.random() < 0.3:
                number += rng.randint(1, 3)
                source = rng.choice(OTHERS) + rng.choice(tags)
                cursor.execute(f"SET gtid_next = '{source}:{number}'")
            table = rng.choice(["t", "x"])
            kind = rng.random()
            if kind < 0.1:
                cursor.execute(f"ALTER TABLE {table} COMMENT '{number}'")
            elif kind < 0.2:
                cursor.execute(f"INSERT INTO {table} (v) SELECT REPEAT('y', 900) FROM many")
            else:
                cursor.execute(f"INSERT INTO {table} (v) VALUES ('{number}')")
            cursor.execute("SET gtid_next = 'AUTOMATIC'")
            if rng.random() < 0.05:
                server.rotate()


@pytest.mark.parametrize("implementation", ["c", "python"])
def test_offsets_contain_the_executed_gtid_set(
    gtid_server: Server, new_stream: NewStream, implementation: Implementation
) -> None:
    server = gtid_server
    rows = ",".join(f"({number})" for number in range(700))
    server.execute(
        "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(1000))",
        "CREATE TABLE x (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(1000))",
        "CREATE TABLE many (id INT PRIMARY KEY)",
        f"INSERT INTO many VALUES {rows}",
        database=DATABASE,
    )
    rng = random.Random(SEED)
    with using(implementation):
        start = new_stream(server, f"{DATABASE}.t").initial()
        before = executed(server)
        assert start["gtid"] == str(before)
        for _ in range(3):
            write(server, rng)
            now = executed(server)
            # The stream resumes from the last offset, as after a restart.
            stream = new_stream(server, f"{DATABASE}.t", idleOffsetInterval="1ms")
            end = start
            while end["gtid"] != str(now):
                end = stream.next_batch(end)
                found = GtidSet.parse(end["gtid"])
                assert before.is_subset(found)
                assert found.is_subset(now)
            start, before = end, now
        # For a start position given by a user, the file is read up to that position.
        file, pos = server.position()
        again = new_stream(server, f"{DATABASE}.t", startingOffset=f"{file}:{pos}").initial()
        assert again["gtid"] == str(executed(server))


@pytest.mark.parametrize("streaming", [False, True], ids=["batch", "stream"])
@pytest.mark.parametrize("of_files", [False, True], ids=["server", "files"])
def test_start_between_a_gtid_event_and_its_transaction_is_rejected(
    gtid_server: Server, streaming: bool, of_files: bool
) -> None:
    server = gtid_server
    file, begin = server.position()
    server.execute(
        f"CREATE TABLE {DATABASE}.t (id INT PRIMARY KEY)", f"INSERT INTO {DATABASE}.t VALUES (1)"
    )
    events = server.execute(f"SHOW BINLOG EVENTS IN '{file}' FROM {begin}")
    pos = next(int(event[1]) for event in events if event[5] == "BEGIN")
    place = {"startingOffset": f"{file}:{pos}", "tables": f"{DATABASE}.t"}
    assert server.datadir is not None
    where = {"path": str(server.datadir / file)} if of_files else server.options()
    start = start_of_files if of_files else start_of_server
    with pytest.raises(InvalidPositionError, match=f"its GTID event.*{file}:{pos}"):
        start(parse_options(where | place), streaming=streaming)
