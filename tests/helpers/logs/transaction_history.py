"""Random logs of transactions: XA in one and two phases, savepoints, and rollbacks."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from helpers.logs.events import LogBuilder, gtid_body, xa_prepare_body
from helpers.snapshots.filter_harness import xid
from pyspark_mysqlbinlog.protocol.events import EventType

__all__ = ["Committed", "TransactionHistory"]


@dataclass(frozen=True)
class Committed:
    """A committed row of d.t.

    Attributes
    ----------
    number, pos : file number and position of `seq`; pos is 0 if `seq` has the row event's own.
    """

    value: int
    number: int
    pos: int
    gtid: int | None


@dataclass
class TransactionHistory:
    """A random log of rows of d.t, which is captured, and d.x; `rows` are the committed ones.

    rolls_back : the log also contains transactions that are rolled back as a whole.
    """

    seed: int
    rolls_back: bool = True
    files: list[LogBuilder] = field(default_factory=list)
    rows: list[Committed] = field(default_factory=list)
    # Boundaries: file, position, and the number of committed rows before it.
    boundaries: list[tuple[str, int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = Random(self.seed)
        self._value = self._gtid = self._xids = 0
        self._prepared: dict[bytes, list[int]] = {}
        self._rotate()
        for _ in range(self._random.randint(5, 40)):
            self._step()
            self.boundaries.append((self._log.file, self._log.pos, len(self.rows)))

    def write(self, folder: Path) -> None:
        for each in self.files:
            each.write(folder)

    @property
    def _log(self) -> LogBuilder:
        return self.files[-1]

    def _rotate(self) -> None:
        name = f"mysql-bin.{len(self.files) + 1:06}"
        if self.files:
            self._log.rotate(name)
        self.files.append(LogBuilder(name).format_description())
        if len(self.files) == 1:
            self._log.query("CREATE TABLE t (a INT)").query("CREATE TABLE x (a INT)")

    def _step(self) -> None:
        step = self._random.choices(
            [self._plain, self._xa, self._decide, self._rotate], [3, 3, 3, 1]
        )[0]
        step()

    def _named(self) -> int | None:
        """Write a GTID event and return its number, or write none."""
        if self._random.random() < 0.3:
            return None
        self._gtid += 1
        self._log.add(EventType.GTID_LOG_EVENT, gtid_body(self._gtid))
        return self._gtid

    def _plain(self) -> None:
        gtid = self._named()
        self._log.query("BEGIN")
        values = self._statements()
        if self.rolls_back and self._random.random() < 0.2:
            self._log.query("ROLLBACK")
            return
        self._log.xid()
        self.rows += [Committed(value, len(self.files), 0, gtid) for value in values]

    def _xa(self) -> None:
        self._xids += 1
        name = self._random.choice([b"%d" % self._xids, b"again"])
        if name in self._prepared:
            return
        gtid = self._named()
        self._log.query(f"XA START {xid(name)}")
        values = self._statements()
        self._log.query(f"XA END {xid(name)}")
        if self.rolls_back and self._random.random() < 0.1:
            self._log.query(f"XA ROLLBACK {xid(name)}")
            return
        one_phase = self._random.random() < 0.2
        self._log.add(EventType.XA_PREPARE_LOG_EVENT, xa_prepare_body(name, one_phase=one_phase))
        if one_phase:
            self.rows += [Committed(value, len(self.files), 0, gtid) for value in values]
        else:
            self._prepared[name] = values

    def _decide(self) -> None:
        if not self._prepared:
            return
        name = self._random.choice(list(self._prepared))
        values = self._prepared.pop(name)
        gtid = self._named()
        pos = self._log.pos
        if self._random.random() < 0.3:
            self._log.query(f"XA ROLLBACK {xid(name)}")
            return
        self._log.query(f"XA COMMIT {xid(name)}")
        self.rows += [Committed(value, len(self.files), pos, gtid) for value in values]

    def _statements(self) -> list[int]:
        """Write the statements of a transaction; return the values that a commit keeps."""
        values: list[int] = []
        savepoints: dict[str, int] = {}
        for _ in range(self._random.choice([0, 1, 2, 3, 8])):
            step = self._random.random()
            if step < 0.6:
                table = self._random.choice("ttx")
                new = [self._next() for _ in range(self._random.randint(1, 4))]
                self._log.rows(1 + (table == "x"), table, *new)
                values += new if table == "t" else []
            elif step < 0.8 or not savepoints:
                name = self._random.choice("abC")
                self._log.query(f"SAVEPOINT `{name}`")
                savepoints.pop(name, None)
                savepoints[name] = len(values)
            else:
                name = self._random.choice(list(savepoints))
                self._log.query(f"ROLLBACK TO `{name.swapcase()}`")
                del values[savepoints[name] :]
                for later in list(savepoints)[list(savepoints).index(name) + 1 :]:
                    del savepoints[later]
        return values

    def _next(self) -> int:
        self._value += 1
        return self._value
