"""Where the chunks of a table end, as values of its key.

Only the server compares keys: their order is that of a collation, of labels' numbers or of signs,
and differs from any order of ours. So a bound is found by the server, reading nothing but the
index, and is kept as SQL literals, each of which is exactly the value that the index holds:

- texts in hexadecimal, with the column's own character set and collation: whatever the connection,
  the table and the database are set to, the literal compares as the column's values do;
- FLOAT as the double that it is; SELECT would show six digits of it;
- ENUM, SET and BIT by number, as they are ordered; compared with a text, an ENUM is one;
- times as texts, which may hold dates like 0000-00-00 and 2026-02-31. TIMESTAMP needs a session in
  +00:00, where no hour comes twice; `protocol/session.py` sets it.

A row constructor, ``(a, b) > (x, y)``, uses no index on MySQL 5.7, so it is spelt out. Nor does a
comparison of an ENUM or SET with ``<`` or ``>``, on any server: the numbers between the bounds are
listed, where they are not too many. A key that begins with a larger SET is read from its beginning
for each chunk: slow, but right.
"""

from __future__ import annotations

from pyspark_mysqlbinlog.checkpoints.load_state import Bound
from pyspark_mysqlbinlog.connector.load.keys import KeyColumn, LoadKey, quoted, quoted_table
from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.protocol.client import ReplicaClient
from pyspark_mysqlbinlog.tables import INTEGER_TYPES

__all__ = ["last_bound", "next_bound", "where"]

# Numbers of labels in one condition: MySQL 5.7.9 to 5.7.11 allow the optimizer 1.5 MB for ranges,
# and each takes it 230 bytes.
_MOST_LISTED = 4096


def where(key: LoadKey, after: Bound | None, upto: Bound | None) -> str:
    """The SQL condition for the rows behind `after` up to and with `upto`; never empty.

    It names columns without their table.
    """
    conditions = []
    first = 0
    if after is not None and upto is not None:
        # The same text is the same value; the converse does not hold.
        while first < len(key.columns) and after[first] == upto[first]:
            conditions.append(_equal(key.columns[first], after[first]))
            first += 1
        if first == len(key.columns):
            return "FALSE"
    lowest = after[first] if after is not None else None
    highest = upto[first] if upto is not None else None
    if after is not None:
        conditions.append(_beyond(key.columns[first:], after[first:], ">", ">", highest))
    if upto is not None:
        conditions.append(_beyond(key.columns[first:], upto[first:], "<", "<=", lowest))
    return " AND ".join(conditions) or "TRUE"


def _beyond(
    columns: tuple[KeyColumn, ...], bound: Bound, operator: str, last: str, other: str | None
) -> str:
    """Beyond a bound on one side: ``(a > x OR (a = x AND (b > y OR …)))``.

    Parameters
    ----------
    operator : ``<`` or ``>``.
    last : the one for the last column, which tells whether the bound itself belongs to it.
    other : the bound on the other side of the first column, where there is one.
    """
    column, *more = columns
    if not more:
        return _compared(column, last, bound[0], other)
    beyond = _compared(column, operator, bound[0], other)
    rest = _beyond((*more,), bound[1:], operator, last, None)
    return f"({beyond} OR ({_equal(column, bound[0])} AND {rest}))"


def _equal(column: KeyColumn, literal: str) -> str:
    value = _signed(int(literal)) if column.type == "set" else literal
    return f"{quoted(column.name)} = {value}"


def _compared(column: KeyColumn, operator: str, literal: str, other: str | None) -> str:
    """One column compared with a literal, in the form that uses an index, if there is one."""
    name = quoted(column.name)
    numbers = _numbers_beyond(column, operator, literal, other)
    if numbers is not None:
        return f"{name} IN ({','.join(map(_signed, numbers))})" if numbers else "FALSE"
    if column.type == "set":
        name = f"CAST({name} AS UNSIGNED)"
    return f"{name} {operator} {literal}"


def _signed(number: int) -> str:
    """The number of a SET as it is compared: signed, though the order is that of unsigned ones."""
    return str(number - (1 << 64) if number >> 63 else number)


def _numbers_beyond(
    column: KeyColumn, operator: str, literal: str, other: str | None
) -> range | None:
    """The numbers of an ENUM or SET beyond one of them; None where a list is of no use."""
    if column.type == "enum":
        highest = column.label_count
    elif column.type == "set":
        highest = (1 << column.label_count) - 1
    else:
        return None
    number = int(literal)
    if operator == ">":
        numbers = range(number + 1, (highest if other is None else int(other)) + 1)
    else:
        # Number 0 is the empty text that stands for a wrong label, and the SET without any.
        numbers = range(0 if other is None else int(other), number + (operator == "<="))
    # Not len(): a range of 2^64 numbers has none.
    return numbers if numbers.stop - numbers.start <= _MOST_LISTED else None


def next_bound(  # noqa: PLR0917
    client: ReplicaClient,
    table: Table,
    key: LoadKey,
    after: Bound | None,
    rows: int,
    last: Bound,
) -> tuple[Bound | None, int]:
    """The end of the chunk of `rows` rows that begins behind `after`, and how many rows it has.

    The bound is `last` where fewer rows are left, and None where none is.

    Parameters
    ----------
    after : the bound of the chunk before; None at the table's beginning.
    last : what `last_bound` gave when the load of the table began.
    """
    if rows < 1:
        raise ValueError(f"a chunk of {rows} rows was asked for, expected 1 or more")
    condition = where(key, after, last)
    found = client.query(f"{_select(table, key, condition)} LIMIT {rows - 1}, 1")
    if found:
        return _bound(key, found[0]), rows
    ((left,),) = client.query(f"SELECT COUNT(*) {_from(table, key, condition)}")
    return (last, int(left)) if left else (None, 0)


def last_bound(client: ReplicaClient, table: Table, key: LoadKey) -> Bound | None:
    """The greatest key of a table; None when it has no rows.

    Rows behind it are left to the log. So it must be asked for when all that was logged before the
    start is proven to be visible: a row that is in the log, but not in the engine yet, would be
    missing from both.
    """
    found = client.query(f"{_select(table, key, 'TRUE', 'DESC')} LIMIT 1")
    return _bound(key, found[0]) if found else None


def _select(table: Table, key: LoadKey, condition: str, direction: str = "ASC") -> str:
    fetched = ", ".join(map(_fetched, key.columns))
    # With the table's name, for without it ORDER BY would find the fetched columns first.
    order = ", ".join(f"t.{quoted(column.name)} {direction}" for column in key.columns)
    return f"SELECT {fetched} {_from(table, key, condition)} ORDER BY {order}"


def _from(table: Table, key: LoadKey, condition: str) -> str:
    return f"FROM {quoted_table(table)} AS t FORCE INDEX ({quoted(key.name)}) WHERE {condition}"


def _fetched(column: KeyColumn) -> str:
    """The expression by which a column's value comes whole, whatever the connection converts."""
    name = quoted(column.name)
    match column.type:
        case "char" | "varchar" | "binary" | "varbinary":
            return f"HEX({name})"
        case "bit" | "enum" | "set":
            return f"CAST({name} AS UNSIGNED)"
        case "float" | "double":
            return f"{name} + 0e0"
        case "decimal" | "date" | "time" | "datetime" | "timestamp":
            return f"CAST({name} AS CHAR)"
        case _:
            return name


def _bound(key: LoadKey, row: tuple[object, ...]) -> Bound:
    return tuple(map(_literal, key.columns, row))


def _literal(column: KeyColumn, value: object) -> str:
    """A fetched value as the literal that compares with the column as the value does."""
    text = value.decode("ascii") if isinstance(value, bytes) else str(value)
    match column.type:
        case "char" | "varchar":
            return f"_{column.charset} X'{text}' COLLATE {column.collation}"
        case "binary" | "varbinary":
            return f"_binary X'{text}'"
        case "float" | "double":
            number = repr(float(text))
            # Without an exponent it would be a DECIMAL.
            return number if "e" in number else f"{number}e0"
        case "date" | "time" | "datetime" | "timestamp":
            return f"'{text}'"
        case "decimal":
            return text
        case _:
            assert column.type in INTEGER_TYPES | {"year", "bit", "enum", "set"}
            return str(int(text))
