"""The commands: their summaries, and how one is loaded when it is called.

`--help` of the program needs the summaries only, so it imports no command. Help is plain text:
rich takes longer to import than everything else that help needs.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

__all__ = ["SUMMARIES", "Commands", "command_function"]

# A module of this package, and the function in it -> the first line of the function's docstring.
SUMMARIES = {
    "doctor": "Check whether a server is ready for a stream or a mirror, and show what to type if"
    " not.",
    "ingest": "Replicate MySQL tables to Delta Lake until this command is stopped.",
    "inspect": "Show the events of a binlog, of files or of a server.",
    "tail": "Show the changes of a MySQL server as they happen, until this command is stopped.",
    "verify": "Compare Delta tables with the MySQL tables that they mirror, while both are in use.",
}


def command_function(name: str) -> Callable[..., None]:
    """Import a command; returns its function."""
    function: Callable[..., None] = getattr(
        import_module(f"pyspark_mysqlbinlog.connector.cli.{name}"), name
    )
    return function


class Commands(TyperGroup):
    """The commands of the program."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name, summary in SUMMARIES.items():
            self.add_command(TyperCommand(name, help=summary, short_help=summary))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the name, the loaded command and its arguments."""
        name, found, rest = super().resolve_command(ctx, args)
        return name, found if name is None else _loaded(name), rest


class _Command(TyperCommand):
    """A command whose plain help has the flags under their headings."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        by_heading: dict[str, list[tuple[str, str]]] = {}
        for each in self.get_params(ctx):
            record = each.get_help_record(ctx)
            if record is not None:
                heading = getattr(each, "rich_help_panel", None) or "Other"
                by_heading.setdefault(heading, []).append(record)
        for heading, records in by_heading.items():
            with formatter.section(heading):
                formatter.write_dl(records)


def _loaded(name: str) -> Any:
    single = typer.Typer(
        rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False
    )
    single.command(name, cls=_Command)(command_function(name))
    return typer.main.get_command(single)
