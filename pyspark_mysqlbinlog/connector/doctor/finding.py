"""The result of a check."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

__all__ = ["Finding", "Status", "ok", "stop", "warning"]

Status = Literal["ok", "warning", "stop"]
_MAX_ERRORS = 3


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check.

    Attributes
    ----------
    status : ``stop`` if a query ends with an error, ``warning`` if it may lack something.
    found : what was found; for ``stop`` the message of the query's error.
    expected : what it should be; empty if `found` includes it.
    statements : SQL that an administrator types to correct it, in this order.
    advice : what else to do.
    check : the name of the check.
    """

    status: Status
    found: str
    expected: str = ""
    statements: tuple[str, ...] = ()
    advice: str = ""
    check: str = ""


def ok(found: str) -> Finding:
    """Return a finding that needs no correction."""
    return Finding("ok", found)


def warning(
    found: str, expected: str = "", *, statements: Iterable[str] = (), advice: str = ""
) -> Finding:
    """Return a finding that does not end a query."""
    return Finding("warning", found, expected, tuple(dict.fromkeys(statements)), advice)


def stop(
    found: str | Sequence[str], *, statements: Iterable[str] = (), advice: str = ""
) -> Finding:
    """Return a finding that ends a query.

    found : the query's error; of several, the query reports the first.
    """
    texts = [found] if isinstance(found, str) else [*dict.fromkeys(found)]
    more = texts[_MAX_ERRORS:]
    text = "; ".join([*texts[:_MAX_ERRORS], *([f"and {len(more):,} more"] if more else [])])
    return Finding("stop", text, "", tuple(dict.fromkeys(statements)), advice)
