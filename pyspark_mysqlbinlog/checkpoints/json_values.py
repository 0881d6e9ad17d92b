"""Checks of values read from JSON: each returns its value or raises what a JSON reader raises."""

from __future__ import annotations

from typing import Any

__all__ = ["flag_of", "number_of", "optional_flag_of", "text_of", "texts_of"]


def number_of(value: Any) -> int:
    """Return a non-negative integer."""
    if type(value) is not int or value < 0:
        raise ValueError
    return value


def text_of(value: Any) -> str:
    """Return a string."""
    if not isinstance(value, str):
        raise TypeError
    return value


def texts_of(value: Any) -> tuple[str, ...]:
    """Return a list of strings as a tuple."""
    if not isinstance(value, list):
        raise TypeError
    return tuple(map(text_of, value))


def flag_of(value: Any) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        raise TypeError
    return value


def optional_flag_of(value: Any) -> bool | None:
    """Return true, false or null."""
    return None if value is None else flag_of(value)
