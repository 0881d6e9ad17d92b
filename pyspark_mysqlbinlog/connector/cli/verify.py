"""``pyspark-mysqlbinlog verify``: compares Delta tables with MySQL tables.

`connector/verification` does the work; this module prints its results. Exit codes: 0 if all tables
are equal, 1 if a difference is confirmed or the comparison failed, 2 if an argument is wrong, 3 if
no difference is confirmed, but a table or a row could not be compared.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pyspark_mysqlbinlog.connector.cli.arguments import pairs
from pyspark_mysqlbinlog.connector.cli.exits import FAILED, USAGE, end
from pyspark_mysqlbinlog.connector.cli.screen import end_quietly, prepare_streams
from pyspark_mysqlbinlog.errors import MySQLBinlogError, OptionError

if TYPE_CHECKING:
    from pyspark_mysqlbinlog.connector.verification.results import TableResult
    from pyspark_mysqlbinlog.connector.verification.verifier import Verifier

__all__ = ["verify"]

# Headings of `verify --help`.
_SOURCE, _DELTA, _COMPARISON, _OUTPUT = "Source", "Delta tables", "Comparison", "Output"
_NOT_CONFIRMED = 3


def verify(  # noqa: PLR0917 (typer's options have names)
    host: Annotated[str, typer.Option(help="Host of the MySQL server.", rich_help_panel=_SOURCE)],
    user: Annotated[
        str,
        typer.Option(
            help="Account of the server, with the grants of the mirror's.",
            rich_help_panel=_SOURCE,
        ),
    ],
    tables: Annotated[
        str,
        typer.Option(
            help="Tables to compare: database.table or globs, separated by commas.",
            rich_help_panel=_SOURCE,
        ),
    ],
    target: Annotated[
        str,
        typer.Option(
            help="Path or URI of the Delta tables, as given to the mirror.",
            rich_help_panel=_DELTA,
        ),
    ],
    port: Annotated[
        int, typer.Option(help="Port of the MySQL server.", rich_help_panel=_SOURCE)
    ] = 3306,
    password_file: Annotated[
        Path | None,
        typer.Option(help="File that contains the password.", rich_help_panel=_SOURCE),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            help="name=value of an option in docs/reference/options.md, as given to the mirror;"
            " can be repeated.",
            rich_help_panel=_SOURCE,
        ),
    ] = None,
    storage_option: Annotated[
        list[str] | None,
        typer.Option(
            help="name=value for delta-rs, such as credentials; can be repeated.",
            rich_help_panel=_DELTA,
        ),
    ] = None,
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
            rich_help_panel=_OUTPUT,
            min=0,
        ),
    ] = 20,
    json_lines: Annotated[
        bool,
        typer.Option(
            "--json", help="One line of JSON per table instead of text.", rich_help_panel=_OUTPUT
        ),
    ] = False,
    reload: Annotated[
        bool,
        typer.Option(
            "--reload",
            help="Print the option with which the mirror reloads the tables that differ.",
            rich_help_panel=_OUTPUT,
        ),
    ] = False,
) -> None:
    """Compare Delta tables with the MySQL tables that they mirror, while both are in use.

    A difference is reported only if the binlog proves that it is not a change on its way.
    """
    options: dict[str, str] = {"host": host, "port": str(port), "user": user, "tables": tables}
    if password_file is not None:
        options["passwordFile"] = str(password_file)
    try:
        more = pairs("--option", option)
        again = {name.lower() for name in options} & {name.lower() for name in more}
        if again:
            raise OptionError(f"--option {min(again)}: use this command's own option for it")
        verifier = _verifier(
            options | more,
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

    prepare_streams(writes_json=json_lines)
    results = []
    for result in verifier.results():
        results.append(result)
        for line in [as_json(result)] if json_lines else as_lines(result):
            sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    return results


def _print_reload(results: list[TableResult]) -> None:
    from pyspark_mysqlbinlog.connector.verification.report import reload_option

    told = reload_option(results)
    if told is not None:
        typer.echo(f"To repair, restart the mirror once with: --option 'reload={told}'", err=True)
