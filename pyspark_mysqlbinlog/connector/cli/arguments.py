"""Arguments that more than one command takes."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark_mysqlbinlog.errors import OptionError

__all__ = ["pairs"]


def pairs(name: str, given: Iterable[str] | None) -> dict[str, str]:
    """Return the pairs name=value of an option that can be repeated.

    Raises OptionError for another form.
    """
    found = {}
    for each in given or ():
        key, equals, value = each.partition("=")
        if not equals or not key:
            # Not shown: it may be a secret.
            raise OptionError(f"{name}: expected name=value, found another form")
        found[key] = value
    return found
