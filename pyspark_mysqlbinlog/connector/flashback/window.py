"""The transactions that are undone: between two positions, or some GTIDs among them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from pyspark_mysqlbinlog.checkpoints.gtid_set import GtidSet, source_and_number
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.gtids.executed import global_gtids
from pyspark_mysqlbinlog.connector.log.server_log import ServerLog
from pyspark_mysqlbinlog.connector.log.start_point import pack_position
from pyspark_mysqlbinlog.connector.options.values import Earliest, Latest, PlaceInBinlog
from pyspark_mysqlbinlog.connector.server.settings import binlog_files
from pyspark_mysqlbinlog.errors import BinlogPurgedError, InvalidPositionError, OptionError
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient

__all__ = ["Window", "WindowBounds"]

_MARIADB_GTID = re.compile(r"\d+-\d+-\d+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Window:
    """The requested window.

    Attributes
    ----------
    since : the first transaction; a time is that of its first event.
    until : the boundary after the last transaction; with a time, transactions from there on are
        not undone.
    gtids : only these transactions: a GTID set, or single GTIDs of MariaDB; None for all.
    """

    since: PlaceInBinlog | None
    until: PlaceInBinlog
    gtids: str | None = None

    def __post_init__(self) -> None:
        if self.since is None and self.gtids is None:
            raise OptionError(
                "no window is given: expected --since with a time, a duration or FILE:POS, or"
                " --gtids"
            )

    def bounds(self, client: ReplicaClient, log: ServerLog, end: Position) -> WindowBounds:
        """Find the window in a server's binlog.

        end : of the binlog.

        Raises OptionError, InvalidPositionError or BinlogPurgedError.
        """
        files = binlog_files(client)
        start = pack_position(client, log, files, self.since or Earliest())
        stop = end
        if not isinstance(self.until, Latest):
            stop = min(pack_position(client, log, files, self.until), end)
        if stop.order < start.order:
            raise OptionError(f"--until: {stop} is before the start of the window, {start}")
        if self.gtids is None:
            return WindowBounds(start, stop, None)
        return WindowBounds(start, stop, _selects(client, self.gtids))


def _selects(client: ReplicaClient, text: str) -> Callable[[str], bool]:
    """Return a function that returns whether a GTID is selected."""
    if client.is_mariadb:
        # A GTID set of MariaDB stands for all transactions of a domain up to a GTID. Here each GTID
        # stands for one transaction.
        wanted = frozenset(each.strip() for each in text.split(","))
        if not all(map(_MARIADB_GTID.fullmatch, wanted)):
            raise OptionError(f"--gtids: expected GTIDs such as 0-1-105, found {text!r}")
        return wanted.__contains__
    try:
        chosen = GtidSet.parse(text)
    except InvalidPositionError as error:
        raise OptionError(f"--gtids: {error.message}") from None
    purged = global_gtids(client, "gtid_purged")
    if str(chosen.difference(purged)) != str(chosen):
        raise BinlogPurgedError(
            f"--gtids: the server has purged some of these transactions; it has purged {purged}"
        )

    return lambda gtid: chosen.has(*source_and_number(gtid))


@dataclass(frozen=True, slots=True)
class WindowBounds:
    """A window in the binlog.

    Attributes
    ----------
    start, stop : transactions that begin from `start` on and before `stop` belong to it.
    selects : whether a GTID belongs to it; None if all do.
    """

    start: Position
    stop: Position
    selects: Callable[[str], bool] | None

    def has(self, begin: Position, gtid: str | None) -> bool:
        """Whether a transaction belongs to it: by its first event, and its GTID."""
        if begin.order >= self.stop.order:
            return False
        return self.selects is None or (gtid is not None and self.selects(gtid))

    def check_boundary(self, begin: Position, here: Position) -> None:
        """Raise InvalidPositionError if the window ends inside a transaction of the window."""
        if begin.order < self.stop.order <= here.order:
            raise InvalidPositionError(
                f"the window ends at {self.stop}, inside of a transaction that begins at {begin};"
                " set a position between two transactions",
                file=self.stop.file,
                position=self.stop.pos,
            )
