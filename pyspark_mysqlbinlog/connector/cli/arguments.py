"""Arguments that more than one command takes, and the options of the source that they give."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Annotated

import typer

from pyspark_mysqlbinlog.errors import OptionError

if TYPE_CHECKING:
    from pyspark_mysqlbinlog.connector.options.values import PlaceInBinlog

__all__ = [
    "CONNECTION_OPTIONS",
    "DELTA",
    "OUTPUT",
    "SELECTION",
    "SOURCE",
    "ConnectionOptions",
    "Host",
    "PasswordFile",
    "Port",
    "ShownTables",
    "SourceOptions",
    "StorageOptions",
    "User",
    "check_applied",
    "pairs",
    "place_in_binlog",
    "source_options",
]

# Headings of `--help`.
SOURCE, SELECTION, DELTA, OUTPUT = "Source", "Selection", "Delta tables", "Output"
# The options without an own flag that decide how to connect. Without `failover`: no command that
# takes only these continues on another server.
CONNECTION_OPTIONS = frozenset(
    {
        "connectTimeout",
        "heartbeatInterval",
        "password",
        "passwordFile",
        "serverId",
        "sslCa",
        "sslCert",
        "sslKey",
        "sslMode",
    }
)

Host = Annotated[str, typer.Option(help="Host of the MySQL server.", rich_help_panel=SOURCE)]
Port = Annotated[int, typer.Option(help="Port of the MySQL server.", rich_help_panel=SOURCE)]
User = Annotated[
    str,
    typer.Option(
        help="Account of the server; docs/reference/security.md lists its grants.",
        rich_help_panel=SOURCE,
    ),
]
PasswordFile = Annotated[
    Path | None,
    typer.Option(help="File that contains the password.", rich_help_panel=SOURCE),
]
SourceOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="NAME=VALUE",
        help="name=value of an option in docs/reference/options.md; can be repeated.",
        rich_help_panel=SOURCE,
    ),
]
ConnectionOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="NAME=VALUE",
        help="name=value of a connection option in docs/reference/options.md; can be repeated.",
        rich_help_panel=SOURCE,
    ),
]
ShownTables = Annotated[
    str | None,
    typer.Option(
        "--tables",
        help="Show only these tables: database.table or globs, separated by commas.",
        rich_help_panel=SELECTION,
    ),
]
StorageOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--storage-option",
        metavar="NAME=VALUE",
        help="name=value for delta-rs, such as credentials; can be repeated.",
        rich_help_panel=DELTA,
    ),
]


def source_options(
    host: str,
    port: int,
    user: str | None,
    password_file: Path | None,
    more: Iterable[str] | None,
    *,
    tables: str | None = None,
) -> dict[str, str]:
    """Return the options of the source, as texts.

    more : name=value of other options.

    Raises OptionError for an option that has an argument of its own.
    """
    own = {
        "host": host,
        "port": str(port),
        "user": user,
        "passwordFile": None if password_file is None else str(password_file),
        "tables": tables,
    }
    options = {name: value for name, value in own.items() if value is not None}
    others = pairs("--option", more)
    again = {name.lower() for name in options} & {name.lower() for name in others}
    if again:
        raise OptionError(f"--option {min(again)}: use this command's own option for it")
    return options | others


def check_applied(
    command: str,
    given: Iterable[str] | None,
    *,
    more: Collection[str] = (),
    instead: Mapping[str, str] | None = None,
) -> None:
    """Raise OptionError for an option of the source that would have no effect on a command.

    Parameters
    ----------
    given : name=value of options; unknown names are left to `parse_options`.
    more : options that the command applies in addition to those of a connection.
    instead : options -> the flags that do the same.
    """
    from pyspark_mysqlbinlog.connector.options.model import FIELDS

    applied = CONNECTION_OPTIONS.union(more)
    others = {name.lower(): name for name in FIELDS.keys() - applied}
    for key in pairs("--option", given):
        name = others.get(key.lower())
        if name is not None:
            flag = (instead or {}).get(name)
            remedy = "remove it" if flag is None else f"use {flag}"
            raise OptionError(
                f"--option {name}: {command} does not apply it, expected one of"
                f" {', '.join(sorted(applied))}; {remedy}"
            )


def pairs(name: str, given: Iterable[str] | None) -> dict[str, str]:
    """Return the pairs name=value of an option that can be repeated.

    Raises OptionError for another form.
    """
    found = {}
    for each in given or ():
        key, equals, value = each.partition("=")
        if not equals or not key:
            # The text is not shown, because it may be a secret.
            raise OptionError(f"{name}: expected name=value, found another form")
        found[key] = value
    return found


def place_in_binlog(name: str, text: str) -> PlaceInBinlog:
    """Parse a flag that is a duration until now, a time, a position or ``earliest``.

    name : the flag, for the OptionError of any other text.
    """
    from pyspark_mysqlbinlog.connector.options.values import (
        Earliest,
        FilePosition,
        Timestamp,
        parse_duration,
        parse_place,
    )

    for parse in (lambda text: Timestamp(time() - parse_duration(text)), parse_place):
        try:
            place = parse(text)
        except ValueError:
            continue
        if isinstance(place, Earliest | FilePosition | Timestamp):
            return place
    raise OptionError(
        f"{name}: expected a duration such as 10m, a time such as 2026-11-20T10:00:00, FILE:POS or"
        f" earliest, found {text!r}"
    )
