"""Random XA transactions on a real server: prepared, committed, rolled back, and in one phase."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pymysql

from helpers.servers import Server
from helpers.waiting import wait_until

__all__ = ["XaWriter"]

_UNKNOWN_XID = 1397  # XAER_NOTA
_KNOWN_XID = 1440  # XAER_DUPID


@dataclass
class _Transaction:
    """A prepared XA transaction.

    session : None if it has ended.
    ids : of the rows that it changed and locks.
    """

    xid: str
    session: Any
    ids: set[int]


@dataclass
class XaWriter:
    """A writer to the tables t and x of a database that runs one random step at a time.

    restart : restarts the server; None if that is not possible.
    """

    server: Server
    database: str
    random: Random
    restart: Callable[[], None] | None = None
    prepared: list[_Transaction] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._ids = 0
        self._names = os.urandom(4).hex()
        self._count = 0
        # Servers before 5.7 roll back a prepared transaction when its session ends.
        self._outlives_session = not self.server.version().startswith(("5.5.", "5.6."))
        for table in "tx":
            self.server.execute(
                f"CREATE TABLE {self.database}.{table} (id INT PRIMARY KEY, v VARCHAR(400))"
            )

    def step(self) -> None:
        steps: dict[Callable[[], None], int] = {
            self._prepare: 4,
            self._commit: 3,
            self._roll_back: 1,
            self._one_phase: 1,
            self._plain: 3,
            self._detach: 2,
            self.server.rotate: 1,
        }
        if self.restart is not None:
            steps[self._restart] = 1
        self.random.choices(list(steps), list(steps.values()))[0]()

    def finish(self) -> None:
        """Commit or roll back all transactions that are still prepared."""
        while self.prepared:
            self.random.choice([self._commit, self._commit, self._roll_back])()

    def forget(self) -> None:
        """Roll back the prepared transactions of a failed test, which would lock its tables."""
        with suppress(pymysql.MySQLError):
            while self.prepared:
                self._roll_back()

    def _session(self) -> Any:
        # Without gap locks, only the rows in `_Transaction.ids` are locked.
        isolation = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"
        return self.server.connect(database=self.database, autocommit=True, init_command=isolation)

    def _new_xid(self) -> str:
        self._count += 1
        # Some XIDs are used again.
        number = self._count if self.random.random() < 0.7 else 0
        xid = f"'{self._names}{number}'"
        taken = {each.xid for each in self.prepared}
        return xid if xid not in taken else f"'{self._names}-{self._count}'"

    def _prepare(self) -> None:
        if len(self.prepared) >= 6:
            return
        session = self._session()
        try:
            with session.cursor() as cursor:
                xid = self._start(cursor)
                # A prepared transaction without changes would be lost when its session ends.
                self._ids += 1
                cursor.execute(f"INSERT INTO x VALUES ({self._ids}, 'first')")
                ids = self._statements(cursor)
                cursor.execute(f"XA END {xid}")
                cursor.execute(f"XA PREPARE {xid}")
        except BaseException:
            session.close()
            raise
        self.prepared.append(_Transaction(xid, session, ids))

    def _start(self, cursor: Any) -> str:
        """Start an XA transaction; return its xid."""
        while True:
            xid = self._new_xid()
            try:
                cursor.execute(f"XA START {xid}")
            except pymysql.MySQLError as error:
                # 5.7 may keep an XID for a moment after its transaction has ended.
                if error.args[0] != _KNOWN_XID:
                    raise
            else:
                return xid

    def _one_phase(self) -> None:
        with self._session() as session, session.cursor() as cursor:
            xid = self._start(cursor)
            self._statements(cursor)
            cursor.execute(f"XA END {xid}")
            cursor.execute(f"XA COMMIT {xid} ONE PHASE")

    def _commit(self) -> None:
        self._decide("COMMIT")

    def _roll_back(self) -> None:
        self._decide("ROLLBACK")

    def _decide(self, how: str) -> None:
        if not self.prepared:
            return
        one = self.prepared.pop(self.random.randrange(len(self.prepared)))
        session = one.session or self._session()

        def decided() -> bool:
            # The server may not yet have detached it from its session, which has ended.
            try:
                with session.cursor() as cursor:
                    cursor.execute(f"XA {how} {one.xid}")
            except pymysql.MySQLError as error:
                if one.session is None and error.args[0] == _UNKNOWN_XID:
                    return False
                raise
            return True

        wait_until(decided, f"{one.xid} is decided")
        session.close()

    def _detach(self) -> None:
        for one in self.prepared:
            if one.session is not None:
                one.session.close()
                one.session = None
                if not self._outlives_session:
                    self.prepared.remove(one)
                return

    def _restart(self) -> None:
        assert self.restart is not None
        for one in self.prepared:
            if one.session is not None:
                one.session.close()
                one.session = None
        self.restart()

    def _plain(self) -> None:
        with self._session() as session, session.cursor() as cursor:
            cursor.execute("BEGIN")
            self._statements(cursor)
            cursor.execute(self.random.choice(["COMMIT", "COMMIT", "ROLLBACK"]))

    def _statements(self, cursor: Any) -> set[int]:
        ids: set[int] = set()
        has_savepoint = False
        for _ in range(self.random.choice([1, 1, 2, 3, 8])):
            table = self.random.choice("tttx")
            step = self.random.random()
            if step < 0.15:
                cursor.execute("SAVEPOINT `Sp`")
                has_savepoint = True
            elif step < 0.3 and has_savepoint:
                cursor.execute("ROLLBACK TO sP")
            elif step < 0.7 or not (known := self._unlocked(table, ids)):
                text = "x" * self.random.choice([1, 1, 300])
                for _ in range(self.random.choice([1, 1, 5])):
                    self._ids += 1
                    ids.add(self._ids)
                    cursor.execute(f"INSERT INTO {table} VALUES ({self._ids}, '{text}')")
            else:
                one = self.random.choice(known)
                ids.add(one)
                if step < 0.9:
                    cursor.execute(f"UPDATE {table} SET v = 'u{self._ids}' WHERE id = {one}")
                else:
                    cursor.execute(f"DELETE FROM {table} WHERE id = {one}")
        return ids

    def _unlocked(self, table: str, own: set[int]) -> list[int]:
        locked = own.union(*(each.ids for each in self.prepared))
        rows = self.server.execute(f"SELECT id FROM {self.database}.{table}")
        return [int(row[0]) for row in rows if row[0] not in locked]
