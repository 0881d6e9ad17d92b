"""Standard output of commands that print what a binlog contains."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from io import TextIOWrapper
from typing import NoReturn

import typer

from pyspark_mysqlbinlog.connector.cli.console.exits import FAILED

__all__ = ["end_quietly", "paint_of_stdout", "prepare_streams"]

# ANSI colours of the kinds of text.
_COLOURS = {"place": "2", "transaction": "36", "c": "32", "u": "33", "d": "31"}


def prepare_streams(*, writes_utf8: bool = False) -> None:
    """Let stdout and stderr escape what the terminal cannot show, instead of failing.

    writes_utf8 : stdout gets UTF-8 in every locale, for JSON or a script with SET NAMES utf8mb4.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            encoding = "utf-8" if writes_utf8 and stream is sys.stdout else None
            # In JSON this escapes only surrogates, and as JSON does.
            stream.reconfigure(encoding=encoding, errors="backslashreplace")


def paint_of_stdout() -> Callable[[str, str], str]:
    """Return the function that colours texts; it changes nothing without a terminal."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return lambda _, text: text

    def paint(kind: str, text: str) -> str:
        colour = _COLOURS.get(kind)
        return text if colour is None else f"\x1b[{colour}m{text}\x1b[0m"

    return paint


def end_quietly() -> NoReturn:
    """Exit after a BrokenPipeError: the reader, such as `head`, has closed the pipe."""
    # Python would fail once more when it flushes stdout at its end.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise typer.Exit(FAILED) from None
