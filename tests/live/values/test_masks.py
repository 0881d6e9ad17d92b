"""Masked columns of live servers, in every payload, compared with SELECT."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql.types import VariantVal

from helpers.logs.live_log import new_database
from helpers.servers import Server
from helpers.streams.stream_query import Query
from helpers.values.masked_rows import SECRET, hashed, selected
from pyspark_mysqlbinlog.decoder.kernel.implementation import Implementation, using
from pyspark_mysqlbinlog.decoder.transforms.masks import Mask, Masking, masked_codec
from pyspark_mysqlbinlog.decoder.values import temporals
from pyspark_mysqlbinlog.errors import MalformedEventError, OptionError
from pyspark_mysqlbinlog.tables import ColumnSchema

CREATE = """
CREATE TABLE {t} (
  id INT PRIMARY KEY, email VARCHAR(80) CHARACTER SET utf8mb4, old CHAR(20) CHARACTER SET latin1,
  note TEXT CHARACTER SET utf8mb4, phone BIGINT UNSIGNED, amount DECIMAL(12,2), share DOUBLE,
  born DATE, seen DATETIME(3), touched TIMESTAMP NULL, at TIME, made YEAR,
  raw VARBINARY(20), fixed BINARY(4), kind ENUM('a','ü'), flags SET('x','y'), bits BIT(9), plain INT
)"""
ROWS = (
    """
    INSERT INTO {t} VALUES (1, 'Ann@Example.org', 'Grüße', 'a "quoted" \\\\ text\\n漢😀',
      491701234567, 12.50, 0.1, '1980-02-29', '2026-01-02 03:04:05.678',
      '2026-01-02 03:04:05', '-10:11:12', 1999, x'00ff41', x'01', 'ü', 'x,y', 257, 7)""",
    "INSERT INTO {t} (id, email, note) VALUES (2, '', ''), (3, 'x', 'ab')",
    "INSERT INTO {t} (id) VALUES (4)",
)
CHANGES = (
    "UPDATE {t} SET email = 'other@example.org', phone = phone + 1, plain = 8 WHERE id = 1",
    "UPDATE {t} SET plain = 9 WHERE id = 2",
    "DELETE FROM {t} WHERE id = 3",
)
# SELECT expressions for the values of payload=json: times with a T, and bytes as they are.
COLUMNS = {
    "id": "id",
    "email": "email",
    "old": "old",
    "note": "note",
    "phone": "CAST(phone AS CHAR)",
    "amount": "CAST(amount AS CHAR)",
    "share": "CAST(share AS CHAR)",
    "born": "CAST(born AS CHAR)",
    "seen": "REPLACE(CAST(seen AS CHAR), ' ', 'T')",
    "touched": "CONCAT(REPLACE(CAST(touched AS CHAR), ' ', 'T'), 'Z')",
    "at": "CAST(at AS CHAR)",
    "made": "CAST(made AS CHAR)",
    "raw": "raw",
    "fixed": "fixed",
    "kind": "CAST(kind AS CHAR)",
    "flags": "CAST(flags AS CHAR)",
    "bits": "CAST(bits + 0 AS CHAR)",
    "plain": "plain",
}
ALL_HASHED = {name: "hash" for name in COLUMNS if name not in {"id", "plain"}}
MIXED = {
    "email": "truncate(3)",
    "old": "redact",
    "note": "keepLast(2)",
    "phone": "keepLast(4)",
    "amount": "truncate(2)",
    "born": "truncate(4)",
    "seen": "redact",
    "at": "keepLast(5)",
    "raw": "redact",
    "kind": "hash",
}


def options(table: str, masks: dict[str, str]) -> dict[str, str]:
    return {
        "maskColumns": json.dumps({f"{table}.{name}": mask for name, mask in masks.items()}),
        "maskSecret": SECRET,
    }


def images(rows: list[dict[str, Any]], payload: str) -> list[tuple[str, Any, Any]]:
    def image(shown: Any) -> Any:
        if shown is None or payload == "struct":
            return shown
        if payload == "json":
            return json.loads(shown)
        return VariantVal(shown["value"], shown["metadata"]).toPython()

    return [(row["op"], image(row["before"]), image(row["after"])) for row in rows]


@pytest.mark.parametrize("implementation", ["c", "python"])
@pytest.mark.parametrize("payload", ["json", "struct", "variant"])
@pytest.mark.parametrize("masks", [ALL_HASHED, MIXED], ids=["hashed", "mixed"])
def test_masked_columns_of_every_type_equal_masked_select(
    any_server: Server,
    any_database: str,
    queries: list[Query],
    *,
    payload: str,
    masks: dict[str, str],
    implementation: Implementation,
) -> None:
    table = f"{any_database}.t"
    any_server.execute(CREATE.format(t=table))
    query = Query(any_server, table, payload=payload, **options(table, masks))
    queries.append(query)
    with using(implementation):
        query.start()
        any_server.execute(*(row.format(t=table) for row in ROWS))
        before = selected(any_server, table, COLUMNS, masks)
        any_server.execute(*(change.format(t=table) for change in CHANGES))
        rows = images(query.rows(), payload)
    after = selected(any_server, table, COLUMNS, masks)
    shown = [name for name in COLUMNS if name in masks or name in {"id", "plain"}]

    def of(image: Any) -> Any:
        return None if image is None else {name: image[name] for name in shown}

    found = [(op, of(old), of(new)) for op, old, new in rows]
    assert found == [
        *(("c", None, of(row)) for row in before),
        ("u", of(before[0]), of(after[0])),
        ("u", of(before[1]), of(after[1])),
        ("d", of(before[2]), None),
    ]


def test_json_documents_and_their_partial_updates_are_masked(
    mysql9: Server, queries: list[Query]
) -> None:
    with new_database(mysql9, "masked_documents") as database:
        table = f"{database}.t"
        mysql9.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, doc JSON, v VECTOR(2), n INT)")
        masks = {"doc": "hash", "v": "redact"}
        query = Query(mysql9, table, payload="json", **options(table, masks))
        queries.append(query)
        query.start()
        mysql9.execute(
            f'INSERT INTO {table} VALUES (1, \'{{"a": 1, "b": "text"}}\', TO_VECTOR(\'[1,2]\'), 1)',
            "SET SESSION binlog_row_value_options = PARTIAL_JSON",
            f"UPDATE {table} SET doc = JSON_SET(doc, '$.b', 'texT'), n = 2",
        )
        rows = images(query.rows(), "json")
    first = {"id": 1, "doc": hashed('{"a":1,"b":"text"}'), "v": "***", "n": 1}
    assert rows == [
        ("c", None, first),
        ("u", first, first | {"doc": hashed('{"a":1,"b":"texT"}'), "n": 2}),
    ]


@pytest.mark.parametrize(
    ("masks", "error"),
    [
        ({"t.emial": "hash"}, "the table has no column `emial`"),
        ({"t.id": "redact"}, "`id` is in a key that identifies rows, and with redact"),
        ({"t.raw": r"truncate(3)"}, r"truncate\(3\) is for texts, numbers and times"),
        ({"u.email": "hash"}, "no such table is captured"),
    ],
)
def test_mask_that_does_not_fit_its_table_is_rejected_at_start(
    any_server: Server,
    any_database: str,
    queries: list[Query],
    masks: dict[str, str],
    error: str,
) -> None:
    any_server.execute(CREATE.format(t=f"{any_database}.t"))
    given = {f"{any_database}.{name}": mask for name, mask in masks.items()}
    more = {"maskSecret": SECRET} if "hash" in masks.values() else {}
    query = Query(
        any_server,
        f"{any_database}.t",
        payload="json",
        maskColumns=json.dumps(given),
        **more,
    )
    queries.append(query)
    with pytest.raises(OptionError, match=error):
        query.start()


def test_rename_of_masked_column_raises_option_error_without_its_values(
    any_server: Server, any_database: str, queries: list[Query]
) -> None:
    table = f"{any_database}.t"
    any_server.execute(CREATE.format(t=table))
    query = Query(any_server, table, payload="json", **options(table, {"email": "hash"}))
    queries.append(query)
    query.start()
    any_server.execute(
        f"INSERT INTO {table} (id, email) VALUES (1, 'ann@x.org')",
        f"ALTER TABLE {table} CHANGE email mail VARCHAR(80)",
        f"INSERT INTO {table} (id, mail) VALUES (2, 'bob@x.org')",
    )
    with pytest.raises(OptionError, match=r"no column `email`.*renamed") as caught:
        query.rows()
    assert "bob" not in str(caught.value)


def test_error_for_invalid_masked_value_does_not_contain_the_value() -> None:
    column = ColumnSchema("born", "date")
    codec = masked_codec(
        temporals.date("column `born`"), Masking(Mask("hash"), column, SECRET.encode())
    )
    invalid = (2026 << 9 | 15 << 5 | 31).to_bytes(3, "little")
    with pytest.raises(MalformedEventError, match="masked column `born`") as caught:
        codec.read(invalid, 0)
    assert "2026" not in str(caught.value)
    assert caught.value.__context__ is None
