"""Tables whose rows are changed by foreign keys without the binlog."""

from __future__ import annotations

import pytest

from helpers.logs.live_log import log_events, schemas_of, selected
from helpers.parity.decoding import decoder, rows_of
from helpers.replay import Replay
from helpers.servers import MySQL9Server, Server
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.server.cascades import cascades_into
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient


def test_unlogged_cascades_into_captured_tables_are_reported(
    any_server: Server, any_database: str
) -> None:
    any_server.execute(
        "CREATE TABLE p (id INT PRIMARY KEY, q INT, FOREIGN KEY (q) REFERENCES p (id))",
        "CREATE TABLE deleted (p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE)",
        "CREATE TABLE emptied (p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE SET NULL"
        " ON UPDATE CASCADE)",
        "CREATE TABLE kept (p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE RESTRICT)",
        "CREATE TABLE unwanted (p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE)",
        database=any_database,
    )
    wanted = {(any_database, name) for name in ("p", "deleted", "emptied", "kept")}
    settings = parse_options(any_server.options(tables=f"{any_database}.*")).server_settings()
    with ReplicaClient.connect(settings) as client:
        found = [str(each) for each in cascades_into(client, wanted)]
    if any_server.is_mysql9():  # MySQL 9 logs these changes
        assert found == []
        return
    assert found == [
        f"{any_database}.deleted (ON DELETE CASCADE of {any_database}.p)",
        f"{any_database}.emptied (ON DELETE SET NULL and ON UPDATE CASCADE of {any_database}.p)",
    ]


@pytest.mark.parametrize("native", ["OFF", "ON"])
def test_rows_that_mysql_9_changes_by_foreign_keys_are_logged_or_reported(
    mysql9: Server, native: str
) -> None:
    """With OFF, the default, the binlog contains them; with ON they are missing and reported."""
    with MySQL9Server([f"--innodb-native-foreign-keys={native}"]) as server:
        server.execute("CREATE DATABASE cascading")
        start = server.position()
        server.execute(
            "CREATE TABLE p (id INT PRIMARY KEY)",
            "CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id)"
            " ON DELETE CASCADE ON UPDATE CASCADE)",
            "CREATE TABLE n (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id)"
            " ON DELETE SET NULL)",
            "INSERT INTO p VALUES (1), (2), (3)",
            "INSERT INTO c VALUES (10, 1), (20, 2), (30, 3)",
            "INSERT INTO n VALUES (10, 1), (20, 3)",
            "DELETE FROM p WHERE id = 1",
            "UPDATE p SET id = 7 WHERE id = 2",
            database="cascading",
        )
        schemas = schemas_of(server, "cascading")
        replay = Replay(schemas)
        events = log_events(server, start, "cascading")
        replay.apply(rows_of(decoder(schemas).decode(events)))
        shown = dict(zip((each.table for each in schemas), selected(server, *schemas), strict=True))
        is_equal = {}
        for name, rows in shown.items():
            try:
                replay.assert_equals("cascading", name, rows)
                is_equal[name] = True
            except AssertionError:
                is_equal[name] = False
        settings = parse_options(server.options(tables="cascading.*")).server_settings()
        with ReplicaClient.connect(settings) as client:
            reported = {
                each.table[1]
                for each in cascades_into(client, {("cascading", name) for name in shown})
            }
    assert is_equal == {name: native == "OFF" or name == "p" for name in shown}
    assert reported == (set() if native == "OFF" else {"c", "n"})
