"""The files of a stream, with the methods of `StreamServer`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress

from pyspark_mysqlbinlog.checkpoints.fingerprint import PositionFingerprint
from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.checkpoints.position import FIRST_EVENT, Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.log.files.file_log import FileLog
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.schemas.initial_history import (
    check_columns_of_options,
    history_of_files,
)
from pyspark_mysqlbinlog.connector.server.settings import ServerFacts
from pyspark_mysqlbinlog.connector.source.start_offset import ResolvedStart, start_of_files
from pyspark_mysqlbinlog.connector.tail.prepared_transactions import first_needed
from pyspark_mysqlbinlog.errors import BinlogGapError, MalformedEventError
from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.protocol.binlog_files.compressed_files import binlog_name
from pyspark_mysqlbinlog.protocol.binlog_files.files import file_ends
from pyspark_mysqlbinlog.protocol.binlog_files.locations import located
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["StreamFiles"]


class StreamFiles:
    """The files at the path that the options name."""

    def __init__(self, options: Options) -> None:
        assert options.path is not None
        self._options = options
        self._path = options.path
        # The server version of the last batch's file, by its name.
        self._versions: dict[str, str] = {}

    def start(self) -> ResolvedStart:
        """Resolve the start of a query without a checkpoint."""
        return start_of_files(self._options, streaming=True)

    def note_facts(self, facts: ServerFacts) -> None:
        """Ignore the facts of the start: each file contains those of its server."""

    def facts(self, offset: Offset | None = None) -> ServerFacts:
        """Return the facts of the server that wrote the file of an offset."""
        if offset is None:
            return ServerFacts(self.is_case_sensitive(), "")
        name = offset.position.file
        if name not in self._versions:
            log = FileLog.numbered(self._path, offset.position.number)
            if log.numbers[:1] != (offset.position.number,):
                # The file was deleted after it was read.
                return ServerFacts(self.is_case_sensitive(), "")
            self._versions = {name: log.server_version(name)}
        return ServerFacts(self.is_case_sensitive(), self._versions[name])

    def is_case_sensitive(self) -> bool:
        """Return whether the server that wrote the files distinguishes names by case."""
        return self._options.files_are_case_sensitive

    def end(self) -> tuple[Position, Mapping[str, int]]:
        """Return the end of the last file, and the files with their sizes, oldest first."""
        log = FileLog.numbered(self._path)
        sizes: dict[str, int] = {}
        for path in map(located, log.paths):
            sizes[binlog_name(path)] = FIRST_EVENT
        if not sizes:
            raise BinlogGapError(
                f"option path: {self._path!r} has no file whose name ends in a number, as those of"
                " SHOW BINARY LOGS do"
            )
        last = next(reversed(sizes))
        # A compressed file may be in the middle of its copy.
        with suppress(MalformedEventError):
            sizes[last] = max(file_ends(located(log.paths[-1])).size, FIRST_EVENT)
        return Position.of(last, sizes[last]), sizes

    def end_of_log(self, _: Offset) -> Position:
        """Return the end of the last file."""
        return self.end()[0]

    def check_identity(self, offset: Offset) -> None:
        """Raise BinlogGapError: the files end before an offset."""
        raise BinlogGapError(
            f"the files at the path end at {self.end_of_log(offset)}, before the checkpoint's"
            " position: copy the server's files up to there, or continue on the server (option"
            " host)",
            file=offset.position.file,
            position=offset.position.pos,
        )

    def history_for_other_tables(
        self, history: SchemaHistory, position: Position, _: PositionFingerprint | None
    ) -> SchemaHistory:
        """Return a checkpoint's history for a query that captures other tables than its writer.

        Newly captured tables are known if the files contain their DDL.
        """
        log = FileLog.open(self._path, is_numbered=True)
        captures = self._options.table_filter(self.is_case_sensitive()).captures
        found = history_of_files(log, self._options, has_checkpoint=True).select(
            lambda *name: captures(*name) and history.state(position, *name) is None
        )
        history = history.merged(found.from_position(position))
        check_columns_of_options(self._options, history, self.is_case_sensitive())
        return history

    def learned(
        self, history: SchemaHistory, _tables: Collection[Table], _since: Position
    ) -> SchemaHistory:
        """Return the history: nothing else can be queried."""
        return history

    def last_table(self, database: str, table: str) -> TableSchema | None:
        """Return the last schema of a table in the files; None if it is not known."""
        log = FileLog.open(self._path, is_numbered=True)
        history = history_of_files(log, self._options)
        versions = history.versions(database, table)
        schema = versions[-1][1] if versions else None
        return schema if isinstance(schema, TableSchema) else None

    def range_log(self, first: Offset, last: Offset) -> FileLog:
        """Return the files of a batch; BinlogPurgedError if one is missing."""
        begin = first_needed(first.position, first.prepared_xa)
        return FileLog.numbered(self._path, begin.number).between(begin, last.position)

    def __str__(self) -> str:
        return f"the files at {self._path}"
