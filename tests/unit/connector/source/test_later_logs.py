"""Binlog files of MySQL 9.7.4: their replayed rows equal SELECT."""

from __future__ import annotations

from typing import Any

import pytest

from helpers.logs.later_logs import (
    LATER,
    assert_agree,
    assert_equals_select,
    describe,
    read,
    schemas_of,
)
from helpers.logs.recorded_logs import CASCADES
from helpers.replay import Replay, captured_schemas
from helpers.schemas.random_ddl import check_labelled

pytestmark = pytest.mark.usefixtures("implementation")

PLAIN = (
    "numbers",
    "temporals",
    "strings",
    "charsets",
    "json_docs",
    "geometry",
    "compressed",
    "partial_json",
    "later_types",
    "tagged_gtid",
)
RANDOM_DDL = ("random_ddl_9701", "random_ddl_9703")
# Scenarios in which DDL changes columns of tables with rows, and the renamed columns.
WITH_DDL: dict[str, dict[str, str]] = {"full_metadata": {"n": "m"}, "later_ddl": {}}
# Tested separately, with the rows that a foreign key deletes.
WITH_CASCADES = ("transactions",)
PAYLOADS = ("json", "struct", "variant")


def names_of(scenario: str) -> str:
    return ",".join(schema.full_name for schema in schemas_of(scenario))


def path_of(scenario: str) -> str:
    return str(LATER / f"{scenario}.*.binlog")


def test_every_recorded_scenario_of_mysql_9_7_is_tested() -> None:
    found = {path.stem for path in LATER.glob("*.json")}
    assert found == {*PLAIN, *RANDOM_DDL, *WITH_DDL, *WITH_CASCADES}


@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize("scenario", PLAIN)
def test_rows_replayed_equal_select(scenario: str, payload: str) -> None:
    rows = read(path_of(scenario), payload, tables=names_of(scenario))
    assert_equals_select(rows, scenario, payload)


def since_truncate(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows without those of a table before its TRUNCATE."""
    emptied = {row["table"]: at for at, row in enumerate(rows) if row["op"] == "t"}
    return [row for at, row in enumerate(rows) if at > emptied.get(row["table"], -1)]


@pytest.mark.parametrize("scenario", WITH_DDL)
def test_rows_replayed_through_ddl_equal_select(scenario: str) -> None:
    rows = since_truncate(read(path_of(scenario), "json", tables=names_of(scenario)))
    assert_equals_select(rows, scenario, "json", renamed=WITH_DDL[scenario])


@pytest.mark.parametrize("scenario", RANDOM_DDL)
def test_rows_between_random_ddl_match_the_executed_statements(scenario: str) -> None:
    check_labelled(describe(scenario), read(path_of(scenario), "json", tables="fx_random_ddl.*"))


@pytest.mark.parametrize("payload", ["struct", "variant"])
@pytest.mark.parametrize("scenario", [*WITH_DDL, *RANDOM_DDL])
def test_struct_and_variant_payloads_agree_with_json_through_ddl(
    scenario: str, payload: str
) -> None:
    path, tables = path_of(scenario), names_of(scenario)
    mode = {"schemaEvolutionMode": "rescue"} if payload == "struct" else {}
    rows = read(path, payload, tables=tables, **mode)
    assert_agree(read(path, "json", tables=tables), rows, payload, path)


def test_transactions_replayed_equal_select() -> None:
    """The scenario has a table without a key, and rows that only a foreign key deletes."""
    described = describe("transactions")
    replay = Replay(captured_schemas(described), None, CASCADES["transactions"])
    path = str(LATER / "transactions.001.binlog")
    replay.apply(read(path, "json", tables=f"{described['database']}.*"))
    for name, table in described["tables"].items():
        replay.assert_equals(described["database"], name, table["rows"])


def test_xa_has_the_gtid_of_its_commit() -> None:
    rows = read(str(LATER / "tagged_gtid.*.binlog"), "json", tables="fx_tagged_gtid.t")
    between, xa = rows[-2:]
    assert [row["after"] for row in (between, xa)] == [
        '{"id":51,"v":"between"}',
        '{"id":50,"v":"xa"}',
    ]
    assert between["seq"]["pos"] < xa["seq"]["pos"]
    assert xa["source"]["tx_pos"] < between["source"]["tx_pos"]
    numbers = [int(row["source"]["gtid"].rpartition(":")[2]) for row in (between, xa)]
    assert numbers[1] == numbers[0] + 1


def test_gtid_of_a_row_includes_its_tag() -> None:
    rows = read(str(LATER / "tagged_gtid.001.binlog"), "json", tables="fx_tagged_gtid.t")
    uuid = "4a4208bf-e9fd-11f1-8fee-02fc00000001"
    assert [(row["source"]["gtid"], row["after"]) for row in rows] == [
        (f"{uuid}:5", '{"id":1,"v":"plain"}'),
        (f"{uuid}:billing:1", '{"id":2,"v":"tagged"}'),
        (f"{uuid}:audit_1:1", '{"id":1,"v":"tagged too"}'),
    ]


def test_partial_json_update_without_before_image_lists_the_column_as_missing() -> None:
    rows = read(str(LATER / "partial_json.001.binlog"), "json", tables="fx_partial_json.t")
    sql = [each["sql"] for each in describe("partial_json")["statements"]]
    assert sum("row_image = minimal" in each for each in sql) == 1
    (row,) = [row for row in rows if "before.j" in (row["source"]["missing"] or ())]
    assert row["before"] == '{"id":1}'
    assert row["after"] == "{}"
    assert row["source"]["missing"] == [
        *("before.j", "before.k", "before.v"),
        *("after.id", "after.j", "after.k", "after.v"),
    ]
