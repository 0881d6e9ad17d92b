"""Masked columns of live servers, in every payload and in snapshots: compared with SELECT."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql.types import VariantVal

from helpers.masked_rows import SECRET, selected
from helpers.servers import Server
from helpers.stream_query import Query
from pyspark_mysqlbinlog.decoder.kernel.implementation import Implementation, using

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
      491701234567, 12.50, 0.1, '1980-02-29', '2026-01-02 03:04:05.678', '2026-01-02 03:04:05', '-10:11:12',
      1999, x'00ff41', x'01', 'ü', 'x,y', 257, 7)""",
    "INSERT INTO {t} (id, email, note) VALUES (2, '', ''), (3, 'x', 'ab')",
    "INSERT INTO {t} (id) VALUES (4)",
)
CHANGES = (
    "UPDATE {t} SET email = 'other@example.org', phone = phone + 1, plain = 8 WHERE id = 1",
    "UPDATE {t} SET plain = 9 WHERE id = 2",
    "DELETE FROM {t} WHERE id = 3",
)
# As payload=json shows them: times with a T, and of bytes the bytes themselves.
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
def test_each_type_equals_select_masked(
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
