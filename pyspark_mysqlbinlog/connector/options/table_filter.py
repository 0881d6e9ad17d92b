"""Filters of the tables that a query captures, and of their columns.

The options `tables` and `excludeTables` are lists of patterns, separated by commas outside ``/…/``
and backquotes. A pattern is ``database.table``, either part plain, with the globs ``*`` and ``?``,
or literal in backquotes; or ``/regex/``, which must match the whole of ``database.table``. Excluded
tables and tables of system schemas are never captured. All patterns become predicates once. The
answer for each table is cached, because the tail asks for each event.

`excludeColumns` is a list of the same kind, of ``database.table.column``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, Self

from pyspark_mysqlbinlog.errors import OptionError
from pyspark_mysqlbinlog.names import SYSTEM_DATABASES, Table, fold, folding, table_folding

__all__ = ["ColumnFilter", "Part", "Pattern", "TableFilter"]

# Cached answers. A server with more tables costs an occasional evaluation, not memory.
_MAX_CACHED_ANSWERS = 10_000


class _Form(NamedTuple):
    """The form of an option's patterns."""

    parts: tuple[str, ...]
    expected: str


_TABLES = _Form(
    ("database", "table"),
    "expected database.table, `database`.`table`, a glob such as shop.* or a /regex/",
)
_COLUMNS = _Form(
    ("database", "table", "column"),
    "expected database.table.column, any of them a glob or in backquotes, or a /regex/",
)


class _List(NamedTuple):
    """An option's text, and how to parse it."""

    option: str
    text: str
    form: _Form
    case_sensitive: bool


class Part(NamedTuple):
    """One part of a name."""

    text: str
    is_glob: bool


class Pattern(NamedTuple):
    """One pattern: a predicate over a name's parts, and the name if it is exactly one.

    text : as given in the option.
    parts : of a name; empty for a regex.
    database_matches : the predicate of the first part; None for a regex.
    """

    matches: Callable[..., bool]
    literal: tuple[str, ...] | None
    text: str
    parts: tuple[Part, ...] = ()
    database_matches: Callable[[str], bool] = lambda _: False


@dataclass(frozen=True, slots=True)
class TableFilter:
    """A filter of tables, made by `parse`; picklable, and equal if the options are equal.

    Attributes
    ----------
    included, excluded : the patterns of the two options; empty if not given.
    """

    tables: str | None
    exclude: str | None
    case_sensitive: bool
    included: tuple[Pattern, ...] = field(repr=False, compare=False)
    excluded: tuple[Pattern, ...] = field(repr=False, compare=False)
    _answers: dict[tuple[str, str], bool] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def parse(
        cls, tables: str | None = None, exclude: str | None = None, case_sensitive: bool = True
    ) -> Self:
        """Parse the two options.

        Parameters
        ----------
        tables : None captures every table outside the system schemas.
        exclude : None excludes nothing.
        case_sensitive : whether the server distinguishes ``Orders`` from ``orders``: its
            lower_case_table_names is 0.

        Raises
        ------
        OptionError : a pattern has none of the forms above; it names the option and the pattern.
        """
        included = _patterns("tables", tables, _TABLES, case_sensitive)
        excluded = _patterns("excludeTables", exclude, _TABLES, case_sensitive)
        for pattern in included:
            if pattern.literal is not None and _is_system(pattern.literal[0], case_sensitive):
                raise OptionError(
                    f"option tables: {'.'.join(pattern.literal)} is in a system schema, whose"
                    " changes are never read; remove it"
                )
        return cls(tables, exclude, case_sensitive, included, excluded)

    def captures(self, database: str, table: str) -> bool:
        """Whether changes of this table are captured."""
        key = (database, table)
        answer = self._answers.get(key)
        if answer is None:
            if len(self._answers) >= _MAX_CACHED_ANSWERS:
                self._answers.clear()
            answer = self._answers[key] = self._decide(database, table)
        return answer

    def may_capture_in(self, database: str) -> bool:
        """Whether a table of this database may be captured."""
        return not _is_system(database, self.case_sensitive) and (
            self.tables is None
            or any(not each.parts or each.database_matches(database) for each in self.included)
        )

    def _decide(self, database: str, table: str) -> bool:
        if _is_system(database, self.case_sensitive):
            return False
        if any(pattern.matches(database, table) for pattern in self.excluded):
            return False
        return self.tables is None or any(
            pattern.matches(database, table) for pattern in self.included
        )

    @property
    def literals(self) -> tuple[tuple[str, str], ...]:
        """Return the (database, table) named without a glob or regex, and not excluded.

        In the order of the option; these must exist.
        """
        by_name: dict[Table, Table] = {}
        folded = table_folding(self.case_sensitive)
        for database, table in _literals(self.included):
            if self.captures(database, table):
                name = (database, table)
                by_name.setdefault(folded(name), name)
        return tuple(by_name.values())

    @property
    def is_literal(self) -> bool:
        """Whether every pattern of `tables` names one table: no later table can be captured."""
        return bool(self.included) and all(p.literal is not None for p in self.included)

    @property
    def nests(self) -> bool:
        """Whether a struct groups its tables by database, ``shop.orders.id``: there are several."""
        return len(self.literals) > 1

    def __reduce__(self) -> tuple[object, ...]:
        # The predicates are closures: a copy is parsed again.
        return TableFilter.parse, (self.tables, self.exclude, self.case_sensitive)


@dataclass(frozen=True, slots=True)
class ColumnFilter:
    """The columns that are left out. Made by `parse`; picklable; equal if the options are equal."""

    exclude: str | None
    case_sensitive: bool
    option: str
    _excluded: tuple[Pattern, ...] = field(repr=False, compare=False)

    @classmethod
    def parse(
        cls,
        exclude: str | None = None,
        case_sensitive: bool = True,
        *,
        option: str = "excludeColumns",
    ) -> Self:
        """Parse `excludeColumns`, or another option that lists columns; None excludes nothing.

        Column names are case-insensitive, independent of the server's setting for tables.

        Raises
        ------
        OptionError : a pattern is not ``database.table.column``; it names the pattern.
        """
        excluded = _patterns(option, exclude, _COLUMNS, case_sensitive)
        return cls(exclude, case_sensitive, option, excluded)

    def excludes(self, database: str, table: str, column: str) -> bool:
        """Whether a column is left out. Called once per column of a plan, so nothing is cached."""
        return any(pattern.matches(database, table, column) for pattern in self._excluded)

    @property
    def literals(self) -> tuple[tuple[str, str, str], ...]:
        """Return the (database, table, column) named without a glob or regex: they must exist."""
        return tuple(
            (database, table, column) for database, table, column in _literals(self._excluded)
        )

    def __reduce__(self) -> tuple[object, ...]:
        return partial(ColumnFilter.parse, option=self.option), (self.exclude, self.case_sensitive)


def _is_system(database: str, case_sensitive: bool) -> bool:
    return folding(case_sensitive)(database) in SYSTEM_DATABASES


def _literals(patterns: tuple[Pattern, ...]) -> Iterator[tuple[str, ...]]:
    return (pattern.literal for pattern in patterns if pattern.literal is not None)


def _patterns(
    option: str, text: str | None, form: _Form, case_sensitive: bool
) -> tuple[Pattern, ...]:
    """Parse the patterns of an option; none if it is not given."""
    if text is None:
        return ()
    return tuple(_parsed(_List(option, text, form, case_sensitive)))


def _parsed(given: _List) -> Iterator[Pattern]:
    text = given.text
    pos = 0
    while True:
        pattern, pos = _pattern(given, _skip_spaces(text, pos))
        yield pattern
        pos = _skip_spaces(text, pos)
        if pos == len(text):
            return
        if text[pos] != ",":
            raise _wrong(given, f"expected a comma before {text[pos:]!r}")
        pos += 1


def _pattern(given: _List, pos: int) -> tuple[Pattern, int]:
    """Parse the pattern that begins at `pos`; returns it and its end."""
    begin = pos
    if given.text[pos : pos + 1] == "/":
        expression, pos = _expression(given, pos)
        text = given.text[begin:pos]
        return Pattern(
            lambda *name: expression.fullmatch(".".join(name)) is not None, None, text
        ), pos
    parts: list[Part] = []
    for _ in given.form.parts:
        if parts:
            if given.text[pos : pos + 1] != ".":
                found = ".".join(part.text for part in parts)
                raise _wrong(given, f"{found!r} is only a part of {'.'.join(given.form.parts)}")
            pos += 1
        part, pos = _part(given, pos)
        parts.append(part)
    if given.text[pos : pos + 1] == ".":
        raise _wrong(given, "a name that contains a dot requires backquotes")
    return _name(parts, given, given.text[begin:pos]), pos


def _name(parts: list[Part], given: _List, text: str) -> Pattern:
    tests = [
        _test(part, given.case_sensitive and kind != "column")
        for part, kind in zip(parts, given.form.parts, strict=True)
    ]
    is_literal = not any(part.is_glob for part in parts)
    return Pattern(
        lambda *name: all(test(text) for test, text in zip(tests, name, strict=True)),
        tuple(part.text for part in parts) if is_literal else None,
        text,
        tuple(parts),
        tests[0],
    )


def _test(part: Part, case_sensitive: bool) -> Callable[[str], bool]:
    if part.is_glob:
        # Not IGNORECASE, by which `i` also matches `ı`, and `s` matches `ſ`.
        folded = folding(case_sensitive)
        expression = re.compile(_glob_to_regex(folded(part.text)), re.DOTALL)
        return lambda name: expression.fullmatch(folded(name)) is not None
    if case_sensitive:
        return lambda name: name == part.text
    text = fold(part.text)
    return lambda name: fold(name) == text


def _glob_to_regex(glob: str) -> str:
    return "".join({"*": ".*", "?": "."}.get(char, re.escape(char)) for char in glob)


def _expression(given: _List, pos: int) -> tuple[re.Pattern[str], int]:
    """Parse the regex that begins at `pos`; returns it and its end."""
    text = given.text
    end = pos + 1
    while end < len(text) and text[end] != "/":
        end += 2 if text[end] == "\\" else 1
    if end >= len(text):
        raise _wrong(given, f"{text[pos:]!r} has no closing /")
    source = text[pos + 1 : end]
    if not source:
        raise _wrong(given, "the regex // is empty")
    try:
        return re.compile(source, 0 if given.case_sensitive else re.IGNORECASE), end + 1
    except re.error as error:
        problem = str(error)
    raise _wrong(given, f"/{source}/ is not a valid regex: {problem}")


# A plain part can't contain these: a name with one of them needs backquotes.
_PLAIN = re.compile(r"[^\s,.`/]+")


def _part(given: _List, pos: int) -> tuple[Part, int]:
    """Parse one part of a name; in backquotes everything is literal, and two are one backquote."""
    text = given.text
    if text[pos : pos + 1] == "`":
        end = pos + 1
        while True:
            end = text.find("`", end)
            if end < 0:
                raise _wrong(given, f"{text[pos:]!r} has no closing backquote")
            if text[end + 1 : end + 2] != "`":
                break
            end += 2
        name = text[pos + 1 : end].replace("``", "`")
        if not name:
            raise _wrong(given, "the name `` is empty")
        return Part(name, False), end + 1
    found = _PLAIN.match(text, pos)
    if found is None:
        rest = text[pos:]
        raise _wrong(given, f"expected a name before {rest!r}" if rest else "a name is missing")
    return Part(found[0], "*" in found[0] or "?" in found[0]), found.end()


def _skip_spaces(text: str, pos: int) -> int:
    while pos < len(text) and text[pos].isspace():
        pos += 1
    return pos


def _wrong(given: _List, problem: str) -> OptionError:
    return OptionError(
        f"option {given.option}: {problem}; {given.form.expected}, separated by commas; found"
        f" {given.text!r}"
    )
