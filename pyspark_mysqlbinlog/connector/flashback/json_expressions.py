"""JSON documents as SQL expressions that result in the same values.

A text that is parsed gives objects, arrays, strings, integers, true, false and null. MySQL's
further types (DECIMAL, DATE, TIME, DATETIME, and doubles with all their bits) come from functions
with arguments of these types.
"""

from __future__ import annotations

import json
from decimal import Decimal

from pyspark_mysqlbinlog.decoder.values.json_binary import (
    JsonDate,
    JsonDateTime,
    JsonOpaque,
    JsonTime,
    JsonTree,
)
from pyspark_mysqlbinlog.errors import UndoError

__all__ = ["json_expression"]


def json_expression(tree: JsonTree, column: str) -> str:
    """Return an expression of the type JSON; UndoError for a value that SQL cannot write.

    column : names it in the error.
    """
    if _is_plain(tree):
        # The text has escapes for all characters that are not ASCII.
        text = json.dumps(tree, separators=(",", ":"))
        return f"CAST({_string(text)} AS JSON)"
    if isinstance(tree, dict | list):
        return _argument(tree, column)
    return f"CAST({_argument(tree, column)} AS JSON)"


def _is_plain(tree: JsonTree) -> bool:
    if isinstance(tree, dict):
        return all(map(_is_plain, tree.values()))
    if isinstance(tree, list):
        return all(map(_is_plain, tree))
    return tree is None or isinstance(tree, str | bool | int)


def _argument(tree: JsonTree, column: str) -> str:
    """Return a value as the argument of a JSON function."""
    if isinstance(tree, dict):
        members = (f"{_string(key)}, {_argument(each, column)}" for key, each in tree.items())
        return f"JSON_OBJECT({', '.join(members)})"
    if isinstance(tree, list):
        return f"JSON_ARRAY({', '.join(_argument(each, column) for each in tree)})"
    if isinstance(tree, str):
        return _string(tree)
    if tree is None or isinstance(tree, bool):
        return f"CAST('{json.dumps(tree)}' AS JSON)"
    if isinstance(tree, int):
        return str(tree)
    if isinstance(tree, float):
        text = repr(tree)
        return text if "e" in text else f"{text}e0"
    if isinstance(tree, Decimal):
        text = f"{tree:f}"
        scale = len(text.partition(".")[2])
        digits = max(sum(map(str.isdigit, text)), 1)
        return f"CAST({text} AS DECIMAL({digits},{scale}))"
    if isinstance(tree, JsonDate):
        return f"CAST('{tree.text}' AS DATE)"
    if isinstance(tree, JsonTime):
        return f"CAST('{tree.text}' AS TIME(6))"
    if isinstance(tree, JsonDateTime):
        return f"CAST('{tree.text}' AS DATETIME(6))"
    assert isinstance(tree, JsonOpaque)
    raise UndoError(
        f"column `{column}` has a JSON document with a binary value (base64:type{tree.field_type}),"
        " which no SQL literal has; restore this row by hand"
    )


def _string(text: str) -> str:
    if text.isascii() and text.isprintable() and "\\" not in text:
        return f"'{text.replace(chr(39), chr(39) * 2)}'"
    return f"_utf8mb4 x'{text.encode().hex()}'"
