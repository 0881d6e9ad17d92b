"""Logs of MySQL 9.7.4 as files: what they hold is what SELECT showed."""

from __future__ import annotations

import pytest

from helpers.later_logs import LATER, assert_equals_select, describe, read, schemas_of
from helpers.recorded_logs import CASCADES
from helpers.replay import Replay, captured_schemas

pytestmark = pytest.mark.usefixtures("implementation")

SCENARIOS: dict[str, tuple[str, ...]] = {
    "compressed": (),
    "partial_json": (),
    "later_types": ("v",),
    "tagged_gtid": (),
}
PAYLOADS = ("json", "struct", "variant")


@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_rows_replayed_equal_select(scenario: str, payload: str) -> None:
    tables = SCENARIOS[scenario]
    names = ",".join(schema.full_name for schema in schemas_of(scenario, tables))
    rows = read(str(LATER / f"{scenario}.*.binlog"), payload, tables=names)
    assert_equals_select(rows, scenario, payload, tables)


def test_transactions_replayed_equal_select() -> None:
    """Also of a table without a key, and with the rows that a foreign key removes."""
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


def test_a_tag_is_in_the_gtid() -> None:
    rows = read(str(LATER / "tagged_gtid.001.binlog"), "json", tables="fx_tagged_gtid.t")
    uuid = "4a4208bf-e9fd-11f1-8fee-02fc00000001"
    assert [(row["source"]["gtid"], row["after"]) for row in rows] == [
        (f"{uuid}:5", '{"id":1,"v":"plain"}'),
        (f"{uuid}:billing:1", '{"id":2,"v":"tagged"}'),
        (f"{uuid}:audit_1:1", '{"id":1,"v":"tagged too"}'),
    ]


def test_a_json_column_that_the_before_image_lacks_is_missing_and_not_guessed() -> None:
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
