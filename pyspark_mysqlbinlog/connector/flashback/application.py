"""Applies a plan to the server: one transaction, in which each statement restores one row.

After each statement, a SELECT in the same transaction compares the restored row with the wanted
bytes. If a row has changed since, or cannot be restored, everything is rolled back.
"""

from __future__ import annotations

from pyspark_mysqlbinlog.connector.flashback.plan import FlashbackPlan
from pyspark_mysqlbinlog.connector.flashback.script import LENIENT_MODE, SESSION, STRICT_MODE
from pyspark_mysqlbinlog.connector.flashback.statements import UndoStatement
from pyspark_mysqlbinlog.connector.flashback.table_facts import read_table_facts
from pyspark_mysqlbinlog.connector.inspection.literals import one_line
from pyspark_mysqlbinlog.connector.server.settings import ServerFacts, check_settings
from pyspark_mysqlbinlog.errors import RowChangedError, ServerError, UndoError
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient, ServerSettings

__all__ = ["apply_plan"]

_MAX_SHOWN = 300
# Duplicate key, and a row that a foreign key refers to, or that lacks its parent.
_OTHER_ROW = frozenset({1062, 1451, 1452, 1216, 1217, 1586})


def apply_plan(settings: ServerSettings, plan: FlashbackPlan, *, keep: bool = True) -> None:
    """Run the statements of a plan in one transaction.

    keep : commit it; otherwise it is rolled back after all statements have succeeded.

    Raises
    ------
    RowChangedError : a row has changed since; nothing is undone.
    UndoError : a table is not transactional, or a row cannot be restored; nothing is undone.
    ServerError : the server rejects a statement; nothing is undone, unless it is the COMMIT, whose
        outcome may be unknown.
    """
    for table, engine in sorted(plan.unprotected.items()):
        raise UndoError(
            f"{engine} has no transactions, so that a failure could not be rolled back: print the"
            " statements, and run them yourself",
            table=table,
        )
    with ReplicaClient.connect(settings) as client:
        check_settings(client)
        for statement in SESSION:
            client.query(statement)
        client.query("START TRANSACTION")
        _check_tables(client, plan)
        # After an error, closing the connection rolls everything back.
        for each in plan.statements():
            _restore(client, each)
        client.query("COMMIT" if keep else "ROLLBACK")


def _check_tables(client: ReplicaClient, plan: FlashbackPlan) -> None:
    """Raise UndoError if a table is not as it was for the plan, for example has a trigger now.

    From here on the transaction has a metadata lock on each table, so that no DDL can begin.
    """
    for facts in plan.tables.values():
        client.query(facts.opening)
    server = ServerFacts.ask(client)
    present = read_table_facts(
        client,
        lambda database, table: (database, table) in plan.tables,
        case_sensitive=server.case_sensitive,
    )
    for table, facts in plan.tables.items():
        if present.get(table) != facts:
            raise UndoError(
                "the table, its triggers or foreign keys have changed since the binlog was read;"
                " run the command again",
                table=facts.schema.full_name,
            )


def _restore(client: ReplicaClient, each: UndoStatement) -> None:
    try:
        if each.is_lenient:
            client.query(LENIENT_MODE)
        count = client.execute(each.sql)
        if each.is_lenient:
            client.query(STRICT_MODE)
    except ServerError as error:
        if error.code in _OTHER_ROW:
            raise _changed(each, error.message) from None
        raise error.with_location(each.file, each.pos, each.table) from None
    if count != 1:
        raise _changed(each, f"{count} rows are as the change left this one, expected 1")
    if each.proof and not client.query(each.proof):
        raise UndoError(
            "the server stored other values than this row had; nothing is undone. Report it with"
            " the definition of the table",
            file=each.file,
            position=each.pos,
            table=each.table,
        )


def _changed(each: UndoStatement, found: str) -> RowChangedError:
    return RowChangedError(
        f"row {each.row} of this change has changed since, so that nothing is undone: {found};"
        f" {one_line(each.sql, _MAX_SHOWN)}",
        file=each.file,
        position=each.pos,
        table=each.table,
    )
