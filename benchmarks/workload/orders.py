"""The benchmark's table and its rows: a shop's orders, 12 columns, about 165 bytes in the log.

Rows come from a seeded generator, so every run on every machine writes the same log but for the
times of its events.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice

__all__ = ["COLUMNS", "CREATE", "DATABASE", "TABLE", "Orders"]

DATABASE = "bench"
TABLE = "orders"

_STATUS = ("new", "paid", "packed", "sent", "returned")
_TAGS = ("gift", "express", "fragile", "b2b", "first", "export")

CREATE = f"""CREATE TABLE {DATABASE}.{TABLE} (
  id BIGINT UNSIGNED NOT NULL PRIMARY KEY,
  customer INT NOT NULL,
  status ENUM({", ".join(map(repr, _STATUS))}) NOT NULL,
  amount DECIMAL(12,2) NOT NULL,
  quantity SMALLINT UNSIGNED NOT NULL,
  sku VARCHAR(32) NOT NULL,
  ordered DATETIME(3) NOT NULL,
  changed TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  weight DOUBLE NULL,
  priority TINYINT NOT NULL,
  note TEXT NULL,
  tags SET({", ".join(map(repr, _TAGS))}) NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"""

COLUMNS = 12

_TEXT = """
    deliver to the back door after six and ring twice; leave with neighbour if nobody answers,
    otherwise call first: customer asked for paper wrap, no plastic, invoice by mail please, see
    earlier order about the damaged corner, refund agreed, handle with care, keep upright, dry
"""
_WORDS = _TEXT.split()
# A few notes are not ASCII, as in any shop's data.
_FOREIGN = ("Straße", "garçon", "naïve", "München", "東京", "😀")
_DAY = datetime(2024, 1, 1)  # noqa: DTZ001 (DATETIME has no zone)
_NOTE_BYTES = 100


class Orders:
    """Rows as SQL: tuples for INSERT, assignments for UPDATE."""

    def __init__(self, seed: int = 20_240_101) -> None:
        self._random = random.Random(seed)
        self._notes = [self._note() for _ in range(4096)]

    def _note(self) -> str:
        draw = self._random
        words: list[str] = []
        length = draw.randrange(_NOTE_BYTES - 40, _NOTE_BYTES + 40)
        while sum(map(len, words)) + len(words) < length:
            words.append(draw.choice(_FOREIGN if draw.random() < 0.004 else _WORDS))
        return " ".join(words)

    def values(self, key: int) -> str:
        """One row as an SQL tuple."""
        draw = self._random.random
        tags = ",".join(tag for tag in _TAGS if draw() < 0.25)
        when = _DAY + timedelta(milliseconds=int(draw() * 63_000_000_000))
        changed = when + timedelta(microseconds=int(draw() * 86_400_000_000))
        weight = "NULL" if draw() < 0.02 else f"{draw() * 40:.6f}"
        note = "NULL" if draw() < 0.02 else f"'{self._notes[int(draw() * 4096)]}'"
        return (
            f"({key},{int(draw() * 2_000_000)},{1 + int(draw() * 5)},{draw() * 9_999:.2f},"
            f"{1 + int(draw() * 900)},'SKU-{int(draw() * 1_000_000):06}-{int(draw() * 90) + 10}',"
            f"'{when.isoformat(' ', 'milliseconds')}','{changed.isoformat(' ', 'microseconds')}',"
            f"{weight},{int(draw() * 10) - 2},{note},'{tags}')"
        )

    def bulk(self, rows: int, statement_rows: int = 1000) -> Iterator[str]:
        """INSERT statements that make the rows 1 … `rows`."""
        tuples = map(self.values, range(1, rows + 1))
        while some := ",".join(islice(tuples, statement_rows)):
            yield f"INSERT INTO {DATABASE}.{TABLE} VALUES {some}"

    def single(self, rows: int, existing: int) -> Iterator[tuple[str, str]]:
        """(op, statement) of `rows` changes of one row: 40 % inserts, 50 % updates, 10 % deletes.

        existing : the table has the rows 1 … `existing`.
        """
        # Every statement changes exactly one row: a key that is deleted is not used again.
        keys = list(range(1, existing + 1))
        fresh = existing + 1
        for _ in range(rows):
            kind = self._random.random()
            if kind < 0.4 or len(keys) < 2:
                yield "c", f"INSERT INTO {DATABASE}.{TABLE} VALUES {self.values(fresh)}"
                keys.append(fresh)
                fresh += 1
                continue
            at = int(self._random.random() * len(keys))
            if kind < 0.9:
                yield "u", self._update(keys[at])
            else:
                keys[at], keys[-1] = keys[-1], keys[at]
                yield "d", f"DELETE FROM {DATABASE}.{TABLE} WHERE id = {keys.pop()}"

    def _update(self, key: int) -> str:
        draw = self._random.random
        # An UPDATE that changes nothing is not logged: the time always moves.
        return (
            f"UPDATE {DATABASE}.{TABLE} SET status = {1 + int(draw() * 5)},"
            f" amount = {draw() * 9_999:.2f},"
            f" changed = changed + INTERVAL {1 + int(draw() * 999_999)} MICROSECOND"
            f" WHERE id = {key}"
        )
