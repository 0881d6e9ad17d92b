"""Which proofs of a watermark a server and an account allow, and their turns until one holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from time import monotonic
from typing import Literal, Self

from pyspark_mysqlbinlog.connector.log.retry import LOG
from pyspark_mysqlbinlog.connector.server.grants import Grants
from pyspark_mysqlbinlog.connector.snapshot.chunks.table_stats import is_innodb
from pyspark_mysqlbinlog.connector.snapshot.visibility.watermark import (
    CHECKS,
    Proof,
    SessionTableLock,
    TableLock,
    VisibilityCheck,
    Watermark,
)
from pyspark_mysqlbinlog.errors import (
    AccessDeniedError,
    OptionError,
    SnapshotVisibilityTimeoutError,
)
from pyspark_mysqlbinlog.names import Table, quoted
from pyspark_mysqlbinlog.protocol.client import ReplicaClient

__all__ = ["VisibilityChecker", "Wanted"]

# The option snapshotVisibilityCheck.
Wanted = Literal["auto", "gtid", "innodb_trx", "lock"]

# How long one proof is waited for before the next one has its turn, or a line is logged.
POLL_SLICE_SECONDS = 10.0
_PATIENCE = 600.0


@dataclass(frozen=True, slots=True)
class VisibilityChecker:
    """Which proofs there are on a server, for an account.

    Attributes
    ----------
    gtid_mode : None where GTIDs prove nothing (before MySQL 5.7, behind it, MariaDB).
    """

    wanted: Wanted
    gtid_mode: str | None
    grants: Grants

    @classmethod
    def ask(
        cls,
        client: ReplicaClient,
        wanted: Wanted,
        *,
        case_sensitive: bool,
    ) -> Self:
        """Two queries; raises what `ReplicaClient.query` raises."""
        is_57 = not client.is_mariadb and client.server_version.startswith("5.7.")
        mode = client.variable("gtid_mode") if is_57 else None
        return cls(wanted, mode, Grants.ask(client, case_sensitive=case_sensitive))

    def proofs(self, table: Table, engine: str) -> tuple[Proof, ...]:
        """Those for a table that may be used, the best one first.

        Parameters
        ----------
        engine : of the table, as information_schema has it.

        Raises
        ------
        OptionError : snapshotVisibilityCheck asks for one that proves nothing here.
        AccessDeniedError : a grant is missing, for each of them.
        """
        missing = self._missing(table, engine)
        if self.wanted != "auto":
            if self.wanted not in missing:
                return (self.wanted,)
            reason = missing[self.wanted]
            if reason.startswith("GRANT"):
                raise AccessDeniedError(
                    f"option snapshotVisibilityCheck: {self.wanted!r} needs a grant: {reason} to"
                    " this account, or set another method",
                    table=".".join(table),
                )
            raise OptionError(
                f"option snapshotVisibilityCheck: {self.wanted!r} proves nothing here: {reason};"
                " set another method, or leave it out",
                table=".".join(table),
            )
        names: tuple[Proof, ...] = ("gtid", "innodb_trx", "lock")
        usable = tuple(name for name in names if name not in missing)
        if not usable:
            raise AccessDeniedError(
                "nothing proves that a SELECT sees all that is in the log before it, and changes"
                f" would be lost: {_ways(missing)} to this user",
                table=".".join(table),
            )
        return usable

    def _missing(self, table: Table, engine: str) -> dict[Proof, str]:
        """What each proof that can't be used lacks."""
        missing: dict[Proof, str] = {}
        if self.gtid_mode is None:
            missing["gtid"] = "the server is no MySQL 5.7"
        elif self.gtid_mode != "ON":
            missing["gtid"] = f"gtid_mode is {self.gtid_mode}, expected ON"
        if not self.grants.allows("PROCESS"):
            missing["innodb_trx"] = "GRANT PROCESS ON *.*"
        if not is_innodb(engine):
            reason = f"the table's engine is {engine}, expected InnoDB"
            missing["gtid"] = missing["innodb_trx"] = reason
        if not self.grants.allows("LOCK TABLES", table[0]):
            missing["lock"] = f"GRANT SELECT, LOCK TABLES ON {quoted(table[0])}.*"
        return missing

    def prove(
        self,
        client: ReplicaClient,
        connect: Callable[[], ReplicaClient],
        table: Table,
        engine: str,
        *,
        patience: float = _PATIENCE,
    ) -> Watermark:
        """A new watermark for a table. The SELECT that follows must begin a new transaction.

        Parameters
        ----------
        client : of no open transaction.
        connect : gives further connections, which are closed at the end.
        patience : for how many seconds transactions that stand in the way are waited for.

        Raises
        ------
        SnapshotVisibilityTimeoutError : they have not ended by then.
        ServerError : what `ReplicaClient.query` raises; 1146 where the table is gone.
        OptionError, AccessDeniedError : as for `proofs`.
        """
        attempts = [CHECKS[proof](client, connect, table) for proof in self.proofs(table, engine)]
        return _first(attempts, table, patience)

    def missing_lock(self, table: Table, engine: str) -> str | None:
        """What `begin_at_exact_position` lacks; None where it can be done."""
        return self._missing(table, engine).get("lock")

    def begin_at_exact_position(
        self,
        client: ReplicaClient,
        connect: Callable[[], ReplicaClient],
        table: Table,
        engine: str,
        *,
        patience: float = _PATIENCE,
    ) -> Watermark:
        """A watermark, and the client sees all of a table from before it, and nothing from behind.

        An InnoDB table is locked for a moment, in which the client's transaction begins. One of
        another engine is locked by the client itself, until UNLOCK TABLES.

        Raises
        ------
        SnapshotVisibilityTimeoutError, ServerError : as for `prove`.
        """

        def begin() -> None:
            client.query("START TRANSACTION WITH CONSISTENT SNAPSHOT")

        lock = (
            TableLock(client, connect, table, begin)
            if is_innodb(engine)
            else SessionTableLock(client, table)
        )
        return _first([lock], table, patience)


def _first(attempts: Sequence[VisibilityCheck], table: Table, patience: float) -> Watermark:
    """What the first of them proves; each has its turn."""
    deadline = monotonic() + patience
    with ExitStack() as stack:
        for attempt in attempts:
            stack.enter_context(attempt)
        while True:
            for attempt in attempts:
                watermark = attempt.wait(min(POLL_SLICE_SECONDS, max(deadline - monotonic(), 0.0)))
                if watermark is not None:
                    return watermark
                LOG.warning(
                    "first load of %s: %s waits for %s",
                    ".".join(table),
                    attempt.proof,
                    attempt.waits_for,
                )
            if monotonic() >= deadline:
                break
        reasons = "; ".join(f"{attempt.proof}: {attempt.waits_for}" for attempt in attempts)
        raise SnapshotVisibilityTimeoutError(
            f"waited {patience:g} s for what the log has already and SELECT may not show yet"
            f" ({reasons}); end these transactions",
            table=".".join(table),
        )


def _ways(missing: dict[Proof, str]) -> str:
    """The grants of which one is enough; what has nothing to do with grants is in brackets."""
    grants = [reason for reason in missing.values() if reason.startswith("GRANT")]
    others = [reason for reason in missing.values() if not reason.startswith("GRANT")]
    told = f" ({'; '.join(dict.fromkeys(others))})" if others else ""
    return " or ".join(grants) + told
