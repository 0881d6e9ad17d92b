"""How a command ends: its exit codes, and an error as one line on standard error."""

from __future__ import annotations

from typing import NoReturn

import typer

from pyspark_mysqlbinlog.errors import MySQLBinlogError

__all__ = ["FAILED", "USAGE", "end"]

FAILED, USAGE = 1, 2


def end(error: MySQLBinlogError, code: int) -> NoReturn:
    """Print the error in one line, and exit with this code."""
    typer.echo(f"{type(error).__name__}: {error}", err=True)
    raise typer.Exit(code)
