"""Binlog files written by MySQL 9.7.4, read with `path` and compared with SELECT.

The replay keeps each row by its primary key. Columns that an image does not contain keep their
values. A before image must equal the kept row. Columns that DDL filled without events are compared
only if an event contained them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.types import DataType, StringType, VariantType

from helpers.parity.payload_faces import as_json_rows, struct_image, variant_image
from helpers.replay import Number, _load, captured_schemas, payload_token, select_token
from pyspark_mysqlbinlog.connector.log.files.file_log import FileLog
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.schemas.initial_history import history_of_files
from pyspark_mysqlbinlog.connector.schemas.struct_schema import read_payload_type
from pyspark_mysqlbinlog.connector.source.batch_reader import MySQLBinlogReader
from pyspark_mysqlbinlog.connector.source.schema import output_schema
from pyspark_mysqlbinlog.tables import INTEGER_TYPES, TableSchema

__all__ = ["LATER", "assert_agree", "assert_equals_select", "describe", "read", "schemas_of"]

LATER = Path(__file__).resolve().parents[2] / "data" / "binlogs97"
Row = Mapping[str, Any]


def describe(scenario: str) -> dict[str, Any]:
    """Return the content of the scenario's JSON file."""
    found: dict[str, Any] = json.loads((LATER / f"{scenario}.json").read_text(encoding="utf-8"))
    return found


def schemas_of(scenario: str, tables: Iterable[str] = ()) -> list[TableSchema]:
    """Return the schemas of the named tables, or of all, at the end of the scenario."""
    described = describe(scenario)
    wanted = {name: each for name, each in described["tables"].items() if name in (tables or name)}
    return captured_schemas({**described, "tables": wanted})


def read(path: str, payload: str, **more: str) -> list[dict[str, Any]]:
    """Return the rows that the source reads from the files at `path`."""
    options = parse_options({"path": path, "payload": payload, **more})
    kinds: dict[str, DataType] = {"json": StringType(), "variant": VariantType()}
    kind = kinds.get(payload) or read_payload_type(options)
    reader = MySQLBinlogReader(options, output_schema(kind, rescued=options.rescues))
    batches: list[pa.RecordBatch] = []
    for part in reader.partitions():
        batches.extend(reader.read(part))
    return [row for batch in batches for row in batch.to_pylist()]


def assert_equals_select(
    rows: Iterable[Row],
    scenario: str,
    payload: str,
    tables: Iterable[str] = (),
    *,
    renamed: Mapping[str, str] | None = None,
) -> None:
    """Check that the replayed rows equal SELECT's rows of the named tables, or of all.

    renamed : new names of renamed columns, by old name. Other unknown columns of an image were
    dropped.
    """
    schemas = schemas_of(scenario, tables)
    renamed = renamed or {}
    held: dict[tuple[str, ...], dict[str, str | None]] = {}
    last: tuple[int, ...] = ()
    columns = {
        (schema.table, column.name): column for schema in schemas for column in schema.columns
    }
    texts = rows if payload == "json" else as_json_rows(rows, schemas, payload)
    for row in texts:
        seq = tuple(row["seq"].values())
        assert seq > last, "seq must grow"
        last = seq
        schema = next(each for each in schemas if each.table == row["table"])
        if row["op"] == "t":
            held = {key: each for key, each in held.items() if key[0] != row["table"]}
            continue
        before, after = (
            _tokens(row[side], row["table"], columns, renamed) for side in ("before", "after")
        )
        absent = {tuple(name.split(".", 1)) for name in row["source"]["missing"] or ()}
        for side, image in (("before", before), ("after", after)):
            assert image is None or not any((side, name) in absent for name in image)
        old: dict[str, str | None] = {}
        if before is not None:
            old = held.pop(_key(schema, before), {})
            assert old, f"no row for {before}"
            differing = {
                name: (old.get(name), value)
                for name, value in before.items()
                if old.get(name) not in (value, None)
            }
            assert not differing, f"(held, before) {differing}"
        if after is not None:
            # A JSON column that is missing in an update's image may have changed partially.
            unknown = [name for name in old if columns[row["table"], name].type == "json"]
            kept = {name: old[name] for name in old if name not in unknown}
            new = {**kept, **after}
            held[_key(schema, new)] = new
    for schema in schemas:
        shown = describe(scenario)["tables"][schema.table]["rows"]
        found_part = {key: row for key, row in held.items() if key[0] == schema.table}
        assert len(found_part) == len(shown)
        for texts_of_row in shown:
            expected = {
                column.name: select_token(column, text)
                for column, text in zip(schema.columns, texts_of_row, strict=True)
            }
            found = found_part[_key(schema, expected)]
            for name, value in expected.items():
                assert found.get(name) in (value, None), (
                    schema.table,
                    name,
                    found.get(name),
                    value,
                )
                if found.get(name) is None and value is not None:
                    assert (schema.table, name) in _GIVEN_BY_DDL, (schema.table, name)


# Columns filled by ADD COLUMN … DEFAULT.
_GIVEN_BY_DDL = frozenset({("t", "n"), ("like_it", "j"), ("like_it", "v")})


def _key(schema: TableSchema, row: Mapping[str, str | None]) -> tuple[str, ...]:
    return (schema.table, *(row[name] or "" for name in schema.primary_key))


def _tokens(
    text: str | None, table: str, columns: Mapping[Any, Any], renamed: Mapping[str, str]
) -> dict[str, Any] | None:
    if text is None:
        return None
    images = {renamed.get(name, name): value for name, value in _load(text).items()}
    return {
        name: payload_token(columns[table, name], value)
        for name, value in images.items()
        if (table, name) in columns
    }


def assert_agree(rows: Iterable[Row], others: Iterable[Row], payload: str, path: str) -> None:
    """Check that rows of payload=json equal the same rows of another payload, also across DDL.

    path : the files; their schema history contains the column types at each row.
    """
    options = parse_options({"path": path, "payload": "json"})
    log = FileLog.open(path)
    history = history_of_files(log, options)
    for row, other in zip(rows, others, strict=True):
        for name in ("op", "database", "table", "seq", "source"):
            found_part, expected_part = row[name], other[name]
            if name == "source":
                # For a struct, columns of other versions of the table are missing, too.
                either = {"missing": None, "invalid_dates": None}
                found_part, expected_part = found_part | either, expected_part | either
            assert found_part == expected_part
        position = log.position(row["source"]["file"], row["source"]["pos"])
        schema = history.at(position, row["database"], row["table"])
        assert schema is not None
        rescued = json.loads(
            other.get("_rescued_data") or "{}", parse_int=Number, parse_float=Number
        )
        dates = dict(each.rsplit("=", 1) for each in other["source"]["invalid_dates"] or ())
        for side in ("before", "after"):
            found_part, expected_part = row[side], other[side]
            assert (found_part is None) == (expected_part is None)
            if found_part is None:
                continue
            images = _load(found_part)
            if payload == "variant":
                found = _load(variant_image(schema, expected_part))
            else:
                part = expected_part
                if list(expected_part) == [row["database"]]:
                    part = expected_part[row["database"]][row["table"]]
                left = rescued.get(side, {})
                in_struct = [
                    each for each in schema.columns if each.name in part and each.name not in left
                ]
                lacking = set(part) - {each.name for each in schema.columns}
                missing = other["source"]["missing"] or []
                assert {f"{side}.{name}" for name in lacking} <= set(missing)
                here = replace(schema, columns=tuple(in_struct))
                # The struct's field may be a string that contains an integer.
                chosen = {
                    each.name: int(value)
                    if each.type in INTEGER_TYPES and isinstance(value := part[each.name], str)
                    else part[each.name]
                    for each in in_struct
                }
                found = _load(struct_image(here, side, chosen, missing, dates))
                found |= left
            typed = {column.name: column for column in schema.columns}
            assert {name: payload_token(typed[name], value) for name, value in found.items()} == {
                name: payload_token(typed[name], value) for name, value in images.items()
            }
