"""Delta by delta-rs (the package `deltalake`): in process, without jars in the JVM.

A table is opened once and brought up to date before it is read. What a merge has to load of the
table is bounded by literals: the least and the greatest value of each key column in the batch, by
which delta-rs leaves out files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import TableNotFoundError
from pyarrow import compute

from pyspark_mysqlbinlog.connector.delta.apply import GONE, SEQ
from pyspark_mysqlbinlog.connector.delta.marks import Mark

__all__ = ["DeltalakeEngine", "DeltalakeTarget"]

# The stubs know neither chunked arrays beside plain values nor what comes of them.
pc: Any = compute


class DeltalakeEngine:
    """Tables on local disk or in an object store.

    storage_options : as delta-rs takes them: keys, regions, endpoints.
    """

    def __init__(self, storage_options: Mapping[str, str] | None = None) -> None:
        self._storage = dict(storage_options or {})

    def target(self, uri: str) -> DeltalakeTarget:
        """The Delta table of a URI, which may not be there yet."""
        return DeltalakeTarget(uri, self._storage)


class DeltalakeTarget:
    """One Delta table; see `engine.DeltaTarget`."""

    def __init__(self, uri: str, storage_options: Mapping[str, str]) -> None:
        self._uri = uri
        self._storage = dict(storage_options)
        self._table: DeltaTable | None = None

    def _opened(self) -> DeltaTable | None:
        if self._table is None:
            try:
                self._table = DeltaTable(self._uri, storage_options=self._storage)
            except TableNotFoundError:
                return None
        else:
            self._table.update_incremental()
        return self._table

    def _there(self) -> DeltaTable:
        table = self._opened()
        assert table is not None, f"{self._uri} is not there"
        return table

    def columns(self) -> pa.Schema | None:
        table = self._opened()
        return None if table is None else _pyarrow(table.schema())

    def properties(self) -> Mapping[str, str]:
        table = self._opened()
        return {} if table is None else table.metadata().configuration

    def applied(self, app_id: str) -> int | None:
        table = self._opened()
        return None if table is None else table.transaction_version(app_id)

    def create(self, columns: pa.Schema, properties: Mapping[str, str]) -> None:
        self._table = DeltaTable.create(
            self._uri,
            columns,
            configuration=dict(properties),
            storage_options=self._storage,
            raise_if_key_not_exists=False,
        )

    def add_columns(self, columns: Sequence[pa.Field[Any]]) -> None:
        self._there().alter.add_columns(Schema.from_arrow(pa.schema(columns)).fields)

    def set_property(self, name: str, value: str) -> None:
        self._there().alter.set_table_properties({name: value}, raise_if_not_exists=False)

    def empty(self, before: Mapping[str, int]) -> None:
        self._there().delete(_is_before(before))

    def merge(self, states: pa.Table, key: Sequence[str], mark: Mark) -> None:
        same = [f"t.{quoted(name)} = s.{quoted(name)}" for name in key]
        newer = f"s.{SEQ} > t.{SEQ}"
        (
            self._there()
            .merge(
                states,
                " AND ".join([*same, *_bounds(states, key)]),
                source_alias="s",
                target_alias="t",
                streamed_exec=False,
                commit_properties=_marking(mark),
            )
            .when_matched_delete(f"s.{GONE} AND {newer}")
            .when_matched_update_all(newer, except_cols=[GONE])
            .when_not_matched_insert_all(f"NOT s.{GONE}", except_cols=[GONE])
            .execute()
        )


def _pyarrow(schema: Schema) -> pa.Schema:
    # pyarrow takes what deltalake gives by its C interface; its stubs do not.
    given: Any = schema.to_arrow()
    return pa.schema(given)


def quoted(name: str) -> str:
    """A column's name in SQL of datafusion."""
    return '"' + name.replace('"', '""') + '"'


def _marking(mark: Mark) -> CommitProperties:
    return CommitProperties(app_transactions=[Transaction(mark.app_id, mark.version)])


def _is_before(seq: Mapping[str, int]) -> str:
    """Whether a row's `seq` is smaller, as SQL."""
    said = "FALSE"
    for name, value in reversed(list(seq.items())):
        field = f"{SEQ}['{name}']"
        said = f"({field} < {value} OR ({field} = {value} AND {said}))"
    return said


def _bounds(states: pa.Table, key: Sequence[str]) -> list[str]:
    """Conditions by which files without any of the keys are left out."""
    said = []
    for name in key:
        column = states.column(name)
        if pa.types.is_integer(column.type):
            bounds: Any = pc.min_max(column).as_py()
            field = f"t.{quoted(name)}"
            said += [f"{field} >= {bounds['min']}", f"{field} <= {bounds['max']}"]
    return said
