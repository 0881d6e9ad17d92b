"""The undo statements as a script for `mysql`, and as lines of JSON.

The script counts the rows that it changes. If one statement does not change exactly one row, the
transaction is rolled back at its end, and the script fails.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime

from pyspark_mysqlbinlog.connector.flashback.plan import ChangedSince, FlashbackPlan
from pyspark_mysqlbinlog.connector.flashback.statements import UndoStatement
from pyspark_mysqlbinlog.connector.inspection.literals import printable

__all__ = [
    "LENIENT_MODE",
    "SESSION",
    "STRICT_MODE",
    "changed_text",
    "counts_text",
    "script_lines",
    "statement_json",
    "summary_json",
]

# A value that cannot be stored as it is must be an error. A zero does not become a new number of an
# AUTO_INCREMENT column, and dates such as 2026-02-31 and 0000-00-00 are stored.
_MODES = "NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES,NO_BACKSLASH_ESCAPES"
STRICT_MODE = f"SET SESSION sql_mode = 'STRICT_ALL_TABLES,{_MODES}'"
# The mode for a row with an invalid value of an ENUM, which the strict mode rejects.
LENIENT_MODE = f"SET SESSION sql_mode = '{_MODES}'"
# Constraints stay checked: each statement returns the tables to a state that they have had. Reading
# committed rows locks no others in a table without a key.
SESSION = (
    "SET NAMES utf8mb4",
    STRICT_MODE,
    "SET SESSION time_zone = '+00:00', foreign_key_checks = 1, unique_checks = 1",
    "SET SESSION sql_safe_updates = 0, sql_select_limit = 18446744073709551615",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
)
_MAX_SHOWN = 20


def script_lines(plan: FlashbackPlan) -> Iterator[str]:
    """Yield the lines of the script; only comments if there is nothing to undo."""
    yield f"-- Undoes the changes of {plan.bounds.start} up to {plan.bounds.stop}."
    for text in (*counts_text(plan), *changed_text(plan)):
        yield f"-- {text}"
    if not plan.total:
        return
    for statement in SESSION:
        yield f"{statement};"
    # A deadlock rolls back, and ends the transaction; with `mysql --force` the statements after it
    # would commit one by one.
    yield "SET SESSION autocommit = 0;"
    yield "START TRANSACTION;"
    yield "SET @undone = 0;"
    for each in plan.statements():
        yield f"-- {_place(each)}"
        if each.is_lenient:
            yield f"{LENIENT_MODE};"
        yield f"{each.sql};"
        yield "SET @undone = @undone + ROW_COUNT();"
        if each.is_lenient:
            yield f"{STRICT_MODE};"
    yield f"SET @end = IF(@undone = {plan.total}, 'COMMIT', 'ROLLBACK');"
    yield "PREPARE flashback_end FROM @end;"
    yield "EXECUTE flashback_end;"
    yield "-- An error here says that rows have changed since, and that nothing was undone."
    yield (
        f"SELECT IF(@undone = {plan.total}, 'undone: {plan.total} changes',"
        " (SELECT 'nothing is undone' UNION ALL SELECT 'rows have changed since')) AS result;"
    )


def counts_text(plan: FlashbackPlan) -> list[str]:
    """Return a line for each table, with its numbers of statements."""
    if not plan.total:
        return ["no change of these tables is in the window"]
    lines = []
    for table, counts in sorted(plan.counts.items()):
        numbers = ", ".join(
            f"{counts[name]:,} {name}s" if counts[name] != 1 else f"1 {name}"
            for name in ("insert", "update", "delete")
            if counts[name]
        )
        lines.append(f"{printable(table)}: {numbers}")
    lines += [
        f"{printable(table)}: {engine} has no transactions, so that a failure leaves the rows"
        " before it undone"
        for table, engine in sorted(plan.unprotected.items())
    ]
    return lines


def changed_text(plan: FlashbackPlan) -> list[str]:
    """Return lines about the rows that have changed since the window; empty without any."""
    if not plan.changed_count:
        return []
    count = f"{plan.changed_count:,}"
    lines = [f"{count} later changes of these rows, which must be as the window left them:"]
    lines += [f"  {_changed_text(each)}" for each in plan.changed_since[:_MAX_SHOWN]]
    if plan.changed_count > _MAX_SHOWN:
        lines.append(f"  and {plan.changed_count - _MAX_SHOWN:,} more")
    return lines


def _changed_text(each: ChangedSince) -> str:
    return (
        f"{printable(each.table)} {printable(each.row)}: {each.operation} at"
        f" {printable(each.file)}:{each.pos}, {_time(each.time)}"
    )


def statement_json(each: UndoStatement) -> str:
    """Return a statement as a line of JSON; docs/reference/command-line.md lists its fields."""
    fields = {
        "operation": each.operation,
        "table": each.table,
        "sql": each.sql,
        "undoes": {
            "file": each.file,
            "pos": each.pos,
            "row": each.row,
            "time": _time(each.time),
            "gtid": each.gtid,
        },
    }
    return json.dumps(fields, ensure_ascii=False)


def summary_json(plan: FlashbackPlan, *, applied: bool) -> str:
    """Return the last line of JSON: the numbers, and the rows that have changed since."""
    fields = {
        "start": str(plan.bounds.start),
        "stop": str(plan.bounds.stop),
        "end": str(plan.end),
        "statements": plan.total,
        "tables": {table: dict(counts) for table, counts in sorted(plan.counts.items())},
        "changed_since": [asdict(each) | {"time": _time(each.time)} for each in plan.changed_since],
        "changed_since_count": plan.changed_count,
        "not_transactional": sorted(plan.unprotected),
        "applied": applied,
    }
    return json.dumps(fields, ensure_ascii=False)


def _place(each: UndoStatement) -> str:
    gtid = "" if each.gtid is None else f", {each.gtid}"
    return f"{printable(each.file)}:{each.pos} row {each.row}, {_time(each.time)}{gtid}"


def _time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
