"""Times in a real server's log, whose files are hours apart."""

from __future__ import annotations

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.log import ServerLog
from pyspark_mysqlbinlog.connector.server import binlog_files
from pyspark_mysqlbinlog.connector.times import first_since

from live_log import client_of
from servers import Server

HOUR = 3600


def test_a_time_in_many_files(any_server: Server, any_database: str) -> None:
    """A session's own time is that of its transactions, and of the head of a file it begins."""
    any_server.execute(f"CREATE TABLE {any_database}.t (id INT PRIMARY KEY)")
    with client_of(any_server) as client:
        ((now,),) = client.query("SELECT UNIX_TIMESTAMP()")
        times = [int(now) + n * HOUR for n in range(1, 10)]
        for time in times:
            client.query(f"SET TIMESTAMP = {time}")
            client.query("FLUSH BINARY LOGS")
            client.query(f"INSERT INTO {any_database}.t VALUES ({time - int(now)})")
        begins = [Position.of(file, 4) for file in binlog_files(client)]
        # What comes next has the clock's times again.
        client.query("SET TIMESTAMP = DEFAULT")
        client.query("FLUSH BINARY LOGS")
    log = ServerLog(any_server.settings(ssl_mode="DISABLED"))
    expected = begins[-len(times) :]
    for time, begin in zip(times, expected, strict=True):
        assert first_since(log, begins, time) == begin
        assert first_since(log, begins, time - HOUR / 2) == begin
    assert first_since(log, begins, times[-1] + 1) is None
    assert first_since(log, expected[3:], times[0]) == expected[3]
