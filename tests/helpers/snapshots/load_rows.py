"""Tables after snapshot rows and changes are applied by `seq`, as a mirror does."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from helpers.servers import Server

__all__ = ["applied", "loaded", "select_json"]

Row = Mapping[str, Any]


def applied(rows: Iterable[Row], table: str, *, key: str = "id") -> dict[Any, dict[str, Any]]:
    """Return the rows of a table by key: for each key, the change with the greatest `seq`."""
    last: dict[Any, tuple[tuple[int, ...], dict[str, Any] | None]] = {}
    emptied: tuple[int, ...] = ()
    for row in rows:
        if f"{row['database']}.{row['table']}" != table:
            continue
        place = _place(row)
        if row["op"] == "t":
            emptied = max(emptied, place)
            continue
        before, after = (_image(row[side]) for side in ("before", "after"))
        if before is not None and (after is None or after[key] != before[key]):
            _keep(last, before[key], place, None)
        if after is not None:
            _keep(last, after[key], place, after)
    return {
        value: image
        for value, (place, image) in last.items()
        if image is not None and place > emptied
    }


def loaded(rows: Iterable[Row], table: str | None = None) -> list[dict[str, Any]]:
    """Return the snapshot rows in the order in which they arrived."""
    return [
        json.loads(row["after"])
        for row in rows
        if row["op"] == "r" and table in (None, f"{row['database']}.{row['table']}")
    ]


def select_json(server: Server, table: str, *columns: str) -> dict[Any, dict[str, Any]]:
    """Return the table's rows in the form of `applied`; for columns of numbers and plain texts."""
    names = ", ".join(f"`{column}`" for column in columns)
    return {
        row[0]: dict(zip(columns, row, strict=True))
        for row in server.execute(f"SELECT {names} FROM {table}")
    }


def _place(row: Row) -> tuple[int, ...]:
    seq = row["seq"]
    return seq["epoch"], seq["file"], seq["pos"], seq["row"]


def _image(text: str | None) -> dict[str, Any] | None:
    return None if text is None else json.loads(text)


def _keep(
    last: dict[Any, tuple[tuple[int, ...], dict[str, Any] | None]],
    key: Any,
    place: tuple[int, ...],
    image: dict[str, Any] | None,
) -> None:
    if key not in last or place >= last[key][0]:
        last[key] = place, image
