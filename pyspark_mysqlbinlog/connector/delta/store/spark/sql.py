"""The SQL of Spark in which a Delta table is written: names, texts and types in it, and MERGE."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type

from pyspark_mysqlbinlog.connector.delta.rows.columns import GONE, SEQ

__all__ = ["fields", "literal", "merge", "properties", "quoted", "sql_type"]


def quoted(name: str) -> str:
    """A name."""
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """A text."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def properties(given: Mapping[str, str]) -> str:
    """Table properties."""
    return ", ".join(f"{literal(name)} = {literal(value)}" for name, value in given.items())


def sql_type(kind: pa.DataType) -> str:
    """The type that payload=struct has for an Arrow type."""
    return from_arrow_type(kind).simpleString()


def fields(columns: Iterable[pa.Field[Any]]) -> str:
    """Columns, with their types."""
    return ", ".join(f"{quoted(field.name)} {sql_type(field.type)}" for field in columns)


def merge(
    into: str, states: str, names: Sequence[str], conditions: Sequence[str], *, soft_deletes: bool
) -> str:
    """Bring states in where what is there is not newer.

    into : the table, `t` in the conditions.
    states : the view of them, `s` in the conditions, with the table's columns and `GONE`.
    names : the table's columns.
    conditions : when a state is of a row.
    """
    columns = [quoted(name) for name in names]
    newer = f"s.{SEQ} > t.{SEQ}"
    clauses = [
        f"MERGE INTO {into} t USING {states} s ON {' AND '.join(conditions)}",
        f"WHEN MATCHED AND s.{GONE} AND {newer} THEN DELETE",
        f"WHEN MATCHED AND {newer} THEN UPDATE SET",
        ", ".join(f"t.{name} = s.{name}" for name in columns),
        f"WHEN NOT MATCHED AND NOT s.{GONE} THEN INSERT",
        f"({', '.join(columns)}) VALUES ({', '.join(f's.{name}' for name in columns)})",
    ]
    if soft_deletes:
        del clauses[1]
        clauses[3] = "WHEN NOT MATCHED THEN INSERT"
    return " ".join(clauses)
