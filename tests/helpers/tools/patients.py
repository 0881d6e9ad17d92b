"""A healthy server and lake, in which `planted_faults` plants faults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pymysql.constants import CLIENT
from pyspark.sql.types import StringType

from helpers.servers import LocalServer, MariaDBServer, MySQL9Server, MySQL56Server
from helpers.servers.mysql57 import MySQL57Server
from pyspark_mysqlbinlog.connector.cli.console.findings import remedies_of
from pyspark_mysqlbinlog.connector.delta.mirror import mirror_options
from pyspark_mysqlbinlog.connector.doctor.examination import examine
from pyspark_mysqlbinlog.connector.doctor.finding import Finding
from pyspark_mysqlbinlog.connector.doctor.remedies import quoted_account
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.source.schema import output_schema
from pyspark_mysqlbinlog.connector.source.stream_reader import MySQLBinlogStreamReader
from pyspark_mysqlbinlog.errors import MySQLBinlogError

__all__ = ["ACCOUNT", "KINDS", "NEWER", "OF_MIRROR", "PASSWORD", "USER", "Patient", "arguments_of"]

KINDS: tuple[type[LocalServer], ...] = (
    MySQL56Server,
    MySQL57Server,
    MySQL9Server,
    MariaDBServer,
)
# Servers with features that 5.6 does not have, and that differ in MariaDB.
NEWER = (MySQL57Server.name, MySQL9Server.name)
# Both need quoting in statements.
USER, PASSWORD = "doc'`tor", "s3cret'"
ACCOUNT = quoted_account(f"{USER}@%")
_GRANTS = {
    "": ("REPLICATION SLAVE ON *.*", "REPLICATION CLIENT ON *.*", "PROCESS ON *.*"),
    # To see replicas and foreign keys.
    MariaDBServer.name: ("REPLICATION MASTER ADMIN ON *.*", "REFERENCES ON {database}.*"),
}
# Checks that only a mirror makes, at its first batch.
OF_MIRROR = {
    "row image",
    "keyless locks",
    "column names",
    "target storage",
    "target paths",
    "target tables",
}


def arguments_of(kind: type[LocalServer]) -> list[str]:
    """Return the arguments of a healthy server."""
    found = ["--server-id=7"]
    if kind is not MariaDBServer:
        found += ["--gtid-mode=ON", "--enforce-gtid-consistency", "--log-slave-updates"]
    if kind in {MySQL57Server, MySQL9Server}:
        found += ["--performance-schema=ON"]
    if kind in {MySQL9Server, MariaDBServer}:
        found += ["--binlog-row-metadata=FULL"]
    return found


@dataclass
class Patient:
    """A server with an account and a database, a folder for Delta tables, and a query's options."""

    server: LocalServer
    database: str
    folder: Path
    options: dict[str, str] = field(default_factory=dict)
    storage: dict[str, str] = field(default_factory=dict)
    target: str = ""

    def __post_init__(self) -> None:
        self.lake = self.folder / "lake"
        self.target = self.target or f"{self.lake}/{{database}}/{{table}}"
        self.options = {
            "host": self.server.host,
            "port": str(self.server.port),
            "user": USER,
            "password": PASSWORD,
            "tables": f"{self.database}.*",
            "connectTimeout": "60s",
        } | self.options
        kind = self.server.name
        self.execute(
            f"CREATE USER {ACCOUNT} IDENTIFIED BY 's3cret\\''",
            *(
                f"GRANT {grant} TO {ACCOUNT}"
                for each in ("", kind)
                for grant in _GRANTS.get(each, ())
            ),
            f"GRANT SELECT ON `{{database}}`.* TO {ACCOUNT}",
            "CREATE TABLE {database}.t (id INT PRIMARY KEY, v VARCHAR(20))",
            "INSERT INTO {database}.t VALUES (1, 'a')",
        )
        if kind in NEWER:
            for table in ("threads", "variables_by_thread"):
                self.execute(f"GRANT SELECT ON performance_schema.{table} TO {ACCOUNT}")

    def execute(self, *statements: str) -> None:
        """Run statements as the administrator, with the name of the database filled in."""
        named = [each.replace("{database}", self.database) for each in statements]
        if named:
            self.server.execute(*named)

    def findings(self) -> list[Finding]:
        """Return the doctor's findings, without those that are ok."""
        options = parse_options(mirror_options(self.options))
        found = [*examine(options, self.target, self.storage)]
        return [each for each in found if each.status != "ok"]

    def paste(self, findings: Sequence[Finding]) -> None:
        """Execute the statements that the doctor prints, all at once, as the administrator."""
        text = "\n".join(remedies_of(findings)).replace("'…'", "'s3cret\\''")
        flag = CLIENT.MULTI_STATEMENTS
        with self.server.connect(client_flag=flag) as connection, connection.cursor() as cursor:
            cursor.execute(f"{text}\nDO 0")
            while cursor.nextset():
                pass

    def error_of_query(self) -> str | None:
        """Return the error of a mirror's source at its start, if any."""
        options = parse_options(mirror_options(self.options))
        reader = MySQLBinlogStreamReader(options, output_schema(StringType()))
        try:
            reader.initialOffset()
        except MySQLBinlogError as error:
            return str(error)
        finally:
            reader.stop()
        return None

    def recover(self) -> None:
        """Make the server healthy again for the next fault."""
        self.execute(f"DROP USER {ACCOUNT}", "DROP DATABASE IF EXISTS {database}_2")
        if self.server.is_mysql9():
            self.execute("RESET PERSIST")
        if self.server.arguments != tuple(arguments_of(type(self.server))):
            self.restart()

    def restart(self, *more: str) -> None:
        """Restart the server with the arguments of a healthy one and `more`."""
        self.server.halt()
        self.server.arguments = (*arguments_of(type(self.server)), *more)
        self.server.start()
