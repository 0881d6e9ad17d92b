"""The order of files whose base name or numbers change, relative to one of them."""

from __future__ import annotations

import pytest

from pyspark_mysqlbinlog.checkpoints.position import (
    END_OF_SEQUENCE,
    Position,
    continues_sequence,
)
from pyspark_mysqlbinlog.connector.log.file_order import FileOrder
from pyspark_mysqlbinlog.errors import BinlogPurgedError

# Four sequences; the last two have one base name, whose numbers started again.
FILES = {
    "a.000008": 100,
    "a.000009": 200,
    "b.000001": 300,
    "a.000010": 400,
    "a.000012": 500,
    "a.000003": 600,
}


def order(origin: str) -> FileOrder:
    return FileOrder(lambda: FILES, origin)


@pytest.mark.parametrize("origin", FILES)
def test_positions_sort_in_the_order_of_the_binlog_index(origin: str) -> None:
    seen = order(origin)
    places = [seen.position(file, pos) for file in FILES for pos in (4, 90)]
    assert places == sorted(places)
    assert seen.position(origin, 7) == Position.of(origin, 7)
    assert [place.file for place in seen.sizes()] == [*FILES]
    for file in FILES:
        is_same = seen.position(file, 4).is_in_sequence_of(Position.of(origin, 4))
        assert is_same == (seen.position(file, 4) == Position.of(file, 4))


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (("a.000008", 4), ("a.000009", 50), [(0, "a.000008:4", "a.000009:50")]),
        (
            ("a.000009", 50),
            ("a.000003", 4),
            [
                (0, "a.000009:50", "a.000009:200"),
                (1, "b.000001:4", "b.000001:300"),
                (2, "a.000010:4", "a.000012:500"),
            ],
        ),
        # Nothing remains of the first sequence.
        (("b.000001", 300), ("a.000010", 20), [(1, "a.000010:4", "a.000010:20")]),
        (("b.000001", 300), ("b.000001", 300), []),
        (("a.000003", 4), ("a.000003", 9), [(0, "a.000003:4", "a.000003:9")]),
    ],
)
def test_range_over_several_sequences_is_split_by_sequence(
    start: tuple[str, int], end: tuple[str, int], expected: list[tuple[int, str, str]]
) -> None:
    seen = order(start[0])
    found = seen.stretches(seen.position(*start), seen.position(*end))
    assert [(each.sequence, str(each.start), str(each.end)) for each in found] == expected


def test_unknown_file_refreshes_the_file_list_or_raises_binlog_purged_error() -> None:
    files = {"a.000001": 4}
    seen = FileOrder(lambda: files, "a.000001", files)
    files = {"a.000001": 9, "b.000001": 4}
    assert seen.position("b.000001", 4) > END_OF_SEQUENCE
    with pytest.raises(BinlogPurgedError):
        seen.position("a.000002", 4)


def test_purged_origin_file_shares_a_sequence_only_with_its_base_name() -> None:
    seen = FileOrder(lambda: {"b.000001": 4, "b.000002": 4}, "a.000007")
    assert seen.position("b.000001", 4) > END_OF_SEQUENCE
    seen = FileOrder(lambda: {"b.000001": 4, "b.000002": 4}, "b.000007")
    assert seen.position("b.000002", 4) == Position.of("b.000002", 4)


@pytest.mark.parametrize(
    ("before", "after", "continues"),
    [
        ("a.000001", "a.000002", True),
        ("a.000001", "a.000007", True),
        ("a.999999", "a.1000000", True),
        ("a.000002", "a.000002", False),
        ("a.000002", "a.000001", False),
        ("a.000001", "b.000002", False),
        ("a.b.000001", "a.000002", False),
        ("a.b.000001", "a.b.000002", True),
    ],
)
def test_sequence_continues_only_with_the_same_base_name_and_a_higher_number(
    before: str, after: str, *, continues: bool
) -> None:
    assert continues_sequence(before, after) == continues
