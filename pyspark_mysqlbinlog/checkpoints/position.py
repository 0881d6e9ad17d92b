"""Binlog positions: where an event begins, ordered as the server wrote them.

A server numbers its files in the extension (`mysql-bin.000042`), and the number exceeds six digits
eventually, so text order is not binlog order. Files without a number (copies under other names) are
ordered by an ordinal that the file list assigns.

Numbers order the files of one *sequence*: files with one base name and increasing numbers. A server
that is restarted with another base name (log_bin) begins another sequence in the same index. Only
the index orders sequences; see connector/log/file_order.py.
"""

from __future__ import annotations

from typing import NamedTuple

from pyspark_mysqlbinlog.errors import InvalidPositionError

__all__ = [
    "BEGINNING",
    "END_OF_SEQUENCE",
    "FIRST_EVENT",
    "Position",
    "base_name",
    "continues_sequence",
    "file_number",
]

# Every binlog file begins with four magic bytes; the first event follows.
FIRST_EVENT = 4
# A server's file numbers are smaller than this; a position in a later sequence has a number that is
# increased by a multiple of it.
_NUMBERS_OF_SEQUENCE = 1 << 32


class Position(NamedTuple):
    """A position in the binlog. Compares by number, then byte offset, then name.

    In one log the name is never decisive, because each number has one name. But if files were
    copied under other names, a ROTATE still names the next file as its server did: `order` is the
    same for both spellings.

    Attributes
    ----------
    number : the file's number, or its ordinal in a list of files without numbers.
    pos : bytes from the beginning of the file.
    file : the file's name, without folder.
    """

    number: int
    pos: int
    file: str

    @classmethod
    def of(cls, file: str, pos: int) -> Position:
        """Return a position in a server's own file, numbered by its extension."""
        number = file_number(file)
        if number is None:
            raise InvalidPositionError(
                f"{file!r} is not a binlog file name: expected a number as its extension, as in"
                " mysql-bin.000001; SHOW BINARY LOGS lists the server's files",
            )
        return cls(number, pos, file)

    @property
    def order(self) -> tuple[int, int]:
        """(number, byte offset): identifies the position, whatever the file is named."""
        return self.number, self.pos

    def next_file(self, name: str) -> Position:
        """Return the beginning of the next file, by the name in this one's ROTATE.

        If the name numbers this file it numbers the next, too, and numbers may be skipped.
        """
        number = self.number + 1
        if file_number(self.file) == self.number:
            number = max(number, file_number(name) or 0)
        return Position(number, FIRST_EVENT, name)

    def in_later_sequence(self, sequences: int) -> Position:
        """Return this position moved after (negative: before) so many sequences of positions."""
        return self._replace(number=self.number + sequences * _NUMBERS_OF_SEQUENCE)

    def is_in_sequence_of(self, other: Position) -> bool:
        """Whether both are in one sequence, according to their order."""
        return self.number // _NUMBERS_OF_SEQUENCE == other.number // _NUMBERS_OF_SEQUENCE

    def __str__(self) -> str:
        return f"{self.file}:{self.pos}"


# Before every possible position.
BEGINNING = Position(0, 0, "")
# After every position of a sequence, and before those of later ones.
END_OF_SEQUENCE = Position(_NUMBERS_OF_SEQUENCE - 1, 0, "")


def file_number(name: str) -> int | None:
    """Return the number in the file's extension; None if it has none."""
    extension = name.rpartition(".")[2]
    return int(extension) if extension.isascii() and extension.isdigit() else None


def base_name(name: str) -> str:
    """Return the file's name without its number: the value of log_bin."""
    return name.rpartition(".")[0] if file_number(name) is not None else name


def continues_sequence(before: str, after: str) -> bool:
    """Whether a file that follows another one belongs to its sequence.

    The same base name, and a greater number; numbers may be skipped.
    """
    if base_name(before) != base_name(after):
        return False
    return (file_number(after) or 0) > (file_number(before) or 0)
