"""Which tables a query wants, and which of their columns.

The options `tables` and `excludeTables` are lists of patterns, separated by commas outside ``/…/``
and backquotes. A pattern is ``database.table``, either part plain, with the globs ``*`` and ``?``,
or literal in backquotes; or ``/regex/``, which the whole of ``database.table`` must match. An
excluded table is never wanted, nor is one of a system schema. All patterns become predicates once;
the answer for each table is remembered, since the tail asks again for each of its events.

`excludeColumns` is a list of the same kind, of ``database.table.column``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple, Self

from pyspark_mysqlbinlog.errors import OptionError
from pyspark_mysqlbinlog.tables import SYSTEM_DATABASES

__all__ = ["ColumnFilter", "TableFilter"]

# Answers kept. A server with more tables than this costs a look-up now and then, not memory.
_REMEMBERED = 10_000
_COLUMNS_OPTION = "excludeColumns"

_FORMS = "expected database.table, `database`.`table`, a glob such as shop.* or a /regex/"
_COLUMN_FORMS = "expected database.table.column, any of them a glob or in backquotes, or a /regex/"


class _Part(NamedTuple):
    """One half of ``database.table``."""

    text: str
    is_glob: bool


class _Pattern(NamedTuple):
    """One pattern: a predicate, and the table it names if it names exactly one."""

    matches: Callable[[str, str], bool]
    literal: tuple[str, str] | None


class _ColumnPattern(NamedTuple):
    """One pattern of `excludeColumns`; see _Pattern."""

    matches: Callable[[str, str, str], bool]
    literal: tuple[str, str, str] | None


class TableFilter:
    """Made by `parse`; picklable; equal when the options are equal."""

    def __init__(
        self,
        tables: str | None,
        exclude: str | None,
        case_sensitive: bool,
        included: tuple[_Pattern, ...],
        excluded: tuple[_Pattern, ...],
    ) -> None:
        self._options = (tables, exclude, case_sensitive)
        self._included = included
        self._excluded = excluded
        self._answers: dict[tuple[str, str], bool] = {}

    @classmethod
    def parse(
        cls, tables: str | None = None, exclude: str | None = None, case_sensitive: bool = True
    ) -> Self:
        """Read the two options.

        Parameters
        ----------
        tables : None wants every table that is not a system schema's.
        exclude : None excludes nothing.
        case_sensitive : whether the server tells ``Orders`` from ``orders``: its
            lower_case_table_names is 0.

        Raises
        ------
        OptionError : a pattern is not one of the forms above; it names the option and the pattern.
        """
        included = () if tables is None else tuple(_patterns("tables", tables, case_sensitive))
        excluded = (
            () if exclude is None else tuple(_patterns("excludeTables", exclude, case_sensitive))
        )
        for pattern in included:
            if pattern.literal is not None and _is_system(pattern.literal[0], case_sensitive):
                raise OptionError(
                    f"option tables: {'.'.join(pattern.literal)} is in a system schema, whose"
                    " changes are never read; leave it out"
                )
        return cls(tables, exclude, case_sensitive, included, excluded)

    def wants(self, database: str, table: str) -> bool:
        """Whether changes of this table are asked for."""
        key = (database, table)
        answer = self._answers.get(key)
        if answer is None:
            if len(self._answers) >= _REMEMBERED:
                self._answers.clear()
            answer = self._answers[key] = self._decide(database, table)
        return answer

    def _decide(self, database: str, table: str) -> bool:
        tables, _, case_sensitive = self._options
        if _is_system(database, case_sensitive):
            return False
        if any(pattern.matches(database, table) for pattern in self._excluded):
            return False
        return tables is None or any(pattern.matches(database, table) for pattern in self._included)

    @property
    def literals(self) -> tuple[tuple[str, str], ...]:
        """(database, table) that are named without a glob or regex, and not excluded.

        In the order of the option; these must exist.
        """
        named = (pattern.literal for pattern in self._included if pattern.literal is not None)
        case_sensitive = self._options[2]
        by_name: dict[tuple[str, ...], tuple[str, str]] = {}
        for literal in named:
            if self.wants(*literal):
                name = literal if case_sensitive else tuple(part.lower() for part in literal)
                by_name.setdefault(name, literal)
        return tuple(by_name.values())

    @property
    def is_literal(self) -> bool:
        """Whether every pattern of `tables` names one table: no later table can be wanted."""
        return bool(self._included) and all(p.literal is not None for p in self._included)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TableFilter) and self._options == other._options

    def __hash__(self) -> int:
        return hash(self._options)

    def __repr__(self) -> str:
        tables, exclude, case_sensitive = self._options
        return (
            f"TableFilter.parse(tables={tables!r}, exclude={exclude!r},"
            f" case_sensitive={case_sensitive})"
        )

    def __reduce__(self) -> tuple[object, ...]:
        # The predicates are closures: a copy parses again.
        return (type(self).parse, self._options)


class ColumnFilter:
    """Which columns are left out. Made by `parse`; picklable; equal when the options are equal."""

    def __init__(
        self, exclude: str | None, case_sensitive: bool, excluded: tuple[_ColumnPattern, ...]
    ) -> None:
        self._options = (exclude, case_sensitive)
        self._excluded = excluded

    @classmethod
    def parse(cls, exclude: str | None = None, case_sensitive: bool = True) -> Self:
        """Read the option `excludeColumns`; None excludes nothing.

        Names of columns are the same in any case, whatever the server does with those of tables.

        Raises
        ------
        OptionError : a pattern is none of ``database.table.column``; it names the pattern.
        """
        excluded = () if exclude is None else tuple(_column_patterns(exclude, case_sensitive))
        return cls(exclude, case_sensitive, excluded)

    def excludes(self, database: str, table: str, column: str) -> bool:
        """Whether a column is left out. Asked once per column of a plan, so nothing is kept."""
        return any(pattern.matches(database, table, column) for pattern in self._excluded)

    @property
    def literals(self) -> tuple[tuple[str, str, str], ...]:
        """(database, table, column) that are named without a glob or regex: they must exist."""
        return tuple(p.literal for p in self._excluded if p.literal is not None)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ColumnFilter) and self._options == other._options

    def __hash__(self) -> int:
        return hash(self._options)

    def __repr__(self) -> str:
        exclude, case_sensitive = self._options
        return f"ColumnFilter.parse({exclude!r}, case_sensitive={case_sensitive})"

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self).parse, self._options)


def _is_system(database: str, case_sensitive: bool) -> bool:
    return (database if case_sensitive else database.lower()) in SYSTEM_DATABASES


def _patterns(option: str, text: str, case_sensitive: bool) -> Iterator[_Pattern]:
    """The patterns of one option's text."""
    pos = 0
    while True:
        pattern, pos = _pattern(option, text, _skip_spaces(text, pos), case_sensitive)
        yield pattern
        pos = _skip_spaces(text, pos)
        if pos == len(text):
            return
        if text[pos] != ",":
            raise _wrong(option, f"a comma was expected before {text[pos:]!r}", text)
        pos += 1


def _pattern(option: str, text: str, pos: int, case_sensitive: bool) -> tuple[_Pattern, int]:
    if text[pos : pos + 1] == "/":
        return _regex(option, text, pos, case_sensitive)
    database, pos = _part(option, text, pos)
    if text[pos : pos + 1] != ".":
        raise _wrong(option, f"{database.text!r} has no database and table", text)
    table, pos = _part(option, text, pos + 1)
    if text[pos : pos + 1] == ".":
        raise _wrong(option, "a name that contains a dot needs backquotes", text)
    return _name(database, table, case_sensitive), pos


def _column_patterns(text: str, case_sensitive: bool) -> Iterator[_ColumnPattern]:
    """The patterns of excludeColumns."""
    pos = 0
    while True:
        pattern, pos = _column_pattern(text, _skip_spaces(text, pos), case_sensitive)
        yield pattern
        pos = _skip_spaces(text, pos)
        if pos == len(text):
            return
        if text[pos] != ",":
            raise _wrong(_COLUMNS_OPTION, f"a comma was expected before {text[pos:]!r}", text)
        pos += 1


def _column_pattern(text: str, pos: int, case_sensitive: bool) -> tuple[_ColumnPattern, int]:
    option = _COLUMNS_OPTION
    if text[pos : pos + 1] == "/":
        expression, pos = _expression(option, text, pos, case_sensitive)
        return _ColumnPattern(
            lambda db, tb, col: expression.fullmatch(f"{db}.{tb}.{col}") is not None, None
        ), pos
    parts = []
    for at in range(3):
        if at and text[pos : pos + 1] != ".":
            raise _wrong(option, "a name needs database, table and column", text)
        part, pos = _part(option, text, pos + (at > 0))
        parts.append(part)
    if text[pos : pos + 1] == ".":
        raise _wrong(option, "a name that contains a dot needs backquotes", text)
    database, table, column = parts
    of_table = _name(database, table, case_sensitive).matches
    expression = re.compile(_glob_to_regex(column), re.DOTALL | re.IGNORECASE)
    literal = None if any(p.is_glob for p in parts) else (database.text, table.text, column.text)
    return _ColumnPattern(
        lambda db, tb, col: of_table(db, tb) and expression.fullmatch(col) is not None, literal
    ), pos


def _name(database: _Part, table: _Part, case_sensitive: bool) -> _Pattern:
    if not database.is_glob and not table.is_glob:
        literal = (database.text, table.text)
        if case_sensitive:
            return _Pattern(lambda db, tb: (db, tb) == literal, literal)
        folded = (database.text.lower(), table.text.lower())
        return _Pattern(lambda db, tb: (db.lower(), tb.lower()) == folded, literal)
    flags = re.DOTALL if case_sensitive else re.DOTALL | re.IGNORECASE
    database_expression = re.compile(_glob_to_regex(database), flags)
    table_expression = re.compile(_glob_to_regex(table), flags)
    return _Pattern(
        lambda db, tb: (
            database_expression.fullmatch(db) is not None
            and table_expression.fullmatch(tb) is not None
        ),
        None,
    )


def _glob_to_regex(part: _Part) -> str:
    if not part.is_glob:
        return re.escape(part.text)
    return "".join({"*": ".*", "?": "."}.get(char, re.escape(char)) for char in part.text)


def _regex(option: str, text: str, pos: int, case_sensitive: bool) -> tuple[_Pattern, int]:
    expression, pos = _expression(option, text, pos, case_sensitive)
    return _Pattern(lambda db, tb: expression.fullmatch(f"{db}.{tb}") is not None, None), pos


def _expression(
    option: str, text: str, pos: int, case_sensitive: bool
) -> tuple[re.Pattern[str], int]:
    """The regex that begins at `pos`, and where it ends."""
    end = pos + 1
    while end < len(text) and text[end] != "/":
        end += 2 if text[end] == "\\" else 1
    if end >= len(text):
        raise _wrong(option, f"{text[pos:]!r} has no closing /", text)
    source = text[pos + 1 : end]
    if not source:
        raise _wrong(option, "the regex // is empty", text)
    try:
        return re.compile(source, 0 if case_sensitive else re.IGNORECASE), end + 1
    except re.error as error:
        problem = str(error)
    raise _wrong(option, f"/{source}/ is no regex: {problem}", text)


# What ends or can't be in a plain part: a name with one of these needs backquotes.
_PLAIN = re.compile(r"[^\s,.`/]+")


def _part(option: str, text: str, pos: int) -> tuple[_Part, int]:
    """One half of a name; in backquotes, where two of them stand for one, all is literal."""
    if text[pos : pos + 1] == "`":
        end = pos + 1
        while True:
            end = text.find("`", end)
            if end < 0:
                raise _wrong(option, f"{text[pos:]!r} has no closing backquote", text)
            if text[end + 1 : end + 2] != "`":
                break
            end += 2
        name = text[pos + 1 : end].replace("``", "`")
        if not name:
            raise _wrong(option, "the name `` is empty", text)
        return _Part(name, False), end + 1
    found = _PLAIN.match(text, pos)
    if found is None:
        rest = text[pos:]
        raise _wrong(
            option, f"a name was expected before {rest!r}" if rest else "a name is missing", text
        )
    return _Part(found[0], "*" in found[0] or "?" in found[0]), found.end()


def _skip_spaces(text: str, pos: int) -> int:
    while pos < len(text) and text[pos].isspace():
        pos += 1
    return pos


def _wrong(option: str, problem: str, text: str) -> OptionError:
    forms = _COLUMN_FORMS if option == _COLUMNS_OPTION else _FORMS
    return OptionError(f"option {option}: {problem}; {forms}, separated by commas; found {text!r}")
