"""Expected masked rows, computed in Python from the values that SELECT shows."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from typing import Any

from helpers.servers import Server

__all__ = ["SECRET", "hashed", "masked", "selected"]

SECRET = "a-salt-of-32-bytes-for-tests-only"


def hashed(value: Any) -> str:
    """Return the HMAC-SHA256 of a value's text, or of its bytes."""
    given = value if isinstance(value, bytes) else str(value).encode()
    return hmac.new(SECRET.encode(), given, "sha256").hexdigest()


def masked(value: Any, mask: str) -> Any:
    """Return a value's text under a mask, which is spelled as in the option."""
    if value is None:
        return None
    kind, _, length = mask.removesuffix(")").partition("(")
    if kind == "hash":
        return hashed(value)
    if kind == "redact":
        return "***"
    text, count = str(value), int(length)
    if kind == "truncate":
        return text[:count]
    return "***" + text[-count:] if len(text) > count else "***"


def selected(
    server: Server,
    table: str,
    columns: Mapping[str, str],
    masks: Mapping[str, str],
    condition: str = "TRUE",
) -> Sequence[dict[str, Any]]:
    """Return the rows that SELECT shows, masked, in the order of the first column.

    columns : name -> the expression that gives the column's text, or its bytes.
    condition : which rows.
    """
    first = next(iter(columns))
    shown = ", ".join(columns.values())
    rows = server.execute(
        "SET time_zone = '+00:00'",
        f"SELECT {shown} FROM {table} WHERE {condition} ORDER BY {first}",
    )
    return [
        {
            name: masked(value, masks[name]) if name in masks else value
            for name, value in zip(columns, row, strict=True)
        }
        for row in rows
    ]
