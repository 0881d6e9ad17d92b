"""Logs passed through the filter: the events that it keeps, and the boundaries."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from helpers.logs.events import LogBuilder, xa_prepare_body
from pyspark_mysqlbinlog.decoder.filtering.event_filter import EventFilter
from pyspark_mysqlbinlog.decoder.sql.classifier import StatementKind
from pyspark_mysqlbinlog.protocol.events import Event, EventType

__all__ = ["GROUP", "Filtered", "filtered", "captures", "xa", "xid"]

T = EventType
Captures = Callable[[str, str], bool]


def captures(database: str, table: str) -> bool:
    """Return whether the filter keeps a table: d.t and d.u are captured, d.x is not."""
    return database == "d" and table in {"t", "u"}


class Filtered:
    """The filter's results for a whole log."""

    def __init__(
        self, events: Iterable[Event], captured: Captures = captures, **settings: Any
    ) -> None:
        self.filtering = EventFilter(captured, **settings)
        self.kept: list[Event] = []
        self.ends: list[int] = []
        self.statements: list[StatementKind] = []
        for event in events:
            self.kept += self.filtering.feed(event)
            if self.filtering.ended:
                self.ends.append(event.end)
            if self.filtering.statement is not None:
                self.statements.append(self.filtering.statement.statement.kind)

    @property
    def types(self) -> list[str]:
        return [
            T(event.type).name.removesuffix("_EVENT").removesuffix("_LOG") for event in self.kept
        ]


def filtered(log: LogBuilder, **settings: Any) -> Filtered:
    return Filtered(log.events(), **settings)


# The kept events of a transaction with one statement.
GROUP = ["QUERY", "TABLE_MAP", "WRITE_ROWS", "XID"]


def xid(gtrid: bytes) -> str:
    """Return an XID as the server spells it."""
    return f"X'{gtrid.hex()}',X'',1"


def xa(log: LogBuilder, gtrid: bytes, table: str, *, one_phase: bool = False) -> LogBuilder:
    """Add an XA transaction that is prepared, with a row of this table."""
    log.query(f"XA START {xid(gtrid)}").rows(1, table, 1).query(f"XA END {xid(gtrid)}")
    return log.add(T.XA_PREPARE_LOG_EVENT, xa_prepare_body(gtrid, one_phase=one_phase))
