"""What is said to datafusion, the SQL engine inside of delta-rs."""

from __future__ import annotations

__all__ = ["quoted"]


def quoted(name: str) -> str:
    """A column's name."""
    return '"' + name.replace('"', '""') + '"'
