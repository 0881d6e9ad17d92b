"""The visibility checks that a server and an account allow, tried until one succeeds."""

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
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient

__all__ = ["RequestedCheck", "VisibilityChecker"]

# The option snapshotVisibilityCheck.
RequestedCheck = Literal["auto", "gtid", "innodb_trx", "lock"]

# How long one check waits before the next check is tried, or a line is logged.
POLL_SLICE_SECONDS = 10.0
VISIBILITY_TIMEOUT_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class VisibilityChecker:
    """The visibility checks that are available on a server, for an account.

    Attributes
    ----------
    gtid_mode : None if GTIDs prove nothing (before MySQL 5.7, after it, MariaDB).
    """

    requested: RequestedCheck
    gtid_mode: str | None
    grants: Grants

    @classmethod
    def ask(
        cls,
        client: ReplicaClient,
        requested: RequestedCheck,
        *,
        case_sensitive: bool,
    ) -> Self:
        """Query the server (twice); raises what `ReplicaClient.query` raises."""
        is_57 = not client.is_mariadb and client.server_version.startswith("5.7.")
        mode = client.variable("gtid_mode") if is_57 else None
        return cls(requested, mode, Grants.ask(client, case_sensitive=case_sensitive))

    def checks(self, table: Table, engine: str) -> tuple[Proof, ...]:
        """Return the checks that are available for a table, the best one first.

        Parameters
        ----------
        engine : of the table, as information_schema has it.

        Raises
        ------
        OptionError : snapshotVisibilityCheck selects one that proves nothing here.
        AccessDeniedError : a grant is missing, for each of them.
        """
        missing = self._missing(table, engine)
        if self.requested != "auto":
            if self.requested not in missing:
                return (self.requested,)
            reason = missing[self.requested]
            if reason.startswith("GRANT"):
                raise AccessDeniedError(
                    f"option snapshotVisibilityCheck: {self.requested!r} needs a grant: {reason} to"
                    " this account, or set another method",
                    table=".".join(table),
                )
            raise OptionError(
                f"option snapshotVisibilityCheck: {self.requested!r} proves nothing here: {reason};"
                " set another method, or remove it",
                table=".".join(table),
            )
        names: tuple[Proof, ...] = ("gtid", "innodb_trx", "lock")
        usable = tuple(name for name in names if name not in missing)
        if not usable:
            raise AccessDeniedError(
                "the snapshot cannot verify that SELECT sees all committed transactions, so"
                f" changes could be lost: {_ways(missing)} to this account",
                table=".".join(table),
            )
        return usable

    def _missing(self, table: Table, engine: str) -> dict[Proof, str]:
        """Return what each unavailable check lacks."""
        missing: dict[Proof, str] = {}
        if self.gtid_mode is None:
            missing["gtid"] = "the server is not MySQL 5.7"
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

    def wait_until_visible(
        self,
        client: ReplicaClient,
        connect: Callable[[], ReplicaClient],
        table: Table,
        engine: str,
        *,
        patience: float = VISIBILITY_TIMEOUT_SECONDS,
    ) -> Watermark:
        """Return a new watermark for a table. The next SELECT must begin a new transaction.

        Parameters
        ----------
        client : without an open transaction.
        connect : returns further connections, which are closed at the end.
        patience : seconds to wait for blocking transactions.

        Raises
        ------
        SnapshotVisibilityTimeoutError : they have not ended by then.
        ServerError : what `ReplicaClient.query` raises; 1146 if the table does not exist.
        OptionError, AccessDeniedError : as for `checks`.
        """
        attempts = [CHECKS[proof](client, connect, table) for proof in self.checks(table, engine)]
        return _first_success(attempts, table, patience)

    def missing_lock(self, table: Table, engine: str) -> str | None:
        """Return what `begin_at_exact_position` lacks; None if it is possible."""
        return self._missing(table, engine).get("lock")

    def begin_at_exact_position(
        self,
        client: ReplicaClient,
        connect: Callable[[], ReplicaClient],
        table: Table,
        engine: str,
        *,
        patience: float = VISIBILITY_TIMEOUT_SECONDS,
    ) -> Watermark:
        """Return a watermark at which the client sees exactly the table's rows of that position.

        An InnoDB table is locked for a moment, in which the client's transaction begins. A table of
        another engine is locked by the client itself, until UNLOCK TABLES.

        Raises
        ------
        SnapshotVisibilityTimeoutError, ServerError : as for `wait_until_visible`.
        """

        def begin() -> None:
            client.query("START TRANSACTION WITH CONSISTENT SNAPSHOT")

        lock = (
            TableLock(client, connect, table, begin)
            if is_innodb(engine)
            else SessionTableLock(client, table)
        )
        return _first_success([lock], table, patience)


def _first_success(attempts: Sequence[VisibilityCheck], table: Table, patience: float) -> Watermark:
    """Return the first watermark that one of the checks proves; the checks take turns."""
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
                    "snapshot of %s: %s waits for %s",
                    ".".join(table),
                    attempt.proof,
                    attempt.waits_for,
                )
            if monotonic() >= deadline:
                break
        reasons = "; ".join(f"{attempt.proof}: {attempt.waits_for}" for attempt in attempts)
        raise SnapshotVisibilityTimeoutError(
            f"waited {patience:g} s for transactions that are in the binlog and may not be visible"
            f" to SELECT yet ({reasons}); end these transactions",
            table=".".join(table),
        )


def _ways(missing: dict[Proof, str]) -> str:
    """Return the grants of which one is enough, as text; other reasons are in brackets."""
    grants = [reason for reason in missing.values() if reason.startswith("GRANT")]
    others = [reason for reason in missing.values() if not reason.startswith("GRANT")]
    alternatives = f" ({'; '.join(dict.fromkeys(others))})" if others else ""
    return " or ".join(grants) + alternatives
