"""Logs of a real 5.7.41, replayed: rows and before images equal SELECT."""

from __future__ import annotations

import json
from typing import Any

import pytest

from helpers.logs.recorded_logs import CASCADES, DEFAULTS, SCENARIOS, load
from helpers.parity.decoding import captured_ordinal, decoder, rows_of
from helpers.replay import Replay, captured_schemas

# Each test runs with both implementations.
pytestmark = pytest.mark.usefixtures("implementation")

# The number of tables of each scenario.
TABLES = {
    "charsets": 27,
    "geometry": 1,
    "json_docs": 1,
    "numbers": 3,
    "temporals": 2,
    "strings": 2,
    "rotations": 1,
    "gtid_no_checksum": 1,
    "wide": 1,
    "row_images": 2,
    "transactions": 5,
    "virtual_columns": 4,
}


@pytest.mark.parametrize("batch_rows", [16_384, 1])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_replayed_log_equals_select(scenario: str, batch_rows: int) -> None:
    described, events = load(scenario)
    schemas = captured_schemas(described)
    assert len(schemas) == TABLES[scenario]
    batches = decoder(schemas, file_ordinal=captured_ordinal, batch_rows=batch_rows).decode(events)
    replay = Replay(schemas, DEFAULTS.get(scenario), CASCADES.get(scenario))
    replay.apply(rows_of(batches))
    assert replay.count > 0
    for name, table in described["tables"].items():
        replay.assert_equals(described["database"], name, table["rows"])


def test_rows_carry_gtid_position_and_query_of_their_transaction() -> None:
    described, events = load("gtid_no_checksum")
    rows = rows_of(
        decoder(captured_schemas(described), file_ordinal=captured_ordinal).decode(events)
    )
    found = [
        (row["op"], row["source"]["gtid"][-2:], row["source"]["tx_pos"], row["source"]["query"])
        for row in rows
        if row["seq"]["file"] == 1
    ][-3:]
    assert found == [
        ("c", ":9", 2036, "insert into t (v) values ('Ελλάδα épsilon')"),
        ("u", "10", 2393, "update t set v = 'é' where id = 1"),
        ("d", "10", 2393, "delete from t where id = 2"),
    ]


def test_json_keys_keep_select_order() -> None:
    """`Replay` compares documents by value, without the order of their keys."""
    described, events = load("json_docs")
    schemas = captured_schemas(described)
    after: dict[str, Any] = {}
    for row in rows_of(decoder(schemas, file_ordinal=captured_ordinal).decode(events)):
        if row["after"] is not None:
            image = dict(json.loads(row["after"], object_pairs_hook=list))
            after[str(image["id"])] = image["j"]
    shown = {
        row[0]: json.loads(row[1], object_pairs_hook=list)
        for row in described["tables"]["t"]["rows"]
    }
    assert len(shown) > 60
    assert {key: after[key] for key in shown} == shown
