"""A table that one connection writes and alters at random; a seed makes it repeatable."""

from __future__ import annotations

from random import Random

from pymysql.connections import Connection
from pymysql.cursors import Cursor

__all__ = ["EvolvingTable"]

_TYPES = {
    "INT": "{n}",
    "BIGINT UNSIGNED": "{n}",
    "VARCHAR(40)": "'ñ漢 {n}'",
    "TEXT": "'text {n}'",
    "DECIMAL(12,3)": "{n}.125",
    "DOUBLE": "{n}.5",
    "DATETIME(3)": "'2026-11-{d:02d} 10:11:12.345'",
    "ENUM('a','b','c')": "1 + {n} % 3",
    "VARBINARY(20)": "X'00FF{d:02d}'",
    "JSON": """'{{"n": {n}, "é": [1, null]}}'""",
}
# Targets of MODIFY: wider types, which keep the rows' values as the binlog contains them, and
# other types.
_WIDER = {"INT": "BIGINT", "VARCHAR(40)": "VARCHAR(90)", "DECIMAL(12,3)": "DECIMAL(14,3)"}
_MADE = {"BIGINT": "{n}", "CHAR(40)": "'ñ漢 {n}'"}
_OTHER = {"INT": "VARCHAR(40)", "BIGINT UNSIGNED": "VARCHAR(40)", "VARCHAR(40)": "CHAR(40)"}
# A statement, and the columns after it: name -> type.
_Altered = tuple[str, dict[str, str]]


class EvolvingTable:
    """The current columns of a table, and random statements on it.

    Parameters
    ----------
    has_json : whether the server supports the type JSON.

    Attributes
    ----------
    changes : number of statements that changed rows.
    altered : number of statements that altered or truncated the table.
    """

    def __init__(self, name: str, seed: int, *, has_json: bool) -> None:
        self.name = name
        self.changes = self.altered = 0
        self._random = Random(f"{seed}/{name}")
        self._types = {name: how for name, how in _TYPES.items() if has_json or name != "JSON"}
        self._columns = {"v": "VARCHAR(40)", "n": "INT"}
        self._made = 0

    def create(self, connection: Connection[Cursor], rows: int) -> None:
        """Create the table with `rows` rows."""
        columns = ", ".join(f"{name} {kind}" for name, kind in self._columns.items())
        values = ", ".join(f"({number}, 'é {number}', {number})" for number in range(rows))
        with connection.cursor() as cursor:
            cursor.execute(
                f"CREATE TABLE {self.name} (id INT PRIMARY KEY, {columns}) CHARSET utf8mb4"
            )
            cursor.execute(f"INSERT INTO {self.name} VALUES {values}")

    def change(self, connection: Connection[Cursor]) -> None:
        """Change rows by one statement."""
        key, other = self._random.randrange(400), self._random.randrange(400)
        name, _kind = self._random.choice([("v", "VARCHAR(40)"), *self._columns.items()])
        name = name if name in self._columns else next(iter(self._columns))
        value = self._value(self._columns[name])
        statement = self._random.choice(
            [
                f"REPLACE INTO {self.name} (id, {name}) VALUES ({key}, {value})",
                (
                    f"REPLACE INTO {self.name} (id, {name})"
                    f" VALUES ({key}, {value}), ({other + 400}, NULL)"
                ),
                f"UPDATE {self.name} SET {name} = {value} WHERE id % 50 = {key % 50}",
                f"UPDATE IGNORE {self.name} SET id = {other} WHERE id = {key}",
                f"DELETE FROM {self.name} WHERE id = {key}",
            ]
        )
        with connection.cursor() as cursor:
            cursor.execute(statement)
        self.changes += 1

    def alter(self, connection: Connection[Cursor]) -> None:
        """Alter or truncate the table by one statement, or do nothing."""
        kinds = [self._add, self._add, self._drop, self._rename, self._widen, self._other]
        altered = self._random.choice([*kinds, self._rows, self._index])()
        if altered is not None:
            statement, columns = altered
            with connection.cursor() as cursor:
                cursor.execute(statement)
            # Only now: if the statement fails, the table is unchanged.
            self._columns = columns
            self.altered += 1

    def _value(self, kind: str) -> str:
        for known, template in {**_TYPES, **_MADE}.items():
            if kind.split("(", maxsplit=1)[0] == known.split("(")[0]:
                number = self._random.randrange(1000)
                return template.format(n=number, d=1 + number % 28)
        raise AssertionError(kind)

    # The methods below return a statement, and the table's columns after it.

    def _add(self) -> _Altered | None:
        if len(self._columns) > 9:
            return None
        self._made += 1
        name, kind = f"c{self._made}", self._random.choice(list(self._types))
        place = self._random.choice(["", " FIRST", f" AFTER {next(iter(self._columns))}"])
        # The default also fills existing rows, which the binlog does not contain.
        default = ""
        if kind in {"INT", "DOUBLE"} and self._random.random() < 0.5:
            default = " DEFAULT 7"
        statement = f"ALTER TABLE {self.name} ADD COLUMN {name} {kind}{default}{place}"
        return statement, {**self._columns, name: kind}

    def _drop(self) -> _Altered | None:
        if len(self._columns) < 3:
            return None
        name = self._random.choice(list(self._columns))
        kept = {n: kind for n, kind in self._columns.items() if n != name}
        return f"ALTER TABLE {self.name} DROP COLUMN {name}", kept

    def _rename(self) -> _Altered:
        old = self._random.choice(list(self._columns))
        self._made += 1
        new, kind = f"r{self._made}", self._columns[old]
        columns = {new if n == old else n: k for n, k in self._columns.items()}
        return f"ALTER TABLE {self.name} CHANGE {old} {new} {kind}", columns

    def _widen(self) -> _Altered | None:
        return self._modify(_WIDER)

    def _other(self) -> _Altered | None:
        return self._modify(_OTHER)

    def _modify(self, kinds: dict[str, str]) -> _Altered | None:
        fitting = [name for name, kind in self._columns.items() if kind in kinds]
        if not fitting:
            return None
        name = self._random.choice(fitting)
        kind = kinds[self._columns[name]]
        return f"ALTER TABLE {self.name} MODIFY {name} {kind}", {**self._columns, name: kind}

    def _rows(self) -> _Altered | None:
        if self._random.random() >= 0.3:
            return None
        return f"TRUNCATE TABLE {self.name}", self._columns

    def _index(self) -> _Altered | None:
        name = self._random.choice(list(self._columns))
        if self._columns[name] not in {"INT", "BIGINT", "DOUBLE"}:
            return None
        self._made += 1
        return f"ALTER TABLE {self.name} ADD INDEX i{self._made} ({name})", self._columns
