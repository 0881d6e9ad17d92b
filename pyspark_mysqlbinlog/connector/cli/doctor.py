"""``pyspark-mysqlbinlog doctor``: whether a server and a lake are ready, and what to type if not.

Exit codes: 0 if nothing stops a query, 1 if something does, 2 if an argument is wrong. Spark is not
started.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

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
from pyspark_mysqlbinlog.errors import MySQLBinlogError, OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_mysqlbinlog.connector.doctor.finding import Finding

__all__ = ["doctor"]


def doctor(
    *,
    host: Host,
    port: Port = 3306,
    user: User,
    password_file: PasswordFile = None,
    option: SourceOptions = None,
    tables: Annotated[
        str | None,
        typer.Option(
            help="Tables of the query: database.table or globs, separated by commas; all without"
            " it.",
            rich_help_panel=SOURCE,
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            help="Path, URI or catalog name of a mirror's Delta tables, with {database} and {table}"
            " in it: check them, and what a mirror needs in addition to a stream.",
            rich_help_panel=DELTA,
        ),
    ] = None,
    storage_option: StorageOptions = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="JSON instead of text.", rich_help_panel=OUTPUT),
    ] = False,
) -> None:
    """Check whether a server is ready for a stream or a mirror, and show what to type if not.

    Give the account and the options of the query. Nothing is changed on the server. With --target a
    small Delta table is written there, and removed.
    """
    from pyspark_mysqlbinlog.connector.delta.mirror import mirror_options
    from pyspark_mysqlbinlog.connector.doctor.examination import examine
    from pyspark_mysqlbinlog.connector.options.checks import check_stream
    from pyspark_mysqlbinlog.connector.options.parse import parse_options

    try:
        if storage_option and target is None:
            raise OptionError("--storage-option: it is for the Delta tables; give --target")
        texts = source_options(host, port, user, password_file, option, tables=tables)
        options = parse_options(texts if target is None else mirror_options(texts))
        check_stream(options)
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
    from pyspark_mysqlbinlog.connector.cli.console.findings import show_findings

    show_findings(findings)
