"""Arguments that more than one command takes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pyspark_mysqlbinlog.errors import OptionError

__all__ = ["pairs", "source_options"]


def source_options(
    host: str,
    port: int,
    user: str,
    *,
    tables: str | None,
    password_file: Path | None,
    more: Iterable[str] | None,
) -> dict[str, str]:
    """Return the options of the source, as texts.

    more : name=value of other options.

    Raises OptionError for an option that has an argument of its own.
    """
    options = {"host": host, "port": str(port), "user": user}
    if tables is not None:
        options["tables"] = tables
    if password_file is not None:
        options["passwordFile"] = str(password_file)
    others = pairs("--option", more)
    again = {name.lower() for name in options} & {name.lower() for name in others}
    if again:
        raise OptionError(f"--option {min(again)}: use this command's own option for it")
    return options | others


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
