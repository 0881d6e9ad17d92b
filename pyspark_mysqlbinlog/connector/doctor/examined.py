"""The server that is examined, with the answers that several checks use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from pyspark_mysqlbinlog.checkpoints.position import BEGINNING
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.doctor.remedies import Remedies
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.server.grants import Grants
from pyspark_mysqlbinlog.connector.server.information_schema import read_table_schemas
from pyspark_mysqlbinlog.connector.server.settings import ServerFacts
from pyspark_mysqlbinlog.connector.snapshot.chunks.table_stats import engines_of
from pyspark_mysqlbinlog.connector.snapshot.visibility.checker import VisibilityChecker
from pyspark_mysqlbinlog.errors import MySQLBinlogError
from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["ExaminedServer"]

_MAX_UNREADABLE = 20


class ExaminedServer:
    """One server, over one connection.

    Parameters
    ----------
    for_mirror : the options are those of a mirror.

    Raises
    ------
    LostConnectionError, ServerError : as `ReplicaClient.query` does.
    """

    def __init__(self, client: ReplicaClient, options: Options, *, for_mirror: bool) -> None:
        self.client = client
        self.options = options
        self.settings = options.server_settings()
        self.for_mirror = for_mirror
        self.facts = ServerFacts.ask(client)
        self.tables = options.table_filter(self.facts.case_sensitive)
        self.remedies = Remedies.ask(client)

    def variable(self, name: str) -> str | None:
        """Return a global variable's value; None if the server does not have it."""
        return self.client.variable(name)

    @cached_property
    def is_logging(self) -> bool:
        """Whether the server writes a binlog."""
        return self.variable("log_bin") == "ON"

    @cached_property
    def grants(self) -> Grants:
        """What the account can see."""
        return Grants.ask(self.client, case_sensitive=self.facts.case_sensitive)

    @cached_property
    def _read(self) -> tuple[Sequence[TableSchema], Sequence[MySQLBinlogError]]:
        """The captured tables, and the errors of those that cannot be read."""
        errors: list[MySQLBinlogError] = []
        unread: set[str] = set()

        def captures(database: str, table: str) -> bool:
            return f"{database}.{table}" not in unread and self.tables.captures(database, table)

        while True:
            try:
                return read_table_schemas(self.client, captures), errors
            except MySQLBinlogError as error:
                errors.append(error)
                # Each try reads all tables again.
                if error.table in {None, *unread} or len(errors) == _MAX_UNREADABLE:
                    return (), errors
                unread.add(str(error.table))

    @property
    def schemas(self) -> Sequence[TableSchema]:
        """The captured tables that can be read."""
        return self._read[0]

    @property
    def unreadable(self) -> Sequence[MySQLBinlogError]:
        """The errors of captured tables that cannot be read, as a query raises them."""
        return self._read[1]

    @property
    def names(self) -> list[Table]:
        """The names of the captured tables that can be read."""
        return [(schema.database, schema.table) for schema in self.schemas]

    @cached_property
    def history(self) -> SchemaHistory:
        """The captured tables, as a query that begins now has them."""
        return SchemaHistory(
            {(each.database, each.table): ((BEGINNING, each),) for each in self.schemas}
        )

    @cached_property
    def engines(self) -> Mapping[Table, str]:
        """The storage engines of the captured tables."""
        return engines_of(self.client, set(self.names))

    @cached_property
    def visibility(self) -> VisibilityChecker:
        """How a snapshot can verify what its SELECTs see."""
        return VisibilityChecker.ask(
            self.client,
            self.options.snapshot_visibility_check,
            case_sensitive=self.facts.case_sensitive,
        )
