"""Compares the tables of a mirror with the server's, table by table.

For each table, both sides are read once, in parallel and in parts. Of each row its digests go to
partitions on disk (see `partitions`), which are then compared one by one. Rows that differ are
candidates: `confirmation` reads them again.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

import pyarrow as pa

from pyspark_mysqlbinlog.checkpoints.fingerprint import PositionFingerprint
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.delta.query.captured import CapturedTables
from pyspark_mysqlbinlog.connector.delta.query.table_failures import (
    may_concern_table,
    store_error,
)
from pyspark_mysqlbinlog.connector.delta.rows.columns import check_distinct
from pyspark_mysqlbinlog.connector.delta.store.commit_markers import LogIdentity
from pyspark_mysqlbinlog.connector.delta.store.places.names import is_catalog_name
from pyspark_mysqlbinlog.connector.delta.store.places.paths import PathTemplate
from pyspark_mysqlbinlog.connector.log.server_log import ServerLog
from pyspark_mysqlbinlog.connector.options.checks import check_condition_tables, check_stream
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.server.information_schema import read_table_schemas
from pyspark_mysqlbinlog.connector.server.settings import (
    ServerFacts,
    current_position,
)
from pyspark_mysqlbinlog.connector.verification.comparison import candidates_of
from pyspark_mysqlbinlog.connector.verification.confirmation import Confirmation, Found
from pyspark_mysqlbinlog.connector.verification.delta_rows import DeltaRows
from pyspark_mysqlbinlog.connector.verification.digests import digests_of
from pyspark_mysqlbinlog.connector.verification.partitions import HashPartitions, partition_count
from pyspark_mysqlbinlog.connector.verification.results import TableResult
from pyspark_mysqlbinlog.connector.verification.server_table import ComparedServer, ServerTable
from pyspark_mysqlbinlog.errors import (
    MirrorError,
    MySQLBinlogError,
    OptionError,
    UnknownTableError,
)
from pyspark_mysqlbinlog.names import Table, quoted, table_folding
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["MAX_CANDIDATES", "Verifier"]

# Candidates of one table that are confirmed: their keys and digests are in memory.
MAX_CANDIDATES = 200_000
# The options of a mirror that decide how rows are converted, and what is read of the binlog.
_FIXED_OPTIONS = {
    "payload": "json",
    "jsonType": "text",
    "operations": "insert,update,delete,truncate,ddl",
}
# Options that name other tables than the one that is read.
_OF_ALL_TABLES = frozenset({"tables", "excludetables", "snapshotwhere", "reload"})
# How often the rows of a table without a key are read, if reading them fails.
_KEYLESS_TRIES = 3


class Verifier:
    """Compares tables of one mirror.

    Parameters
    ----------
    options : of the mirror's source, as texts.
    target : path or URI of its Delta tables, as the mirror's.
    storage_options : of delta-rs.
    parallel : connections that read a table at the same time.
    timeout : seconds for the candidates of a table.
    shown : differences that are listed of each table.
    """

    def __init__(
        self,
        options: Mapping[str, str],
        target: str,
        *,
        storage_options: Mapping[str, str] | None = None,
        parallel: int = 2,
        timeout: float = 60.0,
        shown: int = 20,
    ) -> None:
        for name in _FIXED_OPTIONS:
            if name.lower() in {given.lower() for given in options}:
                raise OptionError(f"option {name}: a mirror sets it; leave it out")
        if parallel < 1:
            raise OptionError(f"parallel: expected 1 or more, found {parallel}")
        self._texts = dict(options) | _FIXED_OPTIONS
        self._options = parse_options(self._texts)
        check_stream(self._options)
        if self._options.has_transforms:
            raise OptionError(
                "options maskColumns and rowFilter: the server's rows cannot be compared with"
                " masked or filtered ones; remove them, and compare the other tables"
            )
        if is_catalog_name(target):
            raise OptionError(
                f"target: expected a path or URI, found the catalog name {target!r}: verify reads"
                " Delta tables with delta-rs, which resolves no names; give the location of the"
                " tables as a path with {database} and {table} (DESCRIBE DETAIL shows that of a"
                " table; names in a catalog are in lower case)"
            )
        self._template = PathTemplate.parse(target)
        self._storage = dict(storage_options or {})
        self._parallel = parallel
        self._timeout = timeout
        self._shown = shown

    def results(self) -> Iterator[TableResult]:
        """Compare the tables one after the other; raises what connecting to the server raises."""
        server, tables = self._look()
        # Positions of one server are meaningless on another.
        self._options = self._options.bound_to(server.uuid)
        case_sensitive = server.facts.case_sensitive
        captured = CapturedTables.of(self._options, {}, case_sensitive=case_sensitive)
        conditions = self._options.conditions(case_sensitive)
        folded = table_folding(case_sensitive)
        for whole in tables:
            _, schema = captured.as_delivered((server.position, whole))
            assert isinstance(schema, TableSchema)
            table = schema.database, schema.table
            began = monotonic()
            try:
                check_distinct((column.name for column in schema.columns), schema.full_name)
                _check_key(schema)
                options = self._options_of(table).bound_to(server.uuid)
                condition = conditions.get(folded(table))
                rows = ServerTable(server, options, whole, schema, condition)
                result = self._compare(table, rows, server)
            except MySQLBinlogError as error:
                result = TableResult(table, reason=error.message)
            except Exception as error:
                if not may_concern_table(error):
                    raise store_error(error) from error
                message = " ".join(str(error).split())
                result = TableResult(table, reason=f"{type(error).__name__}: {message}")
            yield replace(result, seconds=monotonic() - began)

    def _look(self) -> tuple[ComparedServer, list[TableSchema]]:
        """Return the server and its tables; UnknownTableError if a named one does not exist."""
        with ReplicaClient.connect(self._options.server_settings()) as client:
            facts = ServerFacts.ask(client)
            uuid = client.server_uuid()
            here, server_id = current_position(client), int(client.variable("server_id") or 0)
            identity = LogIdentity.of_file(uuid, server_id, 0, here.file).server
            server = ComparedServer(facts, uuid, identity, here)
            check_condition_tables(self._options, facts.case_sensitive)
            table_filter = self._options.table_filter(facts.case_sensitive)
            tables = read_table_schemas(client, table_filter.captures)
        folded = table_folding(facts.case_sensitive)
        there = {folded((each.database, each.table)) for each in tables}
        for name in table_filter.literals:
            if folded(name) not in there:
                raise UnknownTableError(
                    "option tables: the server has no such table; check the spelling and the"
                    " account's SELECT grant",
                    table=".".join(name),
                )
        if not tables:
            raise UnknownTableError("option tables: the server has no table that matches")
        return server, tables

    def _options_of(self, table: Table) -> Options:
        """Return the options with one table."""
        texts = {
            name: text for name, text in self._texts.items() if name.lower() not in _OF_ALL_TABLES
        }
        return parse_options(texts | {"tables": quoted(*table)})

    def _compare(self, table: Table, rows: ServerTable, server: ComparedServer) -> TableResult:
        delta = DeltaRows(self._template.render(table), self._storage, rows.schema.full_name)
        delta.check_columns(rows.columns)
        log = delta.log(server.identity, server.position)
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mysqlbinlog-")))
            count = partition_count(delta.count(), _key_bytes(rows))
            sides = []
            for name in ("server", "delta"):
                (folder / name).mkdir()
                sides.append(stack.enter_context(HashPartitions(folder / name, count)))
            on_server, on_delta = sides
            self._read_both(rows, delta, on_server, on_delta)
            for side in sides:
                side.flush()
            candidates, more = _first(candidates_of(on_server, on_delta, count))
        result = TableResult(
            table,
            on_server.rows,
            on_delta.rows,
            stopped=delta.stopped,
            position=str(delta.applied(log, server.position)),
        )
        if candidates is None:
            return result
        confirmation = Confirmation(rows, delta, log, self._fingerprint_at, shown=self._shown)
        found = confirmation.confirm(candidates, self._timeout)
        left = 0 if found.left is None else found.left.num_rows
        return replace(
            result,
            counts=dict(found.counts),
            shown=tuple(found.shown),
            unconfirmed=left + more,
            pending=found.pending,
            reason=_reason(found, left, more),
            stopped=delta.stopped,
            position=result.position if found.applied is None else str(found.applied),
        )

    def _fingerprint_at(self, position: Position) -> PositionFingerprint | None:
        return ServerLog(self._options.server_settings()).fingerprint_at(position)

    def _read_both(
        self,
        rows: ServerTable,
        delta: DeltaRows,
        on_server: HashPartitions,
        on_delta: HashPartitions,
    ) -> None:
        """Fill the partitions of both sides."""

        def read_delta() -> None:
            for part in delta.batches(rows.columns):
                on_delta.add(digests_of(part, rows.key))

        with ThreadPoolExecutor(self._parallel + 1) as threads:
            other = threads.submit(read_delta)
            if rows.key:
                _read_chunks(rows, on_server, threads, self._parallel)
            else:
                _read_whole(rows, on_server, threads, self._parallel)
            other.result()


def _read_chunks(
    rows: ServerTable, into: HashPartitions, threads: ThreadPoolExecutor, parallel: int
) -> None:
    def read(chunk: Any) -> None:
        for part in rows.rows(chunk):
            into.add(digests_of(part, rows.key))

    running: set[Future[None]] = set()
    for chunk in rows.chunks(parallel):
        running.add(threads.submit(read, chunk))
        if len(running) >= parallel:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for each in done:
                each.result()
    for each in running:
        each.result()


def _read_whole(
    rows: ServerTable, into: HashPartitions, threads: ThreadPoolExecutor, parallel: int
) -> None:
    """Read a table without a key; again from its beginning after an error."""
    for attempt in range(1, _KEYLESS_TRIES + 1):
        try:
            _read_chunks(rows, into, threads, parallel)
        except MySQLBinlogError:
            if attempt == _KEYLESS_TRIES:
                raise
            into.clear()
        else:
            return


def _first(parts: Iterator[pa.Table]) -> tuple[pa.Table | None, int]:
    """Return the candidates to confirm, at most MAX_CANDIDATES, and the number of the others."""
    kept: list[pa.Table] = []
    count = more = 0
    for part in parts:
        taken = part.slice(0, MAX_CANDIDATES - count)
        count += taken.num_rows
        more += part.num_rows - taken.num_rows
        if taken.num_rows:
            kept.append(taken)
    return (pa.concat_tables(kept) if kept else None), more


def _check_key(schema: TableSchema) -> None:
    """Raise MirrorError if a column of the key is excluded: a mirror stops such a table."""
    missing = {*schema.row_key} - {column.name for column in schema.columns}
    if missing:
        raise MirrorError(
            f"excludeColumns excludes {min(missing)}, a column of the key that identifies rows",
            table=schema.full_name,
        )


def _key_bytes(rows: ServerTable) -> int:
    """Return the approximate bytes of a row's key."""
    return 8 * len(rows.key) or 8


def _reason(found: Found, left: int, more: int) -> str | None:
    """Return why rows are not confirmed; None if all are."""
    if found.reason is not None:
        return found.reason
    if left:
        return (
            f"{left:,} rows were changed after {found.applied}, up to which the Delta table is"
            " complete: start the mirror, or give --timeout more seconds"
        )
    if more:
        return f"only the first {MAX_CANDIDATES:,} rows that differed were read again"
    return None
