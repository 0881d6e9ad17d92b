"""Which tables' rows change by foreign keys, as the server tells it."""

from __future__ import annotations

from helpers.servers import Server
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.server.cascades import cascades_into
from pyspark_mysqlbinlog.protocol.client import ReplicaClient


def test_rules_that_change_rows(any_server: Server, any_database: str) -> None:
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
    assert found == [
        f"{any_database}.deleted (ON DELETE CASCADE of {any_database}.p)",
        f"{any_database}.emptied (ON DELETE SET NULL and ON UPDATE CASCADE of {any_database}.p)",
    ]
