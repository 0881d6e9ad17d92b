"""Mirrors with masks and row filters: Delta equals SELECT, transformed in Python."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from helpers.mirrors.change_logs import change_log_of, rows_of_log
from helpers.mirrors.delta_mirrors import MirroredDatabase
from helpers.servers import Server
from helpers.values.masked_rows import SECRET, masked, selected

pytestmark = pytest.mark.both_engines

COLUMNS = {"id": "id", "email": "email", "country": "country", "v": "v"}
CREATE = "(id {type}, email VARCHAR(80), country CHAR(2), v INT{key}) DEFAULT CHARSET utf8mb4"
MASKS = {
    "keyed": {"email": "hash"},
    "people": {"id": "hash", "email": "keepLast(4)"},
    "bag": {"email": "hash"},
    "plain": {},
}
FILTER = "country = 'DE'"
EMAILS = ("ann@x.org", "Bob@y.org", None, "ç@z.org")
IDS = (1, 2, 3, 4)


class TransformedDatabase:
    """A mirror of four tables: with a key, with a masked key, without a key, and without a mask."""

    def __init__(self, spark: SparkSession, server: Server, database: str, folder: Path) -> None:
        masks = {
            f"{database}.{table}.{column}": mask
            for table, columns in MASKS.items()
            for column, mask in columns.items()
        }
        filters = {f"{database}.{table}": FILTER for table in ("people", "bag")}
        self.mirrored = MirroredDatabase(
            spark,
            server,
            database,
            folder,
            startingOffset="snapshot",
            maskColumns=json.dumps(masks),
            maskSecret=SECRET,
            rowFilter=json.dumps(filters),
        )
        self.mirrored.execute(
            f"CREATE TABLE keyed {CREATE.format(type='INT', key=', PRIMARY KEY (id)')}",
            f"CREATE TABLE people {CREATE.format(type='VARCHAR(20)', key=', PRIMARY KEY (id)')}",
            f"CREATE TABLE bag {CREATE.format(type='INT', key='')}",
            f"CREATE TABLE plain {CREATE.format(type='INT', key=', PRIMARY KEY (id)')}",
        )
        for table in MASKS:
            self.mirrored.execute(
                f"INSERT INTO {table} VALUES (1, 'ann@x.org', 'DE', 1), (2, 'Bob@y.org', 'FR', 1),"
                " (3, NULL, 'DE', 1), (4, 'ç@z.org', NULL, 1)"
            )
        self.mirrored.execute("INSERT INTO bag SELECT * FROM bag")

    def expected(self, table: str) -> list[Mapping[str, Any]]:
        condition = FILTER if table in {"people", "bag"} else "TRUE"
        name = f"{self.mirrored.database}.{table}"
        return list(selected(self.mirrored.server, name, COLUMNS, MASKS[table], condition))

    def assert_equal(self) -> None:
        for table in MASKS:
            rows = self.mirrored.rows(table).select([*COLUMNS]).to_pylist()
            found, shown = (sorted(map(repr, each)) for each in (rows, self.expected(table)))
            assert found == shown, table


@pytest.fixture
def transformed(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> TransformedDatabase:
    return TransformedDatabase(spark, live_server, database, tmp_path)


def test_masked_and_filtered_tables_equal_select_after_changes_and_restarts(
    transformed: TransformedDatabase,
) -> None:
    mirrored = transformed.mirrored
    mirrored.run()
    transformed.assert_equal()
    for table in MASKS:
        mirrored.execute(
            f"UPDATE {table} SET country = 'DE', v = 2 WHERE id = 2",  # enters the filter
            f"UPDATE {table} SET country = 'FR' WHERE id = 1",  # leaves it
            f"UPDATE {table} SET email = 'new@x.org' WHERE id IN (2, 4)",
            f"INSERT INTO {table} VALUES (5, 'eve@x.org', 'DE', 5), (6, 'out@x.org', 'FR', 6)",
        )
    mirrored.run()
    transformed.assert_equal()
    for table in MASKS:
        mirrored.execute(
            f"DELETE FROM {table} WHERE id IN (3, 4)",
            f"UPDATE {table} SET id = 50, country = 'FR' WHERE id = 5",
            f"UPDATE {table} SET id = 60, country = 'DE' WHERE id = 6",
            f"UPDATE {table} SET id = 20 WHERE id = 2",
        )
    mirrored.run()
    transformed.assert_equal()


def test_reload_and_change_log_contain_only_masked_values(transformed: TransformedDatabase) -> None:
    mirrored = transformed.mirrored
    mirrored.settings["change_log"] = change_log_of(mirrored)
    mirrored.run()
    for table in MASKS:
        mirrored.execute(f"UPDATE {table} SET v = v + 1, country = 'DE' WHERE id < 3")
    mirrored.options["reload"] = f"again: {mirrored.database}.*"
    mirrored.run()
    transformed.assert_equal()
    for table, masks in MASKS.items():
        log = rows_of_log(mirrored, table)
        assert {"reset", "r"} <= {row["op"] for row in log}
        images = [json.loads(row[side]) for row in log for side in ("before", "after") if row[side]]
        emails = {image["email"] for image in images}
        ids = {image["id"] for image in images}
        shown = {masked(each, masks["email"]) if "email" in masks else each for each in EMAILS}
        assert emails <= shown
        assert ids <= {masked(number, masks["id"]) if "id" in masks else number for number in IDS}


def test_masked_tables_equal_select_after_ddl_that_rewrites_rows(
    transformed: TransformedDatabase,
) -> None:
    mirrored = transformed.mirrored
    mirrored.run()
    for table in MASKS:
        mirrored.execute(
            f"ALTER TABLE {table} ADD w VARCHAR(20) NOT NULL DEFAULT 'secret default'",
            f"ALTER TABLE {table} MODIFY v BIGINT",
        )
    mirrored.run()
    mirrored.run()
    transformed.assert_equal()


@pytest.mark.parametrize(
    ("changed", "is_accepted"),
    [
        ({"maskSecret": "another-salt-of-more-than-16"}, False),
        ({"rowFilter": None}, False),
        ({"maskColumns": None, "maskSecret": None}, False),
        ({"rowFilter": None, "acceptChangedTransforms": "true"}, True),
    ],
)
def test_changed_transforms_are_rejected_unless_they_are_accepted(
    transformed: TransformedDatabase, changed: dict[str, str | None], is_accepted: bool
) -> None:
    mirrored = transformed.mirrored
    mirrored.run()
    for name, text in changed.items():
        mirrored.options.pop(name, None)
        if text is not None:
            mirrored.options[name] = text
    mirrored.execute("INSERT INTO plain VALUES (9, 'new', 'DE', 9)")
    if is_accepted:
        mirrored.run()
        assert mirrored.rows("plain").num_rows == 5
        return
    with pytest.raises(StreamingQueryException, match="acceptChangedTransforms=true") as caught:
        mirrored.run()
    assert SECRET not in str(caught.value)


def test_accepted_transforms_and_a_reload_apply_to_all_rows(
    transformed: TransformedDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirrored = transformed.mirrored
    mirrored.run()
    # A number becomes a text, and another column is no longer masked.
    monkeypatch.setitem(MASKS, "keyed", {"v": "keepLast(1)"})
    masks = {
        f"{mirrored.database}.{table}.{column}": mask
        for table, columns in MASKS.items()
        for column, mask in columns.items()
    }
    mirrored.options |= {
        "maskColumns": json.dumps(masks),
        "acceptChangedTransforms": "true",
        "reload": f"masks: {mirrored.database}.*",
    }
    mirrored.execute("INSERT INTO keyed VALUES (9, 'nina@x.org', 'DE', 123)")
    mirrored.run()
    transformed.assert_equal()
