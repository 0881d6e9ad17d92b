"""``pyspark-mysqlbinlog doctor``: whether a server and a lake are ready, and what to type if not.

Exit codes: 0 if nothing stops a query, 1 if something does, 2 if an argument is wrong. Spark is not
started.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pyspark_mysqlbinlog.connector.cli.arguments import pairs, source_options
from pyspark_mysqlbinlog.connector.cli.exits import FAILED, USAGE, end
from pyspark_mysqlbinlog.errors import MySQLBinlogError, OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_mysqlbinlog.connector.doctor.finding import Finding

__all__ = ["doctor"]

# Headings of `doctor --help`.
_SOURCE, _DELTA, _OUTPUT = "Source", "Delta tables", "Output"


def doctor(  # noqa: PLR0917 (typer's options have names)
    host: Annotated[str, typer.Option(help="Host of the MySQL server.", rich_help_panel=_SOURCE)],
    user: Annotated[
        str, typer.Option(help="Account that the query will use.", rich_help_panel=_SOURCE)
    ],
    tables: Annotated[
        str | None,
        typer.Option(
            help="Tables of the query: database.table or globs, separated by commas; all without"
            " it.",
            rich_help_panel=_SOURCE,
        ),
    ] = None,
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
            help="name=value of an option in docs/reference/options.md; can be repeated.",
            rich_help_panel=_SOURCE,
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            help="Path or URI of a mirror's Delta tables, with {database} and {table} in it: check"
            " them, and what a mirror needs in addition to a stream.",
            rich_help_panel=_DELTA,
        ),
    ] = None,
    storage_option: Annotated[
        list[str] | None,
        typer.Option(
            help="name=value for delta-rs, such as credentials; can be repeated.",
            rich_help_panel=_DELTA,
        ),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="JSON instead of text.", rich_help_panel=_OUTPUT),
    ] = False,
) -> None:
    """Check whether a server is ready for a stream or a mirror, and show what to type if not.

    Nothing is changed on the server. With --target a small Delta table is written there, and
    removed.
    """
    from pyspark_mysqlbinlog.connector.delta.mirror import mirror_options
    from pyspark_mysqlbinlog.connector.doctor.examination import examine
    from pyspark_mysqlbinlog.connector.options.parse import parse_options

    try:
        if storage_option and target is None:
            raise OptionError("--storage-option: it is for the Delta tables; give --target")
        texts = source_options(
            host, port, user, tables=tables, password_file=password_file, more=option
        )
        options = parse_options(texts if target is None else mirror_options(texts))
        findings = [*examine(options, target, pairs("--storage-option", storage_option))]
    except OptionError as error:
        end(error, USAGE)
    except MySQLBinlogError as error:
        end(error, FAILED)
    if as_json:
        typer.echo(json.dumps([asdict(each) for each in findings], indent=2))
    else:
        _show(findings)
    if any(each.status == "stop" for each in findings):
        raise typer.Exit(FAILED)


def _show(findings: Sequence[Finding]) -> None:
    from pyspark_mysqlbinlog.connector.cli.findings import show_findings

    show_findings(findings)
