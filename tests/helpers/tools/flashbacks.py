"""Undo of one database's changes, and comparison with the state before them."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from typer.testing import CliRunner, Result

from helpers.logs.live_log import new_database, schemas_of, selected
from helpers.servers import Server
from helpers.servers.available import every_server
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.cli.main import app
from pyspark_mysqlbinlog.connector.flashback.changes import Changes
from pyspark_mysqlbinlog.connector.flashback.table_facts import read_table_facts
from pyspark_mysqlbinlog.connector.flashback.window import WindowBounds
from pyspark_mysqlbinlog.connector.inspection.entries import Cell
from pyspark_mysqlbinlog.connector.log.server_log import ServerLog
from pyspark_mysqlbinlog.connector.server.settings import ServerFacts
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient

__all__ = ["CHILD", "CREATE", "Flashbacks", "PARENT_AND_CHILD", "every_server_fixture"]

CREATE = (
    "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(20), n INT) CHARSET utf8mb4",
    "INSERT INTO t VALUES (1, 'one', 1), (2, 'two', 2), (3, 'three', 3)",
)
CHILD = (
    "CREATE TABLE c (id INT PRIMARY KEY, p INT, CONSTRAINT {} FOREIGN KEY (p) REFERENCES p (id) {})"
)
PARENT_AND_CHILD = (
    "CREATE TABLE p (id INT PRIMARY KEY, v INT)",
    CHILD.format("children", "ON DELETE CASCADE ON UPDATE CASCADE"),
    "INSERT INTO p VALUES (1, 1)",
)

# Session settings with which values are stored as they are given.
_SESSION = (
    "SET SESSION sql_mode = 'ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO', time_zone = '+00:00'"
)
# (table, operation, before, after) of a change: the bytes of each column.
Logged = tuple[str, str, tuple[bytes, ...] | None, tuple[bytes, ...] | None]


def every_server_fixture() -> list[str]:
    """Return the fixtures of all servers on which statements may differ."""
    return [*every_server(), "mysql9"]


@dataclass
class Flashbacks:
    """A database whose changes are undone.

    Attributes
    ----------
    start : where the window begins; see `begin`.
    """

    server: Server
    database: str
    folder: Path
    start: tuple[str, int] = ("", 4)

    @classmethod
    @contextmanager
    def on(cls, server: Server, name: str) -> Iterator[Self]:
        """Yield an empty database of this name, which is dropped at the end."""
        with new_database(server, name), tempfile.TemporaryDirectory() as folder:
            yield cls(server, name, Path(folder))

    def execute(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements; values are stored as they are given."""
        return self.server.execute(_SESSION, *statements, database=self.database)

    def begin(self) -> None:
        """Begin the window at the server's current position."""
        self.start = self.server.position()

    @property
    def since(self) -> str:
        return f"{self.start[0]}:{self.start[1]}"

    def run(
        self,
        *arguments: str,
        tables: str | None = None,
        answer: str = "",
        password: bool = True,
    ) -> Result:
        """Run the command on this database's tables; `password` gives the administrator's."""
        file = self.folder / "password"
        file.write_text(self.server.password)
        return CliRunner().invoke(
            app,
            [
                "flashback",
                *("--host", self.server.host, "--port", str(self.server.port)),
                *("--user", self.server.user),
                *(["--password-file", str(file)] if password else []),
                *("--tables", tables or f"{self.database}.*"),
                *arguments,
            ],
            input=answer,
        )

    def statements(self, *arguments: str) -> list[dict[str, Any]]:
        """Return the lines of --json; the last one contains the counts."""
        shown = self.run("--json", *arguments)
        assert shown.exit_code in (0, 3), shown.output
        return [json.loads(line) for line in shown.stdout.splitlines()]

    def undo(self, *arguments: str) -> None:
        """Apply the undo of the window from `start` on."""
        shown = self.run("--since", self.since, "--apply", "--yes", *arguments)
        assert shown.exit_code == 0, shown.output

    def undo_and_check(self) -> None:
        """Undo, and compare the log of the undo with that of the changes, byte by byte."""
        changes = self.logged(self.start)
        middle = self.server.position()
        self.undo()
        exchanged = {"c": "d", "d": "c", "u": "u"}
        undone = [
            (table, exchanged[op], after, before) for table, op, before, after in reversed(changes)
        ]
        logged = self.logged(middle)
        different = [pair for pair in zip(undone, logged, strict=True) if pair[0] != pair[1]]
        assert not different, different[:3]

    def logged(self, start: tuple[str, int]) -> list[Logged]:
        """Return the changes from a position to the end of the binlog."""
        with ReplicaClient.connect(self.server.settings()) as client:
            facts = ServerFacts.ask(client)
            tables = read_table_facts(
                client,
                lambda database, _: database == self.database,
                case_sensitive=facts.case_sensitive,
            )
        begin, end = Position.of(*start), Position.of(*self.server.position())
        log = ServerLog.seen_from(self.server.settings(), end)
        changes = Changes(
            log,
            WindowBounds(begin, end, None),
            end,
            lambda database, _: database == self.database,
            tables=tables,
            server=facts,
        )
        return [
            (
                change.facts.schema.table,
                change.op,
                None if change.before is None else tuple(map(_bytes, change.before)),
                None if change.after is None else tuple(map(_bytes, change.after)),
            )
            for change in changes
        ]

    def shown(self, *tables: str) -> dict[str, list[tuple[Any, ...]]]:
        """Return the rows of the named tables, or of all, as SELECT shows them, sorted."""
        schemas = [
            schema
            for schema in schemas_of(self.server, self.database)
            if not tables or schema.table in tables
        ]
        rows = selected(self.server, *schemas)
        return {
            schema.table: sorted(of_table, key=repr)
            for schema, of_table in zip(schemas, rows, strict=True)
        }


def _bytes(cell: Cell) -> bytes:
    """Return the bytes of a value, but the decoded values of a JSON document.

    The precision of a DECIMAL in a document depends on the expression that it comes from, and is
    not visible.
    """
    is_json = cell.column.schema is not None and cell.column.schema.type == "json"
    return repr(cell.value).encode() if is_json else cell.raw
