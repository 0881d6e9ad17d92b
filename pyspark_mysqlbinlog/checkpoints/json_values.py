"""Values of JSON that was read back, checked: each returns its value or raises what JSON raises."""

from __future__ import annotations

from typing import Any

__all__ = ["flag_of", "number_of", "optional_flag_of", "text_of", "texts_of"]


def number_of(value: Any) -> int:
    """A whole number, not negative."""
    if type(value) is not int or value < 0:
        raise ValueError
    return value


def text_of(value: Any) -> str:
    """A string."""
    if not isinstance(value, str):
        raise TypeError
    return value


def texts_of(value: Any) -> tuple[str, ...]:
    """A list of strings."""
    if not isinstance(value, list):
        raise TypeError
    return tuple(map(text_of, value))


def flag_of(value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise TypeError
    return value


def optional_flag_of(value: Any) -> bool | None:
    """True, false or null."""
    return None if value is None else flag_of(value)
