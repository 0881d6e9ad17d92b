"""``pyspark-mysqlbinlog flashback``: undoes row changes of a server's tables.

The package `flashback` does the work. Exit codes: 0 if the statements were printed or applied, 1 if
the changes cannot be undone or the command failed, 2 if an argument is wrong, 3 if rows have
changed since: the statements were printed, or nothing was applied.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from pyspark_mysqlbinlog.connector.cli.arguments import (
    OUTPUT,
    ConnectionOptions,
    Host,
    PasswordFile,
    Port,
    User,
    check_applied,
    place_in_binlog,
    source_options,
)
from pyspark_mysqlbinlog.connector.cli.console.exits import FAILED, USAGE, end
from pyspark_mysqlbinlog.connector.cli.console.screen import end_quietly, prepare_streams
from pyspark_mysqlbinlog.errors import MySQLBinlogError, OptionError, RowChangedError

if TYPE_CHECKING:
    from pyspark_mysqlbinlog.connector.flashback.plan import FlashbackPlan
    from pyspark_mysqlbinlog.connector.options.model import Options

__all__ = ["flashback"]

# Headings of `flashback --help`.
_WINDOW, _APPLY = "Window", "Apply"
_CHANGED_SINCE = 3
# Options of the source -> the flags that do the same.
_FLAGS = {"endingOffset": "--until", "startingOffset": "--since"}


def flashback(
    *,
    host: Host,
    port: Port = 3306,
    user: User,
    password_file: PasswordFile = None,
    option: ConnectionOptions = None,
    tables: Annotated[
        str,
        typer.Option(
            help="Tables whose changes are undone: database.table or globs, separated by commas.",
            rich_help_panel=_WINDOW,
        ),
    ],
    since: Annotated[
        str | None,
        typer.Option(
            help="Begin of the window: a time such as 2026-11-20T10:00:00 (UTC unless it has a"
            " zone), a duration such as 10m, or FILE:POS.",
            rich_help_panel=_WINDOW,
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            help="End of the window, in the same forms: later transactions are not undone. Without"
            " it, the end of the binlog.",
            rich_help_panel=_WINDOW,
        ),
    ] = None,
    gtids: Annotated[
        str | None,
        typer.Option(
            help="Undo only these transactions: a GTID set; of MariaDB, GTIDs separated by commas.",
            rich_help_panel=_WINDOW,
        ),
    ] = None,
    json_lines: Annotated[
        bool,
        typer.Option(
            "--json",
            help="One line of JSON per statement instead of a script, and one with the numbers.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Show only how many statements each table needs, and which rows have changed"
            " since. With --apply: run the statements, and roll them back.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    apply: Annotated[
        bool,
        typer.Option(
            "--apply",
            help="Run the statements on the server, in one transaction, after a confirmation.",
            rich_help_panel=_APPLY,
        ),
    ] = False,
    yes: Annotated[
        bool,
        typer.Option("--yes", help="Apply without a confirmation.", rich_help_panel=_APPLY),
    ] = False,
) -> None:
    """Undo the row changes of tables in a window of the binlog, the newest one first.

    Prints the statements as a script for mysql. With --apply they are run on the server.
    """
    prepare_streams(writes_utf8=True)
    from pyspark_mysqlbinlog.connector.flashback.plan import FlashbackPlan
    from pyspark_mysqlbinlog.connector.flashback.window import Window
    from pyspark_mysqlbinlog.connector.options.parse import parse_options
    from pyspark_mysqlbinlog.connector.options.values import Latest

    try:
        texts = source_options(host, port, user, password_file, option, tables=tables)
        check_applied("flashback", option, more=["excludeTables"], instead=_FLAGS)
        options = parse_options(texts)
        window = Window(
            None if since is None else place_in_binlog("--since", since),
            Latest() if until is None else place_in_binlog("--until", until),
            gtids,
        )
        made = FlashbackPlan.make(options, window)
    except MySQLBinlogError as error:
        end(error, USAGE if isinstance(error, OptionError) else FAILED)
    with made as plan:
        try:
            if apply:
                _apply(options, plan, confirm=not yes, keep=not dry_run, json_lines=json_lines)
                return
            _print(plan, json_lines=json_lines, only_numbers=dry_run)
        except RowChangedError as error:
            end(error, _CHANGED_SINCE)
        except MySQLBinlogError as error:
            end(error, FAILED)
        except BrokenPipeError:
            end_quietly()
        if plan.changed_count:
            raise typer.Exit(_CHANGED_SINCE)


def _print(plan: FlashbackPlan, *, json_lines: bool, only_numbers: bool) -> None:
    from pyspark_mysqlbinlog.connector.flashback.script import (
        changed_text,
        counts_text,
        script_lines,
        statement_json,
        summary_json,
    )

    write = sys.stdout.write
    if json_lines:
        if not only_numbers:
            for each in plan.statements():
                write(f"{statement_json(each)}\n")
        write(f"{summary_json(plan, applied=False)}\n")
    else:
        lines = [*counts_text(plan), *changed_text(plan)] if only_numbers else script_lines(plan)
        for line in lines:
            write(f"{line}\n")
    sys.stdout.flush()


def _apply(
    options: Options, plan: FlashbackPlan, *, confirm: bool, keep: bool, json_lines: bool
) -> None:
    from pyspark_mysqlbinlog.connector.flashback.application import apply_plan
    from pyspark_mysqlbinlog.connector.flashback.script import (
        changed_text,
        counts_text,
        summary_json,
    )

    # With --json, standard output has nothing else.
    for line in (*counts_text(plan), *changed_text(plan)):
        typer.echo(line, err=json_lines)
    if plan.total:
        if confirm and keep:
            typer.confirm(f"Undo {plan.total:,} changes?", abort=True, err=json_lines)
        apply_plan(options.server_settings(), plan, keep=keep)
    if json_lines:
        sys.stdout.write(f"{summary_json(plan, applied=keep and bool(plan.total))}\n")
    elif plan.total:
        outcome = "undone" if keep else "undone and rolled back (--dry-run)"
        typer.echo(f"{plan.total:,} changes are {outcome}")
