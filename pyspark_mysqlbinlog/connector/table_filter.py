"""Which tables a query wants.

The options `tables` and `excludeTables` are lists of patterns, separated by commas outside ``/…/``
and backquotes. A pattern is ``database.table``, either part plain, with the globs ``*`` and ``?``,
or literal in backquotes; or ``/regex/``, which the whole of ``database.table`` must match. An
excluded table is never wanted, nor is one of a system schema. All patterns become predicates once;
the answer for each table is remembered, since the tail asks again for each of its events.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple, Self

from pyspark_mysqlbinlog.errors import OptionError
from pyspark_mysqlbinlog.tables import SYSTEM_DATABASES

__all__ = ["TableFilter"]

# Answers kept. A server with more tables than this costs a look-up now and then, not memory.
_REMEMBERED = 10_000

_FORMS = "expected database.table, `database`.`table`, a glob such as shop.* or a /regex/"


class _Part(NamedTuple):
    """One half of ``database.table``."""

    text: str
    is_glob: bool


class _Pattern(NamedTuple):
    """One pattern: a predicate, and the table it names if it names exactly one."""

    matches: Callable[[str, str], bool]
    literal: tuple[str, str] | None


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
        return tuple(dict.fromkeys(literal for literal in named if self.wants(*literal)))

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
    end = pos + 1
    while end < len(text) and text[end] != "/":
        end += 2 if text[end] == "\\" else 1
    if end >= len(text):
        raise _wrong(option, f"{text[pos:]!r} has no closing /", text)
    source = text[pos + 1 : end]
    if not source:
        raise _wrong(option, "the regex // is empty", text)
    try:
        expression = re.compile(source, 0 if case_sensitive else re.IGNORECASE)
    except re.error as error:
        problem = str(error)
    else:
        return _Pattern(
            lambda db, tb: expression.fullmatch(f"{db}.{tb}") is not None, None
        ), end + 1
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
    return OptionError(f"option {option}: {problem}; {_FORMS}, separated by commas; found {text!r}")
