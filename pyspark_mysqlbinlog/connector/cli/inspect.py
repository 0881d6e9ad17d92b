"""``pyspark-mysqlbinlog inspect``: shows what a binlog contains, of files or of a server.

The package `inspection` does the work. Exit codes: 0 if everything was shown, 1 if the log cannot
be read, after everything that is before the damage, 2 if an argument is wrong.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pyspark_mysqlbinlog.connector.cli.arguments import (
    OUTPUT,
    SELECTION,
    SOURCE,
    ConnectionOptions,
    PasswordFile,
    Port,
    ShownTables,
    check_applied,
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
    from pyspark_mysqlbinlog.connector.inspection.selection import Selection
    from pyspark_mysqlbinlog.connector.inspection.sources import Source

__all__ = ["inspect"]

# Options of the source -> the flags that do the same.
_FLAGS = {
    "endingOffset": "--stop-position or --stop-datetime",
    "excludeTables": "--tables",
    "startingOffset": "--start-position or --start-datetime",
    "tables": "--tables",
}


def inspect(
    *,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILES",
            help="Binlog files, globs or folders, also compressed ones or in an object store. With"
            " --host: names of the server's files; without one, its current file.",
            rich_help_panel=SOURCE,
        ),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(help="Host of a MySQL server, to read its binlog.", rich_help_panel=SOURCE),
    ] = None,
    port: Port = 3306,
    user: Annotated[
        str | None, typer.Option(help="Account of the server.", rich_help_panel=SOURCE)
    ] = None,
    password_file: PasswordFile = None,
    option: ConnectionOptions = None,
    lower_case_table_names: Annotated[
        bool,
        typer.Option(
            "--lower-case-table-names",
            help="The files are those of a server with lower_case_table_names=1: names in"
            " statements and in --tables match in any case. With --host, the server is asked.",
            rich_help_panel=SOURCE,
        ),
    ] = False,
    tables: ShownTables = None,
    start_position: Annotated[
        int,
        typer.Option(
            min=4,
            help="Position of an event in the first file, to begin there.",
            rich_help_panel=SELECTION,
        ),
    ] = 4,
    stop_position: Annotated[
        int | None,
        typer.Option(
            min=4,
            help="Position in the last file: events that begin there or later are not shown.",
            rich_help_panel=SELECTION,
        ),
    ] = None,
    start_datetime: Annotated[
        str | None,
        typer.Option(
            help="Show transactions that begin at this time or later, such as 2026-11-20T10:00:00;"
            " in UTC unless it has a zone.",
            rich_help_panel=SELECTION,
        ),
    ] = None,
    stop_datetime: Annotated[
        str | None,
        typer.Option(
            help="Show transactions that begin before this time.", rich_help_panel=SELECTION
        ),
    ] = None,
    include_gtids: Annotated[
        str | None,
        typer.Option(help="Show only transactions of this GTID set.", rich_help_panel=SELECTION),
    ] = None,
    exclude_gtids: Annotated[
        str | None,
        typer.Option(help="Omit transactions of this GTID set.", rich_help_panel=SELECTION),
    ] = None,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose", "-v", help="Show rows as readable statements.", rich_help_panel=OUTPUT
        ),
    ] = False,
    hexdump: Annotated[
        bool,
        typer.Option(
            "--hexdump",
            "-H",
            help="Show the bytes of each event, with the name and the meaning of each field.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    stats: Annotated[
        bool,
        typer.Option(
            "--stats",
            help="Show numbers instead of events: rows and bytes by table, transactions by size,"
            " the largest ones, bursts and gaps.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    report: Annotated[
        Path | None,
        typer.Option(
            help="HTML file to write the same numbers to, with charts.", rich_help_panel=OUTPUT
        ),
    ] = None,
    json_lines: Annotated[
        bool,
        typer.Option(
            "--json",
            help="One line of JSON per event instead of text; with --stats, one object.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
) -> None:
    """Show the events of a binlog, of files or of a server.

    Each event is one line. Columns have names if the binlog contains the CREATE TABLE or full
    metadata, or if a server is read; otherwise they are @1, @2, ….
    """

    prepare_streams(writes_utf8=json_lines)
    try:
        server = None
        if host is not None:
            server = source_options(host, port, user, password_file, option)
            check_applied("inspect", option, instead=_FLAGS)
        elif user or password_file or option:
            raise OptionError("--user, --password-file and --option need --host")
        if host is not None and lower_case_table_names:
            raise OptionError(
                "--lower-case-table-names is for files, and with --host the server is asked:"
                " remove it"
            )
        selection = _selection(start_datetime, stop_datetime, include_gtids, exclude_gtids)
        if host is None and not files:
            raise OptionError("no log is given: name binlog files, or a server with --host")
        source = _source(
            files or [], server, start_position, case_sensitive=not lower_case_table_names
        )
        if tables is not None:
            selection = _of_tables(selection, tables, source)
    except MySQLBinlogError as error:
        end(error, USAGE if isinstance(error, OptionError) else FAILED)
    if stop_position is not None:
        selection = _until(selection, source.files[-1], stop_position)
    try:
        if stats or report is not None:
            _show_statistics(source, selection, report, shown=stats, json_lines=json_lines)
        else:
            _show_events(source, selection, verbose=verbose, dumped=hexdump, json_lines=json_lines)
        sys.stdout.flush()
    except MySQLBinlogError as error:
        sys.stdout.flush()
        _show_notes(source)
        end(error, FAILED)
    except BrokenPipeError:
        end_quietly()
    except OSError as error:
        file = error.filename or ", ".join(source.files)
        problem = error.strerror or type(error).__name__
        is_report = report is not None and file == str(report)
        verb = "written" if is_report else "read"
        end(OptionError(f"{file!r} can't be {verb}: {problem}"), FAILED)
    _show_notes(source)


def _show_notes(source: Source) -> None:
    for note in source.notes:
        typer.echo(note, err=True)


def _source(
    files: list[str], server: dict[str, str] | None, start: int, *, case_sensitive: bool
) -> Source:
    from pyspark_mysqlbinlog.connector.inspection.sources import BinlogFiles, ServerBinlog

    if server is None:
        return BinlogFiles(files, start, case_sensitive=case_sensitive)
    from pyspark_mysqlbinlog.connector.options.parse import parse_options

    return ServerBinlog(parse_options(server).server_settings(), files, start)


def _selection(
    since: str | None,
    until: str | None,
    included: str | None,
    excluded: str | None,
) -> Selection:
    from pyspark_mysqlbinlog.checkpoints.gtid_set import GtidSet
    from pyspark_mysqlbinlog.connector.inspection.selection import Selection

    try:
        include = None if included is None else GtidSet.parse(included)
        exclude = None if excluded is None else GtidSet.parse(excluded)
    except MySQLBinlogError as error:
        raise OptionError(error.message) from None
    return Selection(
        since=_seconds("--start-datetime", since),
        until=_seconds("--stop-datetime", until),
        included=include,
        excluded=exclude,
    )


def _of_tables(selection: Selection, tables: str, source: Source) -> Selection:
    from dataclasses import replace

    from pyspark_mysqlbinlog.connector.options.table_filter import TableFilter

    return replace(
        selection, tables=TableFilter.parse(tables, case_sensitive=source.case_sensitive)
    )


def _seconds(name: str, text: str | None) -> float | None:
    if text is None:
        return None
    from pyspark_mysqlbinlog.connector.options.values import Timestamp, parse_place

    try:
        # mysqlbinlog's times have a space.
        place = parse_place(text.strip().replace(" ", "T", 1))
    except ValueError:
        place = None
    if not isinstance(place, Timestamp):
        raise OptionError(f"{name}: expected a time such as 2026-11-20T10:00:00, found {text!r}")
    return place.seconds


def _until(selection: Selection, file: str, pos: int) -> Selection:
    from dataclasses import replace

    return replace(selection, end=(file, pos))


def _show_events(
    source: Source, selection: Selection, *, verbose: bool, dumped: bool, json_lines: bool
) -> None:
    from pyspark_mysqlbinlog.connector.inspection.entries import Entries
    from pyspark_mysqlbinlog.connector.inspection.hexdump import hexdump
    from pyspark_mysqlbinlog.connector.inspection.json_lines import json_line
    from pyspark_mysqlbinlog.connector.inspection.literals import printable
    from pyspark_mysqlbinlog.connector.inspection.text import HEADING, line, statements

    entries = Entries(source)
    write, paint, file = sys.stdout.write, paint_of_stdout(), ""
    for entry in selection.of(entries):
        if json_lines:
            write(json_line(entries, entry, with_rows=verbose) + "\n")
            continue
        if entry.event.file != file:
            file = entry.event.file
            write(f"# {printable(file)}\n{HEADING}\n")
        write(line(entry, paint) + "\n")
        if dumped:
            for text in hexdump(entry, entries.columns(entry)):
                write(text + "\n")
        if verbose:
            for text in statements(entries, entry):
                write(text + "\n")


def _show_statistics(
    source: Source, selection: Selection, report: Path | None, *, shown: bool, json_lines: bool
) -> None:
    from pyspark_mysqlbinlog.connector.inspection.entries import Entries
    from pyspark_mysqlbinlog.connector.inspection.figures.report import report_page
    from pyspark_mysqlbinlog.connector.inspection.figures.statistics import LogStatistics, collect
    from pyspark_mysqlbinlog.connector.inspection.figures.statistics_text import (
        statistics_json,
        statistics_text,
    )

    statistics = LogStatistics()

    def entries() -> Entries:
        return Entries(source)

    try:
        collect(source, selection, entries, statistics)
    finally:
        # The error shows up to which position these numbers count.
        if report is not None:
            report.write_text(report_page(statistics), encoding="utf-8")
        if shown:
            lines = [statistics_json(statistics)] if json_lines else statistics_text(statistics)
            sys.stdout.writelines(f"{text}\n" for text in lines)
