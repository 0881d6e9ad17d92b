"""The recorded 5.7 binlogs as the decoder's tests read them: the events of one scenario."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from helpers.parity.decoding import CAPTURED, read_log, wanted
from pyspark_mysqlbinlog.protocol.events import Event, EventType
from pyspark_mysqlbinlog.protocol.messages import Query

__all__ = ["CASCADES", "DEFAULTS", "SCENARIOS", "describe", "load", "some_batches"]

# Without `ddl_history`, whose rows are changed by DDL, and `statements`, which must be rejected.
SCENARIOS = (
    "numbers",
    "temporals",
    "strings",
    "charsets",
    "json_docs",
    "geometry",
    "rotations",
    "gtid_no_checksum",
    "wide",
    "row_images",
    "transactions",
    "virtual_columns",
)
# Values after INSERT in columns that minimal and noblob images do not contain.
DEFAULTS = {
    "row_images": {
        ("fx_row_images", "t"): {"a": None, "b": None, "c": None, "d": None, "e": "5"},
    },
}
# Rows that foreign keys delete without an event.
CASCADES = {
    "transactions": {("fx_transactions", "par", "id"): ("chi", "p")},
}


def describe(scenario: str) -> dict[str, Any]:
    """Return the content of the scenario's JSON file."""
    described: dict[str, Any] = json.loads(
        (CAPTURED / f"{scenario}.json").read_text(encoding="utf-8")
    )
    return described


def some_batches(scenario: str) -> int:
    """Return a batch size in bytes that splits the scenario's log into a few batches."""
    files: list[str] = describe(scenario)["files"]
    return max(2000, sum((CAPTURED / file).stat().st_size for file in files) // 4)


def load(scenario: str) -> tuple[dict[str, Any], list[Event]]:
    """Return the content of the JSON file, and the events of its tables."""
    described = describe(scenario)
    tables = {(described["database"], table) for table in described["tables"]}
    events = [event for file in described["files"] for event in read_log(CAPTURED / file)]
    return described, list(_without_rolled_back_xa(wanted(events, tables)))


def _without_rolled_back_xa(events: Iterable[Event]) -> Iterator[Event]:
    """Yield the events without XA transaction 'xa2', which was rolled back after its prepare."""
    rolled_back = False
    for event in events:
        if event.type == EventType.QUERY_EVENT:
            rolled_back = Query.parse(event.body).sql.startswith("XA START X'786132'")
        if not rolled_back:
            yield event
        if event.type == EventType.XA_PREPARE_LOG_EVENT:
            rolled_back = False
