"""Results as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pyspark_mysqlbinlog.connector.verification.results import KINDS, Difference, TableResult
from pyspark_mysqlbinlog.names import quoted

__all__ = ["as_json", "as_lines", "reload_option"]

_MAX_SHOWN_CHARACTERS = 60


def as_lines(result: TableResult) -> Iterator[str]:
    """Yield the lines of one table's result."""
    if result.stopped is not None:
        yield f"{result.name}: replication stopped: {result.stopped}"
    if result.reason is not None and not result.position:
        yield f"{result.name}: not compared: {result.reason}"
        return
    yield f"{result.name}: {_summary(result)}"
    for each in result.shown:
        yield f"  {KINDS[each.kind]}: {_described(each)}"
    rest = sum(result.counts.values()) - len(result.shown)
    if rest:
        yield f"  and {rest:,} more"
    if result.reason is not None:
        yield f"  not confirmed: {result.reason}"


def _summary(result: TableResult) -> str:
    counts = f"{_counted(result.rows, 'row')} in MySQL and {result.delta_rows:,} in Delta"
    total = sum(result.counts.values())
    kinds = ", ".join(f"{count:,} {KINDS[kind]}" for kind, count in sorted(result.counts.items()))
    found = f"{_counted(total, 'difference')}: {kinds}" if total else "no difference"
    if result.pending:
        changed = _counted(result.pending, "row")
        found += f" up to {result.position}, after which the binlog changes {changed}"
    if result.unconfirmed:
        found += f"; {result.unconfirmed:,} not confirmed"
    return f"{counts}, {found} ({result.seconds:.1f} s)"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def _described(difference: Difference) -> str:
    text = ", ".join(f"{name}={_shown(value)}" for name, value in difference.row.items())
    if difference.columns:
        text += f" (in {', '.join(difference.columns)})"
    if difference.server is not None:
        text += f" ({difference.server} times in MySQL, {difference.delta} in Delta)"
    return text


def _shown(value: Any) -> str:
    text = repr(value) if isinstance(value, (str, bytes)) else str(value)
    return text if len(text) <= _MAX_SHOWN_CHARACTERS else f"{text[: _MAX_SHOWN_CHARACTERS - 1]}…"


def as_json(result: TableResult) -> str:
    """Return one line; docs/reference/command-line.md lists its fields."""
    fields: Mapping[str, Any] = {
        "table": result.name,
        "rows": result.rows,
        "delta_rows": result.delta_rows,
        "differences": dict(result.counts),
        "shown": [_as_dict(each) for each in result.shown],
        "not_applied": result.pending,
        "not_confirmed": result.unconfirmed,
        "reason": result.reason,
        "stopped": result.stopped,
        "position": result.position,
        "duration_seconds": round(result.seconds, 3),
    }
    return json.dumps(fields, ensure_ascii=False, default=_as_text)


def _as_dict(difference: Difference) -> Mapping[str, Any]:
    fields: dict[str, Any] = {"kind": difference.kind, "row": dict(difference.row)}
    if difference.columns:
        fields["columns"] = list(difference.columns)
    if difference.server is not None:
        fields |= {"in_mysql": difference.server, "in_delta": difference.delta}
    return fields


def _as_text(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def reload_option(results: Sequence[TableResult]) -> str | None:
    """Return the value of a mirror's option `reload` for the tables that differ; None for none."""
    wrong = [quoted(*result.table) for result in results if result.is_different]
    if not wrong:
        return None
    return f"verify-{datetime.now(UTC):%Y%m%dT%H%M%S}: {', '.join(wrong)}"
