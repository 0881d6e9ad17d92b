"""Selects the types of the numbers in JSON documents from the server.

The text of a document does not determine them all (see `json_text`). Therefore, with a JSON column
JSON_TYPE is selected for certain paths: those that occurred in the table's documents. A document
with a number whose type matters and whose path was not selected raises `UntypedNumbers`, and the
rows are selected again with its paths. Documents of one table mostly have the same few paths.

If not, or if a document has very many numbers, its size is used: JSON_STORAGE_SIZE (5.7.22) is also
selected. A document is accepted if it has as many bytes as the one made from its text, and all
numbers of known type have the likeliest type: an integer, a DOUBLE and a DECIMAL of the same digits
differ in size, except for DECIMALs with four bytes of digits. Any other document is an error.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from pyspark_mysqlbinlog.decoder.result_rows.json_text import JsonPath
from pyspark_mysqlbinlog.errors import MalformedResultError

__all__ = ["MOST_IN_DOCUMENT", "MOST_PATHS", "NumberTypeQuery", "NumberTypes", "UntypedNumbers"]

# Limit for one column.
MOST_PATHS = 2000
MOST_IN_DOCUMENT = 1000
# Number of paths taken of a document that has more.
_SAMPLE = 50


class UntypedNumbers(Exception):  # noqa: N818 (not an error: the reader selects them)
    """A document has numbers whose types were not selected.

    Attributes
    ----------
    paths : by the column's name.
    """

    def __init__(self, column: str, paths: Sequence[JsonPath]) -> None:
        super().__init__(column)
        wanted = paths if len(paths) <= MOST_IN_DOCUMENT else paths[:_SAMPLE]
        self.paths: dict[str, set[JsonPath]] = {column: set(wanted)}


class NumberTypes(NamedTuple):
    """The server's data on one document.

    size : None if it is unknown.
    """

    types: Mapping[JsonPath, str]
    size: int | None


@dataclass(frozen=True, slots=True)
class NumberTypeQuery:
    """The data selected with a JSON column.

    Attributes
    ----------
    paths : the paths for JSON_TYPE; if empty, nothing is selected.
    is_full : there were more.
    has_size : whether the documents' sizes are selected; older servers do not support it.
    """

    paths: tuple[JsonPath, ...] = ()
    is_full: bool = False
    has_size: bool = True

    def more(self, paths: Collection[JsonPath]) -> NumberTypeQuery:
        """Return a query that includes these paths."""
        added = sorted(set(paths).difference(self.paths), key=repr)
        wanted = (*self.paths, *added)
        return replace(self, paths=wanted[:MOST_PATHS], is_full=len(wanted) > MOST_PATHS)

    def expression(self, column: str) -> str | None:
        """Return the expression to SELECT with the column; None if there is none.

        column : its name, quoted.
        """
        if not self.paths:
            return None
        answers = [f"JSON_STORAGE_SIZE({column})" if self.has_size else "''"]
        answers += (f"JSON_TYPE({_extracted(column, path)})" for path in self.paths)
        listed = ", ".join(f"IFNULL({each}, '')" for each in answers)
        return f"CONCAT_WS(',', {listed})"

    def parse(self, answer: bytes, what: str) -> NumberTypes:
        """Parse the server's answer for one row; MalformedResultError."""
        if not self.paths:
            return NumberTypes({}, None)
        size, *types = answer.decode("latin-1").split(",")
        if len(types) != len(self.paths) or not (size.isdecimal() or not size):
            raise MalformedResultError(
                f"{what}: expected its size and the types of {len(self.paths)} paths with it,"
                f" found {len(answer)} bytes with {len(types)} types"
            )
        return NumberTypes(dict(zip(self.paths, types, strict=True)), int(size) if size else None)


def _extracted(column: str, path: JsonPath) -> str:
    """Return JSON_EXTRACT of a path.

    A path cannot contain an empty key (5.7: error 3143), but that key is always an object's first.
    """
    expression, legs = column, "$"
    for step in path:
        if isinstance(step, int):
            legs += f"[{step}]"
        elif step:
            legs += "." + json.dumps(step, ensure_ascii=False)
        else:
            expression, legs = f"JSON_EXTRACT({expression}, {_literal(legs + '.*')})", "$[0]"
    return f"JSON_EXTRACT({expression}, {_literal(legs)})"


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
