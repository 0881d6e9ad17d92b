"""``pyspark-mysqlbinlog tail``: shows the changes of a server as they happen.

Exit codes: 0 if it was stopped or has shown what --limit allows, 1 if the binlog cannot be read, 2
if an argument is wrong.
"""

from __future__ import annotations

import sys
from itertools import count
from typing import TYPE_CHECKING, Annotated

import typer

from pyspark_mysqlbinlog.connector.cli.arguments import (
    OUTPUT,
    SELECTION,
    ConnectionOptions,
    Host,
    PasswordFile,
    Port,
    ShownTables,
    User,
    check_applied,
    place_in_binlog,
    source_options,
)
from pyspark_mysqlbinlog.connector.cli.console.exits import FAILED, USAGE, end
from pyspark_mysqlbinlog.connector.cli.console.screen import (
    end_quietly,
    paint_of_stdout,
    prepare_streams,
)
from pyspark_mysqlbinlog.errors import MySQLBinlogError, OptionError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark_mysqlbinlog.connector.inspection.entries import Entries, Entry
    from pyspark_mysqlbinlog.connector.inspection.selection import Selection
    from pyspark_mysqlbinlog.connector.inspection.sources import LiveBinlog
    from pyspark_mysqlbinlog.connector.options.values import PlaceInBinlog

__all__ = ["tail"]

# Options of the source -> the flags that do the same.
_FLAGS = {
    "excludeTables": "--tables",
    "operations": "--operations",
    "startingOffset": "--since",
    "tables": "--tables",
}


def tail(
    *,
    host: Host,
    port: Port = 3306,
    user: User,
    password_file: PasswordFile = None,
    option: ConnectionOptions = None,
    tables: ShownTables = None,
    operations: Annotated[
        str,
        typer.Option(
            help="Operations to show: insert, update, delete and statement, separated by commas.",
            rich_help_panel=SELECTION,
        ),
    ] = "insert,update,delete,statement",
    since: Annotated[
        str | None,
        typer.Option(
            help="Begin in the past: a duration such as 10m, a time, FILE:POS or earliest. Without"
            " it, only new changes are shown.",
            rich_help_panel=SELECTION,
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1, help="End after this many changes and statements.", rich_help_panel=SELECTION
        ),
    ] = None,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose",
            "-v",
            help="Show all columns of a change, as inspect -v does.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    json_lines: Annotated[
        bool,
        typer.Option(
            "--json", help="One line of JSON per change instead of text.", rich_help_panel=OUTPUT
        ),
    ] = False,
) -> None:
    """Show the changes of a MySQL server as they happen, until this command is stopped."""
    prepare_streams(writes_utf8=json_lines)
    try:
        chosen = _operations(operations)
        options = source_options(host, port, user, password_file, option)
        check_applied("tail", option, more=["retryTimeout"], instead=_FLAGS)
        source = _source(options, _place(since))
        selection = _selection(tables, source)
    except MySQLBinlogError as error:
        end(error, USAGE if isinstance(error, OptionError) else FAILED)
    from pyspark_mysqlbinlog.connector.inspection.entries import Entries

    entries = Entries(source)
    shown = count(1)
    try:
        for entry in selection.of(entries):
            for text in _texts(entries, entry, chosen, verbose=verbose, json_lines=json_lines):
                sys.stdout.write(f"{text}\n")
                sys.stdout.flush()
                if next(shown) == limit:
                    return
    except KeyboardInterrupt:
        return
    except MySQLBinlogError as error:
        end(error, FAILED)
    except BrokenPipeError:
        end_quietly()


def _operations(text: str) -> frozenset[str]:
    known = ("insert", "update", "delete", "statement")
    chosen = frozenset(each.strip() for each in text.split(","))
    if not chosen <= set(known):
        raise OptionError(f"--operations: expected some of {', '.join(known)}, found {text!r}")
    return chosen


def _selection(tables: str | None, source: LiveBinlog) -> Selection:
    from pyspark_mysqlbinlog.connector.inspection.selection import Selection
    from pyspark_mysqlbinlog.connector.options.table_filter import TableFilter

    if tables is None:
        return Selection()
    return Selection(TableFilter.parse(tables, case_sensitive=source.case_sensitive))


def _place(since: str | None) -> PlaceInBinlog:
    from pyspark_mysqlbinlog.connector.options.values import Latest

    return Latest() if since is None else place_in_binlog("--since", since)


def _source(options: dict[str, str], place: PlaceInBinlog) -> LiveBinlog:
    from pyspark_mysqlbinlog.connector.inspection.sources import LiveBinlog
    from pyspark_mysqlbinlog.connector.options.parse import parse_options

    parsed = parse_options(options)
    return LiveBinlog(parsed.server_settings(), place, parsed.retry_timeout)


def _texts(
    entries: Entries, entry: Entry, chosen: frozenset[str], *, verbose: bool, json_lines: bool
) -> Iterator[str]:
    """Yield the texts of the changes of an entry, or of its statement."""
    from pyspark_mysqlbinlog.connector.inspection.change_lines import change_line, statement_line
    from pyspark_mysqlbinlog.connector.inspection.json_lines import change_json, statement_json
    from pyspark_mysqlbinlog.connector.inspection.text import is_change, row_statement

    paint = paint_of_stdout()
    if entry.statement is not None:
        if "statement" in chosen and is_change(entry):
            yield statement_json(entry) if json_lines else statement_line(entry, paint)
        return
    columns = entries.columns(entry)
    words = {"c": "insert", "u": "update", "d": "delete"}
    if columns is None or entry.head is None or words[entry.head.op] not in chosen:
        return
    for row in entries.rows(entry):
        if json_lines:
            yield change_json(entries, entry, row)
        elif verbose:
            lines = "\n".join(row_statement(entry, row, columns))
            yield f"{change_line(entry, row, columns, paint).partition('  ')[0]}\n{lines}"
        else:
            yield change_line(entry, row, columns, paint)
