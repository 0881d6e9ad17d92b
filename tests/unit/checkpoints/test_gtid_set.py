"""GTID sets: the text that servers write, and set operations against plain sets of numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_mysqlbinlog.checkpoints.gtid_set import (
    EMPTY_GTID_SET,
    MAX_GTID_NUMBER,
    GtidInterval,
    GtidSet,
)
from pyspark_mysqlbinlog.errors import InvalidPositionError

A = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
B = "4e11fa47-71ca-11e1-9e33-c80aa9429562"

# (text, the same set as a server writes it)
TEXTS: list[tuple[str, str]] = [
    ("", ""),
    (" , \n", ""),
    (f"{A}:1", f"{A}:1"),
    (f"{A}:1-1", f"{A}:1"),
    (f"{A.upper()}:1-3", f"{A}:1-3"),
    (f"{A.replace('-', '')}:1-3", f"{A}:1-3"),
    (f"{{{A}}}:1-3", f"{A}:1-3"),
    (f"{A}:4:1-3:7-9:8", f"{A}:1-4:7-9"),
    (f"{A}:5-2", ""),
    (f"{B}:1,\n{A}:2", f"{A}:2,{B}:1"),
    (f"{A}:1,{A}:2", f"{A}:1-2"),
    (f"{A}:1-5:billing:1-2:4", f"{A}:1-5:billing:1-2:4"),
    (f"{A}:Billing:1:audit_1:3,{A}:9", f"{A}:9:audit_1:3:billing:1"),
    (f" {A} : 1 - 5 ", f"{A}:1-5"),
    (f"{A}:1-{MAX_GTID_NUMBER}", f"{A}:1-{MAX_GTID_NUMBER}"),
    # MariaDB's sets contain the last GTID of each domain and server.
    ("0-1-105", "0-1-105"),
    (" 0-2-80 ,\n0-1-105", "0-1-105,0-2-80"),
    ("0-1-7,0-1-105", "0-1-105"),
    ("4294967295-4294967295-3", "4294967295-4294967295-3"),
    ("00-001-0105", "0-1-105"),
]

# (text, part of the error message)
INVALID: list[tuple[str, str]] = [
    ("x", "'x' is not a server's UUID"),
    (f"{A[:-1]}:1", "is not a server's UUID"),
    (A, "is followed by no interval"),
    (f"{A}:0", "'0' is neither a tag nor an interval"),
    (f"{A}:1-{MAX_GTID_NUMBER + 1}", "is neither a tag nor an interval"),
    (f"{A}:-5", "'-5' is neither"),
    (f"{A}:1-5 7", "'1-5 7' is neither"),
    (f"{A}:{'t' * 33}:1", "is neither a tag nor an interval"),
    (f"{A}:٣", "is neither a tag nor an interval"),
    ("mysql-bin.000001", "is not a server's UUID"),
    ("0-1-0", "'0' is neither"),
    ("0-1", "is not a server's UUID"),
    ("0-1-٣", "is not a server's UUID"),
    ("0-1-2-3", "is not a server's UUID"),
]


@pytest.mark.parametrize(("text", "written"), TEXTS)
def test_gtid_set_text_is_normalized_as_servers_write_it(text: str, written: str) -> None:
    found = GtidSet.parse(text)
    assert str(found) == written
    assert GtidSet.parse(written) == found
    assert hash(GtidSet.parse(written)) == hash(found)
    assert bool(found) is bool(written)


@pytest.mark.parametrize(("text", "named"), INVALID)
def test_invalid_gtid_set_text_is_rejected_with_the_faulty_part(text: str, named: str) -> None:
    with pytest.raises(InvalidPositionError, match=named):
        GtidSet.parse(text)


def test_next_gtid_extends_its_interval() -> None:
    found = EMPTY_GTID_SET.add(B, 1).add(A, 3).add(B, 2).add(B, 3).add(A, 1)
    assert str(found) == f"{A}:1:3,{B}:1-3"
    assert str(found.add(A, 2)) == f"{A}:1-3,{B}:1-3"
    assert str(found.add(A, 2).add(f"{A}:t", 4, 9)) == f"{A}:1-3:t:4-9,{B}:1-3"
    assert found.count() == 5
    assert next(iter(found.intervals())) == GtidInterval(A, "", 1, 1)


SOURCES = st.sampled_from([A, B, f"{A}:t"])
MEMBERS = st.frozensets(st.tuples(SOURCES, st.integers(1, 25)), max_size=40)


def _set(members: frozenset[tuple[str, int]]) -> GtidSet:
    found = EMPTY_GTID_SET
    for source, number in members:
        found = found.add(source, number)
    return found


def _members(found: GtidSet) -> frozenset[tuple[str, int]]:
    return frozenset(
        (each.source, number)
        for each in found.intervals()
        for number in range(each.first, each.last + 1)
    )


@given(MEMBERS, MEMBERS)
def test_gtid_set_operations_equal_those_of_plain_sets(
    left: frozenset[tuple[str, int]], right: frozenset[tuple[str, int]]
) -> None:
    a, b = _set(left), _set(right)
    assert _members(a) == left
    assert GtidSet.of(a.intervals()) == GtidSet.parse(str(a)) == a
    assert str(GtidSet.parse(str(a))) == str(a)
    assert _members(a.union(b)) == left | right
    assert str(a.union(b)) == str(b.union(a))
    assert _members(a.difference(b)) == left - right
    assert _members(a.intersection(b)) == left & right
    assert a.is_subset(b) is (left <= right)
    assert (a == b) is (left == right)
    for source in (A, B, f"{A}:t"):
        for number in range(27):
            assert a.has(source, number) is ((source, number) in left)


def test_mariadb_gtid_set_is_extended_only_by_increasing_numbers_of_a_domain() -> None:
    executed = GtidSet.of_mariadb([(0, 1, 105), (0, 2, 80), (7, 2, 3)])
    assert str(executed) == "0-1-105,0-2-80,7-2-3"
    assert executed.last_of_domains() == {"0": ("0-1", 105), "7": ("7-2", 3)}
    # Any server can log the next number of a domain.
    followed = executed.follow_mariadb("0-2", 106, 107)
    assert str(followed) == "0-1-105,0-2-107,7-2-3"
    assert followed is not None
    assert str(followed.follow_mariadb("9-9", 5, 5)) == "0-1-105,0-2-107,7-2-3,9-9-5"
    # Without gtid_strict_mode, a server can log a number that is not higher than the domain's last.
    assert followed.follow_mariadb("0-1", 107, 107) is None
    assert followed.follow_mariadb("0-3", 90, 90) is None
    assert str(followed.difference(executed)) == "0-2-81 to 0-2-107"
    assert executed.is_subset(followed)
