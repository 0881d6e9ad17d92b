"""Rows as printed by the mysqlbinlog of MySQL 9.x, which also reads binlogs of 5.7."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from helpers.unpacked import MYSQL
from helpers.waiting import patience

__all__ = ["PrintedRow", "PrintedValue", "printed_statements"]

_HEAD = re.compile(rb"\t(?:Write|Update|Delete)_rows(?:_partial)?: .* flags:(?P<flags>.*)$")
_VERB = re.compile(rb"### (INSERT INTO|UPDATE|DELETE FROM) (.*)$")
_VALUE = re.compile(rb"###   @(\d+)=(.*?)(?: /\* (.*) \*/)?$", re.DOTALL)


@dataclass(frozen=True)
class PrintedValue:
    """`@column=text /* kind … */`."""

    column: int
    text: bytes
    kind: str


@dataclass
class PrintedRow:
    """A row change; `is_cut` if mysqlbinlog could not print all of its values.

    images : the values by WHERE and SET.
    """

    verb: str
    table: str
    images: dict[str, list[PrintedValue]] = field(default_factory=dict)
    is_cut: bool = False


def printed_statements(path: Path) -> list[list[PrintedRow]]:
    """Return the rows of each statement that changed any."""
    program = str(MYSQL.root / "usr" / "bin" / "mysqlbinlog")
    *loader, _ = MYSQL.command()
    done = subprocess.run(
        [
            *loader,
            program,
            "--no-defaults",
            f"--character-sets-dir={MYSQL.root / 'usr' / 'share' / 'mysql' / 'charsets'}",
            "-vv",
            "--base64-output=decode-rows",
            str(path),
        ],
        capture_output=True,
        check=True,
        timeout=patience(120),
    )
    found: list[list[PrintedRow]] = [[]]
    side = ""
    # mysqlbinlog prints a call of a JSON function on one line per path.
    for text in done.stdout.replace(b",\n###      '", b", '").split(b"\n"):
        if b"Don't know how to handle" in text or b"=Invalid JSON" in text:
            found[-1][-1].is_cut = True
        elif verb := _VERB.match(text):
            found[-1].append(PrintedRow(verb[1].decode(), verb[2].decode()))
        elif text in (b"### WHERE", b"### SET"):
            side = text[4:].decode()
            found[-1][-1].images[side] = []
        elif value := _VALUE.match(text):
            kind = (value[3] or b"").decode()
            printed = PrintedValue(int(value[1]), value[2], kind)
            found[-1][-1].images[side].append(printed)
        elif not text.startswith(b"###") and found[-1]:
            # mysqlbinlog prints all rows of a statement after its last event.
            found.append([])
    return [rows for rows in found if rows]
