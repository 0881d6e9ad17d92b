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
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from pyspark_mysqlbinlog.errors import OptionError
from pyspark_mysqlbinlog.names import SYSTEM_DATABASES, Table, fold, folding, table_folding

__all__ = ["ColumnFilter", "Part", "Pattern", "TableFilter"]

# Answers kept. A server with more tables than this costs a look-up now and then, not memory.
_REMEMBERED = 10_000


class _Form(NamedTuple):
    """What the patterns of an option look like."""

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
    """An option's text, and how it is to be read."""

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

    text : as the option has it.
    parts : of a name; none of a regex.
    database_matches : the predicate of the first part; none of a regex.
    """

    matches: Callable[..., bool]
    literal: tuple[str, ...] | None
    text: str
    parts: tuple[Part, ...] = ()
    database_matches: Callable[[str], bool] = lambda _: False


@dataclass(frozen=True, slots=True)
class TableFilter:
    """Made by `parse`; picklable; equal when the options are equal.

    Attributes
    ----------
    included, excluded : the patterns of the two options; none where they are not given.
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
        included = _patterns("tables", tables, _TABLES, case_sensitive)
        excluded = _patterns("excludeTables", exclude, _TABLES, case_sensitive)
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
        if _is_system(database, self.case_sensitive):
            return False
        if any(pattern.matches(database, table) for pattern in self.excluded):
            return False
        return self.tables is None or any(
            pattern.matches(database, table) for pattern in self.included
        )

    @property
    def literals(self) -> tuple[tuple[str, str], ...]:
        """(database, table) that are named without a glob or regex, and not excluded.

        In the order of the option; these must exist.
        """
        by_name: dict[Table, Table] = {}
        folded = table_folding(self.case_sensitive)
        for database, table in _literals(self.included):
            if self.wants(database, table):
                name = (database, table)
                by_name.setdefault(folded(name), name)
        return tuple(by_name.values())

    @property
    def is_literal(self) -> bool:
        """Whether every pattern of `tables` names one table: no later table can be wanted."""
        return bool(self.included) and all(p.literal is not None for p in self.included)

    @property
    def nests(self) -> bool:
        """Whether a struct has its tables by database, ``shop.orders.id``: there are several."""
        return len(self.literals) > 1

    def __reduce__(self) -> tuple[object, ...]:
        # The predicates are closures: a copy parses again.
        return TableFilter.parse, (self.tables, self.exclude, self.case_sensitive)


@dataclass(frozen=True, slots=True)
class ColumnFilter:
    """Which columns are left out. Made by `parse`; picklable; equal when the options are equal."""

    exclude: str | None
    case_sensitive: bool
    _excluded: tuple[Pattern, ...] = field(repr=False, compare=False)

    @classmethod
    def parse(cls, exclude: str | None = None, case_sensitive: bool = True) -> Self:
        """Read the option `excludeColumns`; None excludes nothing.

        Names of columns are the same in any case, whatever the server does with those of tables.

        Raises
        ------
        OptionError : a pattern is none of ``database.table.column``; it names the pattern.
        """
        excluded = _patterns("excludeColumns", exclude, _COLUMNS, case_sensitive)
        return cls(exclude, case_sensitive, excluded)

    def excludes(self, database: str, table: str, column: str) -> bool:
        """Whether a column is left out. Asked once per column of a plan, so nothing is kept."""
        return any(pattern.matches(database, table, column) for pattern in self._excluded)

    @property
    def literals(self) -> tuple[tuple[str, str, str], ...]:
        """(database, table, column) that are named without a glob or regex: they must exist."""
        return tuple(
            (database, table, column) for database, table, column in _literals(self._excluded)
        )

    def __reduce__(self) -> tuple[object, ...]:
        return ColumnFilter.parse, (self.exclude, self.case_sensitive)


def _is_system(database: str, case_sensitive: bool) -> bool:
    return folding(case_sensitive)(database) in SYSTEM_DATABASES


def _literals(patterns: tuple[Pattern, ...]) -> Iterator[tuple[str, ...]]:
    return (pattern.literal for pattern in patterns if pattern.literal is not None)


def _patterns(
    option: str, text: str | None, form: _Form, case_sensitive: bool
) -> tuple[Pattern, ...]:
    """The patterns of an option; none when it is not given."""
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
            raise _wrong(given, f"a comma was expected before {text[pos:]!r}")
        pos += 1


def _pattern(given: _List, pos: int) -> tuple[Pattern, int]:
    """The pattern that begins at `pos`, and where it ends."""
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
        raise _wrong(given, "a name that contains a dot needs backquotes")
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
        flags = re.DOTALL if case_sensitive else re.DOTALL | re.IGNORECASE
        expression = re.compile(_glob_to_regex(part.text), flags)
        return lambda name: expression.fullmatch(name) is not None
    if case_sensitive:
        return lambda name: name == part.text
    folded = fold(part.text)
    return lambda name: fold(name) == folded


def _glob_to_regex(glob: str) -> str:
    return "".join({"*": ".*", "?": "."}.get(char, re.escape(char)) for char in glob)


def _expression(given: _List, pos: int) -> tuple[re.Pattern[str], int]:
    """The regex that begins at `pos`, and where it ends."""
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
    raise _wrong(given, f"/{source}/ is no regex: {problem}")


# What ends or can't be in a plain part: a name with one of these needs backquotes.
_PLAIN = re.compile(r"[^\s,.`/]+")


def _part(given: _List, pos: int) -> tuple[Part, int]:
    """One part of a name; in backquotes, where two of them stand for one, all is literal."""
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
        raise _wrong(given, f"a name was expected before {rest!r}" if rest else "a name is missing")
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
