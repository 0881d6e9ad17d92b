"""Conditions bound to a table: each literal becomes a value that its column's codec reads.

=======================================  ===========================================================
integers, DECIMAL, YEAR, BIT             numbers, exactly
CHAR, VARCHAR, texts, ENUM, SET          texts, character by character (as with ``BINARY`` in SQL):
                                         case, accents and trailing spaces count. ENUM and SET by
                                         `=`, `<>`, `<=>` and IN only
DATE, DATETIME, TIMESTAMP                ``'2026-11-20'``, ``'2026-11-20 10:00:00.5'``; a TIMESTAMP
                                         in UTC
BINARY, VARBINARY, BLOBs                 ``X'4142'``; a BINARY with all of its bytes
FLOAT, DOUBLE, TIME, JSON, spatial       IS NULL only
=======================================  ===========================================================

Any other literal is an error, where MySQL would convert one of the two.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pyspark_mysqlbinlog.decoder.transforms.conditions import (
    And,
    Comparison,
    Condition,
    IsNull,
    IsTrue,
    Literal,
    Not,
    Operator,
    Or,
)
from pyspark_mysqlbinlog.decoder.values.days import MICROS_PER_DAY
from pyspark_mysqlbinlog.errors import OptionError
from pyspark_mysqlbinlog.names import fold
from pyspark_mysqlbinlog.tables import INTEGER_TYPES, ColumnSchema, TableSchema

__all__ = ["BoundCondition", "bind"]

# The values of the condition's columns -> true, false or unknown.
Test = Callable[[Mapping[str, Any]], bool | None]
Prepare = Callable[[Any], Any]

_NUMBERS = INTEGER_TYPES | {"decimal", "year", "bit"}
_TEXTS = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
_LABELS = frozenset({"enum", "set"})
_BYTES = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_TIMES = frozenset({"date", "datetime", "timestamp"})
_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?)?", re.ASCII)
_ZERO_TIMESTAMP = -1
_COMPARE: dict[Operator, Callable[[Any, Any], bool]] = {
    "=": lambda value, literal: value == literal,
    "<>": lambda value, literal: value != literal,
    "<": lambda value, literal: value < literal,
    "<=": lambda value, literal: value <= literal,
    ">": lambda value, literal: value > literal,
    ">=": lambda value, literal: value >= literal,
}


@dataclass(frozen=True, slots=True)
class BoundCondition:
    """A condition of a table.

    Attributes
    ----------
    columns : name -> the value of its codec, as the test expects it.
    test : values by name -> whether a row with them meets the condition; None if unknown.
    """

    columns: Mapping[str, Prepare]
    test: Test


def bind(condition: Condition, schema: TableSchema) -> BoundCondition:
    """Bind a condition to a table's columns.

    Raises
    ------
    OptionError : a column does not exist, or cannot be compared in this way; the error names the
        column and its table.
    """
    columns: dict[str, Prepare] = {}
    test = _Binding(schema, columns).test(condition)
    return BoundCondition(columns, test)


class _Binding:
    def __init__(self, schema: TableSchema, columns: dict[str, Prepare]) -> None:
        self._schema = schema
        self._by_name = {fold(column.name): column for column in schema.columns}
        self._columns = columns

    def test(self, condition: Condition) -> Test:
        match condition:
            case Or(parts):
                return _any_of([self.test(part) for part in parts])
            case And(parts):
                return _all_of([self.test(part) for part in parts])
            case Not(part):
                return _negated(self.test(part))
            case IsNull(name):
                column = self._column(name)
                return lambda values: values[column.name] is None
            case IsTrue(name):
                return self._comparison(Comparison(name, "<>", Decimal(0)), "needs a comparison")
            case Comparison():
                return self._comparison(condition)

    def _column(self, name: str) -> ColumnSchema:
        column = self._by_name.get(fold(name))
        if column is None:
            raise self._wrong(
                f"the table has no column `{name}`; check the spelling, or whether it was renamed"
                " or dropped: then set another condition, and acceptChangedTransforms=true"
            )
        if column.before_image_unreliable:
            raise self._wrong(
                f"column `{name}` is a generated {column.type}, or may be one, whose old value the"
                " binlog may not contain; set a condition on another column"
            )
        self._columns[column.name] = _preparation(column)
        return column

    def _comparison(self, comparison: Comparison, expects: str = "") -> Test:
        column, operator = self._column(comparison.column), comparison.operator
        name = column.name
        if column.type in _LABELS and operator not in {"=", "<>", "<=>"}:
            raise self._wrong(
                f"column `{name}` is an {column.type}, which is compared by = and <> only"
            )
        literal = self._value(column, comparison.literal, expects)
        if operator == "<=>":
            return lambda values: bool(values[name] == literal)
        if literal is None:
            return lambda _: None
        compare = _COMPARE[operator]

        def test(values: Mapping[str, Any]) -> bool | None:
            value = values[name]
            return None if value is None else compare(value, literal)

        return test

    def _value(self, column: ColumnSchema, literal: Literal, expects: str) -> Any:
        """Return a literal as a value of a column."""
        if literal is None:
            return None
        kind = column.type
        if kind in _NUMBERS:
            if isinstance(literal, Decimal):
                return literal
            expects = expects or "a number"
        elif kind in _TEXTS | _LABELS:
            if isinstance(literal, str):
                return literal
            expects = expects or "a text"
        elif kind in _BYTES:
            if isinstance(literal, bytes):
                return literal
            expects = expects or "X'…'"
        elif kind in _TIMES:
            value = _time(kind, literal) if isinstance(literal, str) else None
            if value is not None:
                return value
            expects = expects or (
                "'2026-11-20'" if kind == "date" else "'2026-11-20 10:00:00', or a date alone"
            )
        else:
            expects = "IS NULL or IS NOT NULL only"
        if expects.startswith("needs"):
            raise self._wrong(f"column `{column.name}` ({kind}) {expects}")
        raise self._wrong(f"column `{column.name}` is a {kind}: expected {expects}")

    def _wrong(self, problem: str) -> OptionError:
        return OptionError(f"option rowFilter: {problem}", table=self._schema.full_name)


def _preparation(column: ColumnSchema) -> Prepare:
    if column.type == "decimal":
        return Decimal
    if column.type == "timestamp":
        return lambda micros: _ZERO_TIMESTAMP if micros is None else micros
    return _same


def _same(value: Any) -> Any:
    return value


def _time(kind: str, text: str) -> Any:
    """Return a literal as the codec's value of DATE, DATETIME or TIMESTAMP; None if it is none."""
    found = _TIME.fullmatch(text.strip())
    if found is None:
        return None
    year, month, day = int(found[1]), int(found[2]), int(found[3])
    hour, minute, second = (int(found[at] or 0) for at in (4, 5, 6))
    if month > 12 or day > 31 or hour > 23 or minute > 59 or second > 59:
        return None
    ymd = year * 10_000 + month * 100 + day
    micros = ((hour * 60 + minute) * 60 + second) * 1_000_000 + int((found[7] or "").ljust(6, "0"))
    if kind == "date":
        return ymd if found[4] is None else None
    if kind == "datetime":
        return ymd, micros
    try:
        days = (dt.date(year, month, day) - dt.date(1970, 1, 1)).days
    except ValueError:
        return None
    return days * MICROS_PER_DAY + micros


def _any_of(tests: list[Test]) -> Test:
    def test(values: Mapping[str, Any]) -> bool | None:
        found: bool | None = False
        for each in tests:
            result = each(values)
            if result:
                return True
            if result is None:
                found = None
        return found

    return test


def _all_of(tests: list[Test]) -> Test:
    def test(values: Mapping[str, Any]) -> bool | None:
        found: bool | None = True
        for each in tests:
            result = each(values)
            if result is False:
                return False
            if result is None:
                found = None
        return found

    return test


def _negated(test: Test) -> Test:
    def negated(values: Mapping[str, Any]) -> bool | None:
        result = test(values)
        return None if result is None else not result

    return negated
