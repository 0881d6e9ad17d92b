"""Sets of GTIDs: which transactions a server, or a stream, has executed.

A GTID is the UUID of the server that committed a transaction first, a tag (8.3 and later, usually
none) and a number. A set has intervals of numbers for each *source*, a UUID with or without a tag.
Its text is that of `gtid_executed`, without line breaks::

    3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:7:billing:1-2,4e11fa47-…:1

Equal sets have equal texts: sources in order, intervals merged.

A GTID of MariaDB is a domain, the id of the server that committed a transaction first, and a number
that increases in the domain, whichever server commits. Its source is ``domain-server``. Servers
keep the last number of each source alone, so a set has all numbers up to it, also those of other
servers' transactions. Its text is that of `gtid_binlog_state`: ``0-1-105,0-2-80``.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pyspark_mysqlbinlog.errors import InvalidPositionError

__all__ = [
    "EMPTY_GTID_SET",
    "MAX_GTID_NUMBER",
    "GtidInterval",
    "GtidSet",
    "is_mariadb_source",
    "source_and_number",
]

# The greatest number that a server assigns (GNO_END in sql/rpl_gtid.h, which is excluded).
MAX_GTID_NUMBER = (1 << 63) - 2
_UUID = re.compile(r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}|\{[0-9a-f-]+\}")
_TAG = re.compile(r"[a-z_][a-z0-9_]{0,31}")
_MARIADB_GTID = re.compile(r"([0-9]{1,10})-([0-9]{1,10})-([0-9]{1,20})", re.ASCII)
_INTERVAL = re.compile(r"([0-9]+)(?:\s*-\s*([0-9]+))?", re.ASCII)
# First and last number, both included.
Numbers = tuple[int, int]


class GtidInterval(NamedTuple):
    """Consecutive GTIDs of one source: from `first` to `last`, both included."""

    uuid: str
    tag: str
    first: int
    last: int

    @property
    def source(self) -> str:
        return f"{self.uuid}:{self.tag}" if self.tag else self.uuid


def is_mariadb_source(source: str) -> bool:
    """Whether a source is a domain and a server id, and not a UUID."""
    return source.count("-") == 1 and ":" not in source


def source_and_number(gtid: str) -> tuple[str, int]:
    """Split the text of one GTID: ``uuid:number``, ``uuid:tag:number``, ``domain-server-number``.

    >>> source_and_number("0-1-105")
    ('0-1', 105)
    """
    source, _, number = gtid.rpartition(":" if ":" in gtid else "-")
    return source, int(number)


@dataclass(frozen=True, slots=True)
class GtidSet:
    """A set of GTIDs.

    >>> executed = GtidSet.parse("3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:7")
    >>> str(executed.add("3e11fa47-71ca-11e1-9e33-c80aa9429562", 6))
    '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-7'
    """

    # Sorted, neither overlapping nor adjacent, and none empty; by source.
    _numbers: Mapping[str, tuple[Numbers, ...]] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> GtidSet:
        """Parse the text of a set; white space and empty parts are allowed, as servers allow them.

        Raises
        ------
        InvalidPositionError : something in it is no UUID, tag or interval.
        """
        return cls.of(_parsed(text))

    @classmethod
    def of(cls, intervals: Iterable[GtidInterval]) -> GtidSet:
        """Return the set of intervals in any order; they may overlap."""
        found: dict[str, list[Numbers]] = {}
        for each in intervals:
            found.setdefault(each.source, []).append((each.first, each.last))
        return cls({source: _merged(found[source]) for source in sorted(found)})

    @classmethod
    def of_mariadb(cls, last: Iterable[tuple[int, int, int]]) -> GtidSet:
        """Return the set of the last GTIDs (domain, server id, number) of MariaDB's sources."""
        return cls.of(GtidInterval(f"{domain}-{server}", "", 1, n) for domain, server, n in last)

    def follow_mariadb(self, source: str, first: int, last: int) -> GtidSet | None:
        """Return the set with the next GTIDs of a domain; None if it has had a later number."""
        known = self.last_of_domains().get(source.partition("-")[0])
        return None if known is not None and first <= known[1] else self.add(source, 1, last)

    def last_of_domains(self) -> dict[str, tuple[str, int]]:
        """Return the last GTID of each of MariaDB's domains: its source and number."""
        found: dict[str, tuple[str, int]] = {}
        for source, numbers in self._numbers.items():
            domain = source.partition("-")[0]
            if domain not in found or found[domain][1] < numbers[-1][1]:
                found[domain] = source, numbers[-1][1]
        return found

    def intervals(self) -> Iterator[GtidInterval]:
        """Yield the intervals in the order of the text."""
        for source, numbers in self._numbers.items():
            uuid, _, tag = source.partition(":")
            for first, last in numbers:
                yield GtidInterval(uuid, tag, first, last)

    def has(self, source: str, number: int) -> bool:
        """Whether a GTID is in the set. source : its ``uuid`` or ``uuid:tag``."""
        numbers = self._numbers.get(source, ())
        at = bisect_right(numbers, (number, MAX_GTID_NUMBER)) - 1
        return at >= 0 and number <= numbers[at][1]

    def add(self, source: str, first: int, last: int | None = None) -> GtidSet:
        """Return the set with the GTIDs of a source from `first` to `last`, or with one GTID."""
        last = first if last is None else last
        known = self._numbers.get(source)
        if known is not None:
            # The usual case: the next transaction of a source that the set has.
            begin, end = known[-1]
            if begin <= first <= end + 1:
                tail = (begin, max(end, last))
                return GtidSet({**self._numbers, source: (*known[:-1], tail)})
            return GtidSet({**self._numbers, source: _merged([*known, (first, last)])})
        both = {**self._numbers, source: ((first, last),)}
        return GtidSet({each: both[each] for each in sorted(both)})

    def union(self, other: GtidSet) -> GtidSet:
        return GtidSet.of([*self.intervals(), *other.intervals()])

    def difference(self, other: GtidSet) -> GtidSet:
        """Return what is in this set and not in the other one, as GTID_SUBTRACT does."""
        left = {
            source: rest
            for source, numbers in self._numbers.items()
            if (rest := _without(numbers, other._numbers.get(source, ())))
        }
        return GtidSet(left)

    def intersection(self, other: GtidSet) -> GtidSet:
        return self.difference(self.difference(other))

    def is_subset(self, other: GtidSet) -> bool:
        """Whether the other set contains everything in this one, as GTID_SUBSET does."""
        return not self.difference(other)

    def count(self) -> int:
        """Return how many GTIDs are in the set."""
        return sum(each.last - each.first + 1 for each in self.intervals())

    def __bool__(self) -> bool:
        return bool(self._numbers)

    def __hash__(self) -> int:
        return hash(tuple(self._numbers.items()))

    def __str__(self) -> str:
        parts: list[str] = []
        previous = ""
        for source, numbers in self._numbers.items():
            if is_mariadb_source(source):
                texts = ",".join(_of_mariadb(source, *each) for each in numbers)
                parts += ["," if parts else "", texts]
                continue
            uuid, _, tag = source.partition(":")
            head = tag if uuid == previous else source
            parts.append("" if not previous else ":" if uuid == previous else ",")
            parts.append(":".join([head, *(_text(each) for each in numbers)]))
            previous = uuid
        return "".join(parts)


EMPTY_GTID_SET = GtidSet()


def _parsed(text: str) -> Iterator[GtidInterval]:
    for part in text.lower().split(","):
        words = [word.strip() for word in part.split(":")]
        uuid, *rest = words
        if not uuid and not rest:
            continue
        if not rest and (found := _MARIADB_GTID.fullmatch(uuid)):
            # Servers accept leading zeros and do not write them.
            source = f"{int(found[1])}-{int(found[2])}"
            yield GtidInterval(source, "", 1, _interval(found[3], text)[1])
            continue
        digits = uuid.strip("{}").replace("-", "")
        if not _UUID.fullmatch(uuid) or len(digits) != 32:
            raise _invalid(f"{uuid!r} is not a server's UUID", text)
        spelled = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
        tag = ""
        for word in rest:
            if _TAG.fullmatch(word):
                tag = word
            elif word:
                first, last = _interval(word, text)
                if first <= last:
                    yield GtidInterval(spelled, tag, first, last)
        if not rest:
            raise _invalid(f"{uuid} is followed by no interval", text)


def _interval(word: str, text: str) -> Numbers:
    found = _INTERVAL.fullmatch(word)
    first = int(found[1]) if found else 0
    last = int(found[2] or found[1]) if found else 0
    if not 1 <= first <= MAX_GTID_NUMBER or last > MAX_GTID_NUMBER:
        raise _invalid(f"{word!r} is neither a tag nor an interval such as 5 or 1-5", text)
    return first, last


def _invalid(what: str, text: str) -> InvalidPositionError:
    shown = text if len(text) <= 80 else f"{text[:80]}…"
    return InvalidPositionError(
        f"{what}, in the GTID set {shown!r}: expected UUID:INTERVAL[:INTERVAL]…, separated by"
        " commas; SELECT @@global.gtid_executed shows that of a server. On MariaDB expected"
        " DOMAIN-SERVER-NUMBER, as @@global.gtid_binlog_pos shows it"
    )


def _text(numbers: Numbers) -> str:
    first, last = numbers
    return str(first) if first == last else f"{first}-{last}"


def _of_mariadb(source: str, first: int, last: int) -> str:
    # A difference has a beginning.
    return f"{source}-{last}" if first == 1 else f"{source}-{first} to {source}-{last}"


def _merged(numbers: list[Numbers]) -> tuple[Numbers, ...]:
    merged: list[Numbers] = []
    for first, last in sorted(numbers):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(merged[-1][1], last)
        else:
            merged.append((first, last))
    return tuple(merged)


def _without(numbers: Iterable[Numbers], removed: Iterable[Numbers]) -> tuple[Numbers, ...]:
    left: list[Numbers] = []
    gaps = iter(removed)
    gap = next(gaps, None)
    for begin, last in numbers:
        first = begin
        while gap is not None and gap[1] < first:
            gap = next(gaps, None)
        while gap is not None and gap[0] <= last:
            if first < gap[0]:
                left.append((first, gap[0] - 1))
            first = gap[1] + 1
            if first > last:
                break  # the gap may continue in the next interval
            gap = next(gaps, None)
        if first <= last:
            left.append((first, last))
    return tuple(left)
