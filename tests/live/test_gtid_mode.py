"""gtid_mode is switched while a stream is behind: the server sends the other kind no longer."""

from __future__ import annotations

from collections.abc import Iterator

import pymysql
import pytest

from helpers.servers import Server
from helpers.source_runner import ids, insert
from live.conftest import NewStream
from pyspark_mysqlbinlog.errors import ServerError

MODES = ["OFF", "OFF_PERMISSIVE", "ON_PERMISSIVE", "ON"]


def switch(server: Server, mode: str) -> None:
    """Step by step, as the server wants it."""
    now = str(server.execute("SELECT @@GLOBAL.gtid_mode")[0][0])
    server.execute("SET GLOBAL enforce_gtid_consistency = ON")
    step = 1 if MODES.index(mode) > MODES.index(now) else -1
    while now != mode:
        now = MODES[MODES.index(now) + step]
        server.execute(f"SET GLOBAL gtid_mode = {now}")


@pytest.fixture
def switchable(live_server: Server) -> Iterator[Server]:
    """A server whose gtid_mode can be set while it runs (5.7.6 and later); set back behind."""
    try:
        mode, consistency = live_server.execute(
            "SELECT @@GLOBAL.gtid_mode, @@GLOBAL.enforce_gtid_consistency"
        )[0]
        live_server.execute(f"SET GLOBAL gtid_mode = {mode}")
    except pymysql.err.MySQLError as error:
        # The text that such a server would send is mapped in unit/protocol/test_server_errors.py.
        pytest.skip(f"{live_server.version()} can't switch gtid_mode: {error.args[1]}")
    yield live_server
    switch(live_server, str(mode))
    live_server.execute(f"SET GLOBAL enforce_gtid_consistency = {consistency}")
    # Nobody can read the whole log in this mode: it holds transactions of both kinds.
    for thread in live_server.dump_threads():
        live_server.execute(f"KILL {thread}")
    live_server.rotate()
    live_server.execute(f"PURGE BINARY LOGS TO '{live_server.position()[0]}'")


@pytest.mark.parametrize(
    ("before", "behind", "advice"),
    [("OFF", "ON", "ON_PERMISSIVE"), ("ON", "OFF", "OFF_PERMISSIVE")],
)
def test_a_switch_while_the_stream_is_behind(
    *,
    switchable: Server,
    database: str,
    new_stream: NewStream,
    before: str,
    behind: str,
    advice: str,
) -> None:
    table = f"{database}.t"
    switchable.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY)")
    switch(switchable, before)
    start = new_stream(switchable, table).initial()
    insert(switchable, table, 1)
    switch(switchable, behind)
    insert(switchable, table, 2)
    with pytest.raises(ServerError) as refused:
        new_stream(switchable, table).next_batch(start)
    assert f"SET GLOBAL gtid_mode = {advice} until it has caught up" in refused.value.message
    # And that is the way on, with the same checkpoint.
    switch(switchable, advice)
    stream = new_stream(switchable, table)
    got: list[int] = []
    while len(got) < 2:
        end = stream.next_batch(start)
        got += ids(stream.rows(start, end))
        start = end
    assert got == [1, 2]
