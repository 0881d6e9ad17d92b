"""``pyspark-mysqlbinlog verify``: compares Delta tables with MySQL tables.

`connector/verification` does the work; this module prints its results. Exit codes: 0 if all tables
are equal, 1 if a difference is confirmed or the comparison failed, 2 if an argument is wrong, 3 if
no difference is confirmed, but a table or a row could not be compared.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pyspark_mysqlbinlog.connector.cli.arguments import (
    DELTA,
    OUTPUT,
    SOURCE,
    Host,
    PasswordFile,
    Port,
    SourceOptions,
    StorageOptions,
    User,
    pairs,
    source_options,
)
from pyspark_mysqlbinlog.connector.cli.console.exits import FAILED, USAGE, end
from pyspark_mysqlbinlog.connector.cli.console.screen import end_quietly, prepare_streams
from pyspark_mysqlbinlog.errors import MySQLBinlogError

if TYPE_CHECKING:
    from pyspark_mysqlbinlog.connector.verification.results import TableResult
    from pyspark_mysqlbinlog.connector.verification.verifier import Verifier

__all__ = ["verify"]

# One more heading of `--help`.
_COMPARISON = "Comparison"
_NOT_CONFIRMED = 3


def verify(
    *,
    host: Host,
    port: Port = 3306,
    user: User,
    password_file: PasswordFile = None,
    option: SourceOptions = None,
    tables: Annotated[
        str,
        typer.Option(
            help="Tables to compare: database.table or globs, separated by commas.",
            rich_help_panel=SOURCE,
        ),
    ],
    target: Annotated[
        str,
        typer.Option(
            help="Path or URI of the Delta tables, as given to the mirror.",
            rich_help_panel=DELTA,
        ),
    ],
    storage_option: StorageOptions = None,
    parallel: Annotated[
        int,
        typer.Option(
            help="Connections that read a table at the same time.",
            rich_help_panel=_COMPARISON,
            min=1,
        ),
    ] = 2,
    timeout: Annotated[
        float,
        typer.Option(
            help="Seconds per table to confirm rows that are being changed.",
            rich_help_panel=_COMPARISON,
            min=0.0,
        ),
    ] = 60.0,
    show: Annotated[
        int,
        typer.Option(
            help="Differences that are listed per table; others are counted.",
            rich_help_panel=OUTPUT,
            min=0,
        ),
    ] = 20,
    json_lines: Annotated[
        bool,
        typer.Option(
            "--json", help="One line of JSON per table instead of text.", rich_help_panel=OUTPUT
        ),
    ] = False,
    reload: Annotated[
        bool,
        typer.Option(
            "--reload",
            help="Print the option with which the mirror reloads the tables that differ.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
) -> None:
    """Compare Delta tables with the MySQL tables that they mirror, while both are in use.

    Give the account and the options of the mirror. A difference is reported only if the binlog
    proves that it is not a change on its way.
    """
    try:
        verifier = _verifier(
            source_options(host, port, user, password_file, option, tables=tables),
            target,
            storage_options=pairs("--storage-option", storage_option),
            parallel=parallel,
            timeout=timeout,
            shown=show,
        )
    except MySQLBinlogError as error:
        end(error, USAGE)
    try:
        results = _printed(verifier, json_lines=json_lines)
    except MySQLBinlogError as error:
        end(error, FAILED)
    except BrokenPipeError:
        end_quietly()
    if reload:
        _print_reload(results)
    if any(result.is_different for result in results):
        raise typer.Exit(FAILED)
    if not all(result.is_complete for result in results):
        raise typer.Exit(_NOT_CONFIRMED)


def _verifier(options: Mapping[str, str], target: str, **settings: Any) -> Verifier:
    from pyspark_mysqlbinlog.connector.verification.verifier import Verifier

    return Verifier(options, target, **settings)


def _printed(verifier: Verifier, *, json_lines: bool) -> list[TableResult]:
    """Print each table's result as soon as it is known."""
    from pyspark_mysqlbinlog.connector.verification.report import as_json, as_lines

    prepare_streams(writes_utf8=json_lines)
    results = []
    for result in verifier.results():
        results.append(result)
        for line in [as_json(result)] if json_lines else as_lines(result):
            sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    return results


def _print_reload(results: list[TableResult]) -> None:
    from pyspark_mysqlbinlog.connector.verification.report import reload_option

    reload = reload_option(results)
    if reload is not None:
        typer.echo(f"To repair, restart the mirror once with: --option 'reload={reload}'", err=True)
