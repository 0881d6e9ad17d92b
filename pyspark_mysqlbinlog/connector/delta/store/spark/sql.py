"""Spark SQL to write a Delta table: names, texts and types in it, and MERGE."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type

from pyspark_mysqlbinlog.connector.delta.rows.columns import SEQ, TOMBSTONE

__all__ = ["fields", "literal", "merge", "properties", "quoted", "sql_type"]


def quoted(name: str) -> str:
    """Quote a name."""
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """Quote a text."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def properties(given: Mapping[str, str]) -> str:
    """Return table properties in SQL."""
    return ", ".join(f"{literal(name)} = {literal(value)}" for name, value in given.items())


def sql_type(kind: pa.DataType) -> str:
    """Return the type that payload=struct has for an Arrow type."""
    return from_arrow_type(kind).simpleString()


def fields(columns: Iterable[pa.Field[Any]]) -> str:
    """Return columns with their types in SQL."""
    return ", ".join(f"{quoted(field.name)} {sql_type(field.type)}" for field in columns)


def merge(
    into: str, states: str, names: Sequence[str], conditions: Sequence[str], *, soft_deletes: bool
) -> str:
    """Return the MERGE that applies states unless the existing row is newer.

    into : the table, `t` in the conditions.
    states : their view, `s` in the conditions, with the table's columns and `TOMBSTONE`.
    names : the table's columns.
    conditions : when a state is of a row.
    """
    columns = [quoted(name) for name in names]
    newer = f"s.{SEQ} > t.{SEQ}"
    clauses = [
        f"MERGE INTO {into} t USING {states} s ON {' AND '.join(conditions)}",
        f"WHEN MATCHED AND s.{TOMBSTONE} AND {newer} THEN DELETE",
        f"WHEN MATCHED AND {newer} THEN UPDATE SET",
        ", ".join(f"t.{name} = s.{name}" for name in columns),
        f"WHEN NOT MATCHED AND NOT s.{TOMBSTONE} THEN INSERT",
        f"({', '.join(columns)}) VALUES ({', '.join(f's.{name}' for name in columns)})",
    ]
    if soft_deletes:
        del clauses[1]
        clauses[3] = "WHEN NOT MATCHED THEN INSERT"
    return " ".join(clauses)
