"""SQL conditions for the rows between two bounds of a key, in forms that can use an index.

MySQL 5.7 uses no index for a row constructor, ``(a, b) > (x, y)``, so it is spelt out. No server
uses one to compare an ENUM or SET with ``<`` or ``>``: the numbers between the bounds are listed,
unless there are too many. A key that begins with a larger SET is read from its beginning for each
chunk: slow, but correct.

Bounds are literals (see `chunk_bounds.py`). Two that differ as texts may still be equal, as 'a' and
'A' are in most collations, so a difference of texts implies nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark_mysqlbinlog.checkpoints.snapshot_state import Bound
from pyspark_mysqlbinlog.connector.snapshot.chunks.keys import ChunkKey, KeyColumn
from pyspark_mysqlbinlog.names import quoted

__all__ = ["gaps_after", "range_condition", "upper_bound"]

# Numbers in one list: MySQL 5.7.9 to 5.7.11 allow the optimizer 1.5 MB for ranges, and it uses 230
# bytes for each number.
_MAX_LISTED_NUMBERS = 4096
# Numbers that are queried one by one, before they are queried in lists of as many.
_MAX_SINGLE_QUERIES = 64
_MAX_NUMBERS = 1 << 16


def range_condition(key: ChunkKey, after: Bound | None, upto: Bound | None) -> str:
    """Return the SQL condition for the rows after `after` up to and including `upto`; never empty.

    It names columns without their table.
    """
    conditions = []
    first = 0
    if after is not None and upto is not None:
        # The same text is the same value; the converse is not true.
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


def upper_bound(key: ChunkKey, upto: Bound) -> str:
    """Return an expression that tests whether a row is at or before a bound; uses no index.

    Its value is 0 or 1, for the list of a SELECT.
    """
    condition = ""
    for column, literal in zip(reversed(key.columns), reversed(upto), strict=True):
        if condition:
            before = _plainly(column, "<", literal)
            condition = f"({before} OR ({_equal(column, literal)} AND {condition}))"
        else:
            condition = _plainly(column, "<=", literal)
    return condition


def _beyond(
    columns: tuple[KeyColumn, ...], bound: Bound, operator: str, last: str, other: str | None
) -> str:
    """Return the condition beyond a bound on one side: ``(a > x OR (a = x AND (b > y OR …)))``.

    Parameters
    ----------
    operator : ``<`` or ``>``.
    last : the operator for the last column, which determines whether the bound is included.
    other : the bound on the other side of the first column, if there is one.
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
    """Compare a column with a literal, in the form that uses an index, if there is one."""
    numbers = _numbers_beyond(column, operator, literal, other)
    if numbers is not None and _size(numbers) <= _MAX_LISTED_NUMBERS:
        return _among(column, numbers) if numbers else "FALSE"
    return _plainly(column, operator, literal)


def _plainly(column: KeyColumn, operator: str, literal: str) -> str:
    name = quoted(column.name)
    if column.type == "set":
        name = f"CAST({name} AS UNSIGNED)"
    return f"{name} {operator} {literal}"


def _signed(number: int) -> str:
    """Return a SET's number as the server compares it: signed, although the order is unsigned."""
    return str(number - (1 << 64) if number >> 63 else number)


def _numbers_beyond(
    column: KeyColumn, operator: str, literal: str, other: str | None
) -> range | None:
    """Return the numbers of an ENUM or SET beyond one of them; None for other types."""
    if column.type == "enum":
        highest = column.label_count
    elif column.type == "set":
        highest = (1 << column.label_count) - 1
    else:
        return None
    number = int(literal)
    if operator == ">":
        return range(number + 1, (highest if other is None else int(other)) + 1)
    # Number 0 is the empty text that replaces an invalid label, and the SET without any label.
    return range(0 if other is None else int(other), number + (operator == "<="))


def _size(numbers: range) -> int:
    # Not len(), which fails for 2^64 numbers.
    return numbers.stop - numbers.start


def _among(column: KeyColumn, numbers: range) -> str:
    listed = ",".join(map(_signed, numbers))
    return f"{quoted(column.name)} IN ({listed})"


def gaps_after(key: ChunkKey, after: Bound | None) -> Iterator[tuple[str, Sequence[KeyColumn]]]:
    """Yield the rows after a bound, in order: conditions, and the columns that differ in each.

    Each is one interval of the index. The server overestimates a condition of several, and
    would rather read the index from its beginning (measured on MySQL 5.6 and 5.7: InnoDB's
    estimates end at half of the table for each). And it sorts instead of following the index if
    ORDER BY has an ENUM or SET that is the same in all rows.
    """
    if after is None:
        yield "TRUE", key.columns
        return
    for number in reversed(range(len(key.columns))):
        equal = [*map(_equal, key.columns[:number], after[:number])]
        column, literal = key.columns[number], after[number]
        numbers = _numbers_beyond(column, ">", literal, None)
        if numbers is not None and _size(numbers) <= _MAX_NUMBERS:
            for value in numbers[:_MAX_SINGLE_QUERIES]:
                yield " AND ".join([*equal, _equal(column, str(value))]), key.columns[number + 1 :]
            for start in range(_MAX_SINGLE_QUERIES, len(numbers), _MAX_SINGLE_QUERIES):
                some = _among(column, numbers[start : start + _MAX_SINGLE_QUERIES])
                yield " AND ".join([*equal, some]), key.columns[number:]
        else:
            beyond = _plainly(column, ">", literal)
            yield " AND ".join([*equal, beyond]), key.columns[number:]
