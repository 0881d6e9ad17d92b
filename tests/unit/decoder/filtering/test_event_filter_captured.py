"""The event filter on recorded logs, compared with decoding all events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any

import pytest

from helpers.logs.recorded_logs import describe
from helpers.parity.decoding import CAPTURED, captured_ordinal, decoder, read_log, rows_of
from helpers.replay import captured_schemas
from helpers.snapshots.filter_harness import Filtered
from pyspark_mysqlbinlog.decoder.filtering.event_filter import EventFilter
from pyspark_mysqlbinlog.errors import StatementFormatError
from pyspark_mysqlbinlog.protocol.events import ROWS_EVENT_TYPES, Event, EventType

T = EventType


def load(scenario: str) -> tuple[dict[str, Any], list[Event]]:
    described = describe(scenario)
    return described, [event for file in described["files"] for event in read_log(CAPTURED / file)]


def rows_by_table(described: Mapping[str, Any], events: Iterable[Event]) -> list[dict[str, Any]]:
    decoding = decoder(captured_schemas(described), file_ordinal=captured_ordinal)
    return [dict(row) for row in rows_of(decoding.decode(events))]


SCENARIOS = ["transactions", "gtid_no_checksum", "rotations", "numbers", "strings"]


def choice(tables: list[str]) -> Callable[[str, str], bool]:
    return lambda _, table: table in tables


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_decoding_a_filtered_log_equals_filtering_the_decoded_rows(scenario: str) -> None:
    """For each table and pairs of tables, the rows are equal including seq, gtid and query."""
    described, events = load(scenario)
    names = list(described["tables"])
    everything = rows_by_table(described, events)
    assert everything
    for chosen in [[name] for name in names] + [list(pair) for pair in pairwise(names)]:
        kept = Filtered(events, choice(chosen)).kept
        found = rows_by_table(described, kept)
        assert found == [row for row in everything if row["table"] in chosen], chosen
        ids = {event.body[:6] for event in kept if event.type == T.TABLE_MAP_EVENT}
        rows = [event for event in kept if event.type in ROWS_EVENT_TYPES]
        assert all(event.body[:6] in ids for event in rows)


@pytest.mark.parametrize("scenario", ["gtid_no_checksum", "rotations", "numbers", "temporals"])
def test_log_split_at_any_transaction_boundary_keeps_the_same_events(scenario: str) -> None:
    _, events = load(scenario)
    whole = Filtered(events, lambda database, table: True)
    ends = [at for at, event in enumerate(events, 1) if event.end in whole.ends]
    assert len(ends) > 1
    for at in ends:
        if events[at - 1].type not in (T.XID_EVENT, T.QUERY_EVENT):
            continue
        parts = [
            Filtered(part, lambda database, table: True) for part in (events[:at], events[at:])
        ]
        assert parts[0].kept + parts[1].kept == whole.kept


def test_captured_log_has_pending_xa_after_prepare_but_none_at_its_end() -> None:
    _, events = load("transactions")
    found = Filtered(events, lambda database, table: table == "a")
    assert found.filtering.pending_xa == ()
    prepared = Filtered(
        (event for event in events if event.start < 5022), lambda database, table: table == "a"
    )
    assert prepared.filtering.pending_xa == ("X'786131',X'',1 transactions.001.binlog:4606-5023",)
    found = Filtered(events, lambda database, table: table == "b")
    assert found.filtering.pending_xa == ()
    assert found.filtering.in_transaction is False


def test_statement_format_log_is_rejected_only_for_the_changed_table() -> None:
    _, events = load("statements")
    filtering = EventFilter(lambda database, table: True)
    refused = next(event for event in events if event.start == 1047)
    kept = [kept for event in events[: events.index(refused)] for kept in filtering.feed(event)]
    assert kept[-1].end == 853
    with pytest.raises(StatementFormatError, match=r"fx_statements\.t") as caught:
        filtering.feed(refused)
    assert caught.value.position == 1047
    assert Filtered(events, lambda database, table: table == "other").ends[-1] == 1798
