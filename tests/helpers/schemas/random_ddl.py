"""The recorded scenarios of random DDL, checked against their statements.

A small interpreter of the few kinds of statements in them does not use the package's DDL code. Each
change must be the effect of a statement, with the columns that the earlier statements define. The
interpreter keeps the rows, and changes them as the DDL does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from helpers.replay import Number, captured_schemas, payload_token, select_tokens

__all__ = ["SCENARIOS", "check_labelled"]

SCENARIOS = ("random_ddl_177", "random_ddl_179", "random_ddl_180")

Row = dict[str, Any]
_OPS = {"insert": "c", "update": "u", "delete": "d", "truncate": "t"}
_DML = re.compile(
    r"(?P<op>insert|update|delete|truncate)(?: ignore)?(?: into| from| table)? (?P<table>\w+)"
)
_CREATE = re.compile(r"create table (?P<table>\w+) \((?P<columns>.*)\)[^)]*\Z")
_COLUMN = re.compile(r"(?P<name>\w+) (?P<type>\w+(?:\([^)]*\))?[^,]*)(?:, |\Z)")
_TEXT = re.compile(r"char|varchar|text")
_BEYOND_BMP = re.compile("[\U00010000-\U0010ffff]")
_RENAME = re.compile(r"(\w+) to (\w+)")


class _Unknown:
    """A value that DDL changed, and that the binlog does not contain."""


_MADE = _Unknown()


@dataclass
class _Table:
    """A table's columns with their types, and its rows by `id`."""

    columns: dict[str, str]
    rows: dict[Any, Row] = field(default_factory=dict)

    def change(self, old: str, new: str, type_: str) -> None:
        if self.columns[old] != type_:
            for row in self.rows.values():
                row[old] = _MADE if row[old] is not None else None
        self.columns = {
            new if name == old else name: type_ if name == old else each
            for name, each in self.columns.items()
        }
        for row in self.rows.values():
            row[new] = row.pop(old)

    def add(self, name: str, type_: str, place: str | None) -> None:
        names = list(self.columns)
        before = [] if place == "first" else names[: names.index(place) + 1] if place else names
        names.insert(len(before), name)
        columns = {**self.columns, name: type_}
        self.columns = {each: columns[each] for each in names}
        for row in self.rows.values():
            row[name] = None

    def convert(self, charset: str) -> None:
        """Replace characters above U+FFFF for utf8; all other conversions here lose nothing."""
        texts = [name for name, type_ in self.columns.items() if _TEXT.match(type_)]
        for row in self.rows.values() if charset == "utf8" else ():
            for name in texts:
                if isinstance(row[name], str):
                    row[name] = _BEYOND_BMP.sub("?", row[name])

    def drop(self, name: str) -> None:
        del self.columns[name]
        for row in self.rows.values():
            del row[name]


class _Server:
    """The tables after the statements so far."""

    def __init__(self) -> None:
        self.tables: dict[str, _Table] = {}

    def ddl(self, sql: str) -> None:
        verb, *_ = sql.split()
        if verb == "create" and (found := _CREATE.match(sql)):
            columns = {each["name"]: each["type"] for each in _COLUMN.finditer(found["columns"])}
            self.tables[found["table"]] = _Table(columns)
        elif verb == "drop" and sql.startswith("drop table "):
            del self.tables[sql.removeprefix("drop table ")]
        elif verb == "rename":
            for old, new in _RENAME.findall(sql.removeprefix("rename table ")):
                self.tables[new] = self.tables.pop(old)
        elif verb == "alter":
            self._alter(sql)
        else:
            assert verb in {"create", "drop", "flush", "use"}, sql

    def _alter(self, sql: str) -> None:
        _, _, name, clause = sql.split(maxsplit=3)
        table = self.tables[name]
        if found := re.fullmatch(r"add column (\w+) (.+?)(?: (first)| after (\w+))?", clause):
            table.add(found[1], found[2], found[3] or found[4])
        elif found := re.fullmatch(r"change (\w+) (\w+) (.+)", clause):
            table.change(found[1], found[2], found[3])
        elif found := re.fullmatch(r"modify (\w+) (.+)", clause):
            table.change(found[1], found[1], found[2])
        elif found := re.fullmatch(r"drop column (\w+)", clause):
            table.drop(found[1])
        else:
            table.convert(clause.removeprefix("convert to character set "))


def check_labelled(scenario: Mapping[str, Any], changes: Iterable[Mapping[str, Any]]) -> None:
    """Check that the changes, in order, are those of the statements, and give SELECT's rows."""
    server = _Server()
    statements = [each["sql"] for each in scenario["statements"] if not each.get("error")]
    at = 0
    count = 0
    for change in changes:
        here = _found(change)
        while not _makes(server, statements[at], here):
            if not _DML.match(statements[at]):
                server.ddl(statements[at])
            at += 1
            assert at < len(statements), f"no statement makes {dict(change)}"
        _apply(server.tables[here[1]], change)
        count += 1
    for sql in statements[at:]:
        if not _DML.match(sql):
            server.ddl(sql)
    assert count > 100
    assert server.tables.keys() == scenario["tables"].keys()
    for schema in captured_schemas(scenario):
        _compare(server.tables[schema.table], schema, scenario["tables"][schema.table]["rows"])


def _found(change: Mapping[str, Any]) -> tuple[str, str, list[str] | None]:
    """Return the kind of a change: op, table, the names in its images."""
    images = [_load(change[side]) for side in ("before", "after") if change[side] is not None]
    for image in images:
        assert list(image) == list(images[0]), change
    return change["op"], change["table"], list(images[0]) if images else None


def _makes(server: _Server, sql: str, change: tuple[str, str, list[str] | None]) -> bool:
    found = _DML.match(sql)
    op, table, names = change
    if found is None or (_OPS[found["op"]], found["table"]) != (op, table):
        return False
    return names is None or list(server.tables[table].columns) == names


def _load(text: str) -> Row:
    loaded: Row = json.loads(text, parse_int=Number, parse_float=Number)
    return loaded


def _apply(table: _Table, change: Mapping[str, Any]) -> None:
    if change["op"] == "t":
        table.rows.clear()
    if change["before"] is not None:
        before = _load(change["before"])
        held = table.rows.pop(before["id"])
        differing = {
            name: (held[name], value)
            for name, value in before.items()
            if held[name] is not _MADE and held[name] != value
        }
        assert not differing, f"(held, before image) {differing} in {dict(change)}"
    if change["after"] is not None:
        after = _load(change["after"])
        assert after["id"] not in table.rows, change
        table.rows[after["id"]] = after


def _compare(table: _Table, schema: Any, shown: list[list[str | None]]) -> None:
    assert list(table.columns) == [column.name for column in schema.columns], schema.full_name
    key = [column.name for column in schema.columns].index("id")
    rows = {row[key]: row for row in select_tokens(schema, shown)}
    assert rows.keys() == table.rows.keys(), schema.full_name
    for id_, row in table.rows.items():
        for column, expected in zip(schema.columns, rows[id_], strict=True):
            value = row[column.name]
            if value is not _MADE:
                assert payload_token(column, value) == expected, (schema.full_name, id_, column)
