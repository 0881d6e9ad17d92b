"""Files whose statements show that their server does not distinguish table names by case.

A server with lower_case_table_names=1 stores names in lower case. Row events contain the names in
lower case. Statements contain them as the client wrote them. The files do not contain the variable.
If it is not given (`lowerCaseTableNames`), names are case-sensitive, and a statement that changes a
table under another spelling would be ignored. Such a statement is recognized if its table must
exist and is not known, while one is known that differs only in case. CREATE TABLE is no evidence:
where names are case-sensitive, it is possible for any name. DROP TABLE is written by the server,
with the stored names (measured on 5.7.41, 9.7.4 and MariaDB 10.11).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Self

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.decoder.events.statements import Statement, StatementKind
from pyspark_mysqlbinlog.decoder.sql.logged_statement import LoggedStatement
from pyspark_mysqlbinlog.errors import OptionError
from pyspark_mysqlbinlog.names import Table, table_folding
from pyspark_mysqlbinlog.protocol.events import THREAD_SPECIFIC_FLAG, Event

__all__ = ["LetterCaseCheck"]

_KIND = StatementKind
_CHANGES = frozenset({_KIND.ALTER_TABLE, _KIND.RENAME_TABLE, _KIND.TRUNCATE, _KIND.DML})
_folded = table_folding(case_sensitive=False)


class LetterCaseCheck:
    """Finds tables that a statement changes under a name in another letter case.

    captures : whether (database, table) is captured.
    literals : the captured tables that `tables` names.
    """

    def __init__(
        self, captures: Callable[[str, str], bool], literals: Collection[Table] = ()
    ) -> None:
        self._captures = captures
        self._literals = {_folded(name): name for name in literals}
        # A history, and its tables by their folded names.
        self._spellings: tuple[SchemaHistory, dict[Table, list[Table]]] | None = None

    @classmethod
    def of(cls, options: Options) -> Self | None:
        """Create it for files; None if `lowerCaseTableNames` is given."""
        if options.lower_case_table_names is not None:
            return None
        tables = options.table_filter(True)
        return cls(tables.captures, tables.literals)

    def check_names(
        self, history: SchemaHistory, at: Position, event: Event, logged: LoggedStatement
    ) -> None:
        """Raise OptionError if the statement may change a captured table under another spelling.

        Also if the name in the statement is captured, and the known table is not.

        history, at : the tables, and where the statement begins.
        """
        for name, others in self._unknown_tables(history, at, event, logged):
            if any(self._captures(*each) for each in (name, *others)):
                known = others[0] if others else None
            else:
                known = self._literals.get(_folded(name))
            if known is not None:
                error = _contradiction(logged.statement, name, known)
                raise error.with_location(event.file, event.start)

    def other_spellings(
        self, history: SchemaHistory, at: Position, event: Event, logged: LoggedStatement
    ) -> list[Table]:
        """Return existing tables that the statement may change, although it does not name them.

        Parameters as of `check_names`.
        """
        found = self._unknown_tables(history, at, event, logged)
        return [other for _, others in found for other in others]

    def _unknown_tables(
        self, history: SchemaHistory, at: Position, event: Event, logged: LoggedStatement
    ) -> Iterator[tuple[Table, list[Table]]]:
        """Yield unknown tables that must exist, with the known ones that differ only in case."""
        # A temporary table may have any name.
        if event.flags & THREAD_SPECIFIC_FLAG or logged.query.error_code:
            return
        for name in _existing(logged.statement):
            if history.exists(at, *name):
                continue
            others = [
                other
                for other in self._spelled_like(history, name)
                if other != name and history.exists(at, *other)
            ]
            yield name, others

    def _spelled_like(self, history: SchemaHistory, name: Table) -> list[Table]:
        if self._spellings is None or self._spellings[0] is not history:
            names: dict[Table, list[Table]] = {}
            for each in history.tables():
                names.setdefault(_folded(each), []).append(each)
            self._spellings = history, names
        return self._spellings[1].get(_folded(name), [])


def _existing(statement: Statement) -> list[Table]:
    """Return the tables that exist before a statement, as it names them."""
    if statement.kind not in _CHANGES:
        return []
    new = {name for _, name in statement.renames}
    return [name for name in statement.tables or () if name not in new]


def _contradiction(statement: Statement, name: Table, known: Table) -> OptionError:
    return OptionError(
        f"option lowerCaseTableNames is missing: {statement.head!r} names {'.'.join(name)}, which"
        f" is not known, and {'.'.join(known)} differs from it only in case; set 1 if the server"
        " has lower_case_table_names=1 (a stream then needs a new checkpoint), or 0 if these are"
        " two tables",
        table=".".join(known),
    )
