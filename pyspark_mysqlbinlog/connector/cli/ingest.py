"""``pyspark-mysqlbinlog ingest``: runs a Delta mirror from the shell, until it is stopped.

DeltaMirror does the work; this module starts Spark, shows the progress, turns errors into one line,
and exits cleanly at SIGTERM and SIGINT. Exit codes: 0 if it was stopped or (with --available-now)
is done, 1 if the query failed or replication of a table stopped, 2 if an argument is wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from io import TextIOWrapper
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
from pyspark_mysqlbinlog.connector.cli.runner import SparkEndedError, run
from pyspark_mysqlbinlog.errors import MySQLBinlogError, cause_of

if TYPE_CHECKING:
    from pyspark_mysqlbinlog.connector.cli.console.output import Display
    from pyspark_mysqlbinlog.connector.delta.mirror import DeltaMirror
    from pyspark_mysqlbinlog.connector.metrics.http_server import PageServer
    from pyspark_mysqlbinlog.connector.metrics.watch import QueryWatch

__all__ = ["ingest"]

# More headings of `--help`.
_SPARK, _MONITORING = "Spark", "Monitoring"
_MAX_PORT = 65_535


def ingest(
    *,
    host: Host,
    port: Port = 3306,
    user: User,
    password_file: PasswordFile = None,
    option: SourceOptions = None,
    tables: Annotated[
        str,
        typer.Option(
            help="Tables to replicate: database.table or globs, separated by commas.",
            rich_help_panel=SOURCE,
        ),
    ],
    checkpoint: Annotated[
        str,
        typer.Option(help="Spark checkpoint directory of this mirror.", rich_help_panel=_SPARK),
    ],
    target: Annotated[
        str | None,
        typer.Option(
            help="Path or URI of the Delta tables, with {database} and {table} in it; with --engine"
            " spark also a name in a catalog: catalog.schema.table.",
            rich_help_panel=DELTA,
        ),
    ] = None,
    change_log: Annotated[
        str | None,
        typer.Option(
            help="Path or URI of the change logs, with {database} and {table} in it; can be given"
            " with or without --target.",
            rich_help_panel=DELTA,
        ),
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            help="Writer of the Delta tables: deltalake, spark (needs Delta's jars, see --conf),"
            " or auto.",
            rich_help_panel=DELTA,
        ),
    ] = "deltalake",
    storage_option: StorageOptions = None,
    table_property: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="name=value of new Delta tables; can be repeated.",
            rich_help_panel=DELTA,
        ),
    ] = None,
    partition_by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TABLE=COLUMNS",
            help="database.table=column,column of new Delta tables; can be repeated.",
            rich_help_panel=DELTA,
        ),
    ] = None,
    soft_delete: Annotated[
        bool,
        typer.Option(
            "--soft-delete",
            help="Keep deleted rows, with true in the column _deleted.",
            rich_help_panel=DELTA,
        ),
    ] = False,
    maintenance_interval: Annotated[
        str,
        typer.Option(
            help="How often files are compacted and vacuumed, such as 1h; 'off' for never.",
            rich_help_panel=DELTA,
        ),
    ] = "1h",
    conf: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="name=value of Spark's configuration; can be repeated.",
            rich_help_panel=_SPARK,
        ),
    ] = None,
    trigger_interval: Annotated[
        str, typer.Option(help="Time between two batches.", rich_help_panel=_SPARK)
    ] = "1 second",
    available_now: Annotated[
        bool,
        typer.Option(
            "--available-now",
            help="Apply everything that is available now, then end.",
            rich_help_panel=_SPARK,
        ),
    ] = False,
    json_lines: Annotated[
        bool,
        typer.Option(
            "--json", help="One line of JSON per batch instead of text.", rich_help_panel=OUTPUT
        ),
    ] = False,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            help="Port that serves metrics for Prometheus, at /metrics; 0 for any free one.",
            min=0,
            max=_MAX_PORT,
            rich_help_panel=_MONITORING,
        ),
    ] = None,
    status_port: Annotated[
        int | None,
        typer.Option(
            help="Port that serves a page with the state of each table; 0 for any free one.",
            min=0,
            max=_MAX_PORT,
            rich_help_panel=_MONITORING,
        ),
    ] = None,
    listen_address: Annotated[
        str,
        typer.Option(
            help="Address of these ports, which need no authentication.",
            rich_help_panel=_MONITORING,
        ),
    ] = "127.0.0.1",
) -> None:
    """Replicate MySQL tables to Delta Lake until this command is stopped.

    The command copies the existing rows, then applies the changes of the binlog. Give --target for
    the tables, --change-log for their change logs, or both.
    """
    try:
        options = source_options(host, port, user, password_file, option, tables=tables)
        partitions = pairs("--partition-by", partition_by)
        mirror = _mirror(
            target,
            checkpoint,
            options,
            change_log=change_log,
            engine=engine,
            storage_options=pairs("--storage-option", storage_option),
            table_properties=pairs("--table-property", table_property),
            partition_by={name: columns.split(",") for name, columns in partitions.items()},
            soft_delete=soft_delete,
            maintenance_interval=None if maintenance_interval == "off" else maintenance_interval,
        )
        settings = pairs("--conf", conf)
        watch, servers = _monitoring(
            mirror, listen_address, metrics_port=metrics_port, status_port=status_port
        )
    except MySQLBinlogError as error:
        end(error, USAGE)
    when = {"availableNow": True} if available_now else {"processingTime": trigger_interval}
    try:
        with _serving(servers):
            run(mirror, when, settings, _display(json_lines=json_lines), watch)
    except SparkEndedError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(FAILED) from None
    except Exception as exception:
        cause = cause_of(exception)
        if cause is None:
            raise
        end(cause, FAILED)
    # The query continues without them, so they must be reported with the exit code.
    for table, reason in sorted(mirror.stopped.items()):
        typer.echo(f"{table}: replication stopped: {reason}", err=True)
    if mirror.stopped:
        raise typer.Exit(FAILED)


def _mirror(
    target: str | None, checkpoint: str, options: Mapping[str, Any], **settings: Any
) -> DeltaMirror:
    from pyspark_mysqlbinlog.connector.delta.mirror import DeltaMirror

    return DeltaMirror(target, checkpoint, options, **settings)


def _monitoring(
    mirror: DeltaMirror, address: str, **ports: int | None
) -> tuple[QueryWatch | None, list[PageServer]]:
    """Return the observer of the query, if there are metrics, and the bound servers."""
    has_otel = _has_opentelemetry()
    if not has_otel and all(port is None for port in ports.values()):
        return None, []
    from pyspark_mysqlbinlog.connector.cli.monitoring import bind, register_opentelemetry
    from pyspark_mysqlbinlog.connector.metrics.watch import QueryWatch

    watch = QueryWatch("", mirror)
    servers = bind(watch, address, **ports)
    if has_otel:
        register_opentelemetry(watch)
    return watch, servers


def _has_opentelemetry() -> bool:
    """Return whether its API is installed; other packages of it share the name `opentelemetry`."""
    try:
        return find_spec("opentelemetry.metrics") is not None
    except ModuleNotFoundError:
        return False


def _serving(servers: list[PageServer]) -> AbstractContextManager[None]:
    if not servers:
        return nullcontext()
    from pyspark_mysqlbinlog.connector.cli.monitoring import serve

    return serve(servers)


def _display(*, json_lines: bool) -> Display:
    """Return a live table for a terminal, else one line per batch."""
    from pyspark_mysqlbinlog.connector.cli.console.output import Lines, as_json, as_text

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A name that the terminal cannot show must not end the query.
            stream.reconfigure(errors="backslashreplace")
    if json_lines:
        return Lines(as_json)
    from rich.console import Console

    console = Console()
    if not console.is_terminal or console.is_dumb_terminal:
        return Lines(as_text)
    from pyspark_mysqlbinlog.connector.cli.console.live_table import LiveTable

    return LiveTable(console)
