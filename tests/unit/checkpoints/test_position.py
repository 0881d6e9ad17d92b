"""Binlog positions: file numbers, order, text, and the position in the next file."""

from __future__ import annotations

import pytest

from pyspark_mysqlbinlog.checkpoints.position import FIRST_EVENT, Position, file_number
from pyspark_mysqlbinlog.errors import InvalidPositionError

# (name, its number)
NAMES: list[tuple[str, int | None]] = [
    ("mysql-bin.000042", 42),
    ("mysql-bin.1000000", 1_000_000),
    ("a.b.000007", 7),
    ("a.b.7", 7),
    ("000007", 7),
    ("rotations.001.binlog", None),
    ("mysql-bin.index", None),
    ("mysql-bin.", None),
    ("mysql-bin.-1", None),
    ("mysql-bin.٤", None),
    ("mysql-bin.²", None),
    ("", None),
]


@pytest.mark.parametrize(("name", "number"), NAMES)
def test_binlog_file_number_is_parsed_or_name_is_rejected(name: str, number: int | None) -> None:
    assert file_number(name) == number
    if number is None:
        with pytest.raises(InvalidPositionError, match="not a binlog file name"):
            Position.of(name, 4)
    else:
        assert Position.of(name, 4) == (number, 4, name)


def test_positions_are_ordered_by_file_number_and_byte() -> None:
    ordered = [
        Position.of("mysql-bin.000009", FIRST_EVENT),
        Position.of("mysql-bin.000009", 1 << 33),
        Position.of("mysql-bin.000010", FIRST_EVENT),
        Position.of("mysql-bin.999999", 500),
        # In alphabetical order, this one would be first.
        Position.of("mysql-bin.1000000", FIRST_EVENT),
    ]
    assert ordered == sorted(set(ordered))


def test_order_of_equal_positions_ignores_file_names() -> None:
    """A copied file's name and the name in the ROTATE before it can denote the same position."""
    copied, rotated = Position(2, 4, "copy.binlog"), Position(2, 4, "mysql-bin.000002")
    assert copied.order == rotated.order == (2, 4)
    # As values they differ, and are ordered by their file names.
    assert copied != rotated
    assert copied < rotated
    assert Position(1, 900, "z") < copied < Position(2, 5, "a")


def test_position_text_is_file_and_byte() -> None:
    assert str(Position.of("mysql-bin.000001", 4)) == "mysql-bin.000001:4"


def test_position_in_next_file_is_4_with_a_higher_file_number() -> None:
    def after(position: Position, name: str) -> Position:
        return position.next_file(name)

    here = Position.of("b.000005", 900)
    assert after(here, "b.000006") == Position.of("b.000006", 4)
    # A server continues after the highest existing number, which can be that of an older file.
    assert after(here, "b.000010") == Position.of("b.000010", 4)
    # Copied files with other names are numbered by their order.
    assert after(Position(1, 900, "copy"), "b.000006") == Position(2, 4, "b.000006")
    assert after(here, "b.000001") == Position(6, 4, "b.000001")
    assert after(here, "b") == Position(6, 4, "b")
