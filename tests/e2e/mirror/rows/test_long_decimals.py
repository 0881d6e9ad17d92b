"""Rows with decimals of more than 15 digits are found, although delta-rs rounds statistics."""

from __future__ import annotations

import random
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyarrow import compute, dataset
from pyspark.sql import SparkSession

from helpers.mirrors.delta_mirrors import MirroredDatabase
from helpers.servers import Server

_PROPERTY = "delta.dataSkippingStatsColumns"
_SEED = 20261125
_COUNT = 40
_TABLES = {
    "snowflakes": ("id BIGINT UNSIGNED NOT NULL PRIMARY KEY, v INT", "id", 64, 0),
    "amounts": ("id DECIMAL(18,6) NOT NULL PRIMARY KEY, v INT", "id", 59, 6),
    "signed": ("id DECIMAL(38,10) NOT NULL PRIMARY KEY, v INT", "id", 126, 10),
    "pairs": ("k INT, id BIGINT UNSIGNED NOT NULL, v INT, PRIMARY KEY (k, id)", "id", 64, 0),
    "keyless": ("id BIGINT UNSIGNED NOT NULL, v INT", "id", 64, 0),
    "small": ("id BIGINT UNSIGNED NOT NULL PRIMARY KEY, v INT", "id", 33, 0),
}


def _values(chance: random.Random, bits: int, scale: int, *, signed: bool) -> list[str]:
    """Return distinct numbers as SQL literals, the longest among them."""
    found = {2**bits - 1, 2**bits - 2, 2 ** min(bits, 53) + 1, 1}
    while len(found) < _COUNT:
        number = chance.randrange(2**bits)
        found.add(-number if signed and chance.random() < 0.5 else number)
    return [_said(number, scale) for number in sorted(found)]


def _said(number: int, scale: int) -> str:
    digits = str(abs(number)).zfill(scale + 1)
    whole, part = (digits[:-scale], digits[-scale:]) if scale else (digits, "0")
    return f"{'-' * (number < 0)}{whole}.{part}"


def _plain(row: tuple[Any, ...]) -> list[str]:
    """Return the values as texts, because integers of the server can be decimals in Delta."""
    return [*map(str, row)]


def _shown(selected: Iterable[tuple[Any, ...]]) -> list[str]:
    return sorted(str(_plain(row)) for row in selected)


def _texts(rows: pa.Table) -> list[str]:
    return sorted(str(_plain(tuple(row.values()))) for row in rows.to_pylist())


def _assert_found(mirrored: MirroredDatabase, table: str, column: str) -> None:
    """Assert that a filter by any value of a column finds a row."""
    held = mirrored.delta(table).to_pyarrow_dataset()
    rows = mirrored.rows(table)
    kind = rows.schema.field(column).type
    for value in rows.column(column).drop_null().unique():
        same = dataset.field(column) == pa.scalar(value.as_py(), kind)
        assert held.count_rows(filter=same) >= 1, f"{table}.{column} = {value}"


@pytest.mark.sample(2)
@pytest.mark.both_engines
@pytest.mark.parametrize("soft_delete", [False, True], ids=["deleted", "kept"])
def test_rows_with_long_decimal_keys_are_updated_and_deleted(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path, *, soft_delete: bool
) -> None:
    mirrored = MirroredDatabase(spark, live_server, database, tmp_path)
    mirrored.settings["soft_delete"] = soft_delete
    tables = {name: it for name, it in _TABLES.items() if not (soft_delete and name == "keyless")}
    chance = random.Random(_SEED)
    values = {}
    for name, (columns, _, bits, scale) in tables.items():
        values[name] = _values(chance, bits, scale, signed=name in {"amounts", "signed"})
        mirrored.execute(f"CREATE TABLE {name} ({columns})")
    # Each run writes a file with eight rows of each table.
    for start in range(0, _COUNT, 8):
        for name in tables:
            k = "k, " if name == "pairs" else ""
            listed = ", ".join(
                f"({'1, ' if k else ''}{value}, 0)" for value in values[name][start : start + 8]
            )
            mirrored.execute(f"INSERT INTO {name} ({k}id, v) VALUES {listed}")
        mirrored.run()
    for number in range(3):
        for name in tables:
            some = ", ".join(chance.sample(values[name], 9))
            gone = chance.choice(values[name])
            mirrored.execute(
                f"UPDATE {name} SET v = v + {number + 1} WHERE id IN ({some})",
                f"DELETE FROM {name} WHERE id = {gone}",
            )
        mirrored.run()
        for name in tables:
            names, selected = mirrored.select(name)
            rows = mirrored.rows(name)
            if soft_delete:
                rows = rows.filter(compute.invert(rows.column("_deleted"))).drop(["_deleted"])
            assert _texts(rows.select(names)) == _shown(selected), name
            _assert_found(mirrored, name, "id")


@pytest.mark.both_engines
def test_columns_changed_to_long_decimals_equal_select(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> None:
    """The columns change by ALTER, by a first long value, and by a new name."""
    mirrored = MirroredDatabase(spark, live_server, database, tmp_path)
    mirrored.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, `ä b` BIGINT UNSIGNED, n BIGINT, x INT)",
        "INSERT INTO t VALUES (1, 1, 9007199254740993, 1), (2, 2, 9007199254740995, 2)",
    )
    mirrored.run()
    for step in (
        # No row is written with the new type yet: the existing rows are cast.
        ["ALTER TABLE t MODIFY n BIGINT UNSIGNED"],
        ["UPDATE t SET `ä b` = 18446744073709551615 WHERE id = 1"],
        ["ALTER TABLE t ADD w DECIMAL(30,4)", "UPDATE t SET w = 12345678901234567.8901"],
        ["ALTER TABLE t DROP x, CHANGE n m BIGINT UNSIGNED"],
        ["ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (m)", "UPDATE t SET id = id + 1"],
        ["UPDATE t SET w = w + 1 WHERE m = 9007199254740993", "DELETE FROM t WHERE id = 3"],
    ):
        mirrored.execute(*step)
        mirrored.run()
        names, selected = mirrored.select("t")
        written = [name.replace(" ", "_") for name in names]
        rows = mirrored.rows("t").select(written)
        assert _texts(rows) == _shown(selected), step
        for name in written:
            _assert_found(mirrored, "t", name)


def test_long_decimals_written_by_others_are_found_by_later_changes(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> None:
    """A file of another writer can have long values, with exact or rounded statistics."""
    mirrored = MirroredDatabase(spark, live_server, database, tmp_path)
    mirrored.settings["engine"] = "deltalake"
    mirrored.execute(
        "CREATE TABLE t (id BIGINT UNSIGNED PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 1)"
    )
    mirrored.run()
    assert _PROPERTY not in mirrored.delta("t").metadata().configuration
    path = mirrored.folder / "lake" / database / "t"
    held = mirrored.delta("t").to_pyarrow_table()
    long = pa.array([Decimal(2**63 + 1)], held.schema.field("id").type)
    write_deltalake(path, held.set_column(0, "id", long), mode="append")
    mirrored.execute(f"INSERT INTO t VALUES ({2**63 + 1}, 1)")
    mirrored.execute("UPDATE t SET v = 2 WHERE id = 1")
    mirrored.run()
    assert mirrored.delta("t").metadata().configuration[_PROPERTY] == "`v`"
    mirrored.execute(f"UPDATE t SET v = 3 WHERE id = {2**63 + 1}")
    mirrored.run()
    assert _texts(mirrored.rows("t")) == _shown(mirrored.select("t")[1])
    mirrored.delta("t").optimize.compact()
    DeltaTable(path).vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert _texts(mirrored.rows("t")) == _shown(mirrored.select("t")[1])
    _assert_found(mirrored, "t", "id")
