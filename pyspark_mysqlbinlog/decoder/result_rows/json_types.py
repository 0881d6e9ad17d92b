"""How the server is asked for the types of the numbers in JSON documents.

The text of a document does not tell them all (see `json_text`). So beside a JSON column stands what
JSON_TYPE says of certain paths in it: those that were met in the table's documents. A document with
a number whose type matters and whose path was not asked for is an `UntypedNumbers`, and the rows
are asked for again with its paths. Documents of one table mostly have the same few.

Where they have not, or a document has very many numbers, its size decides: JSON_STORAGE_SIZE
(5.7.22) is asked for as well. A document that takes as many bytes as the one that is made from its
text, and whose numbers are what they look like wherever that is known, is taken for that one: an
integer, a DOUBLE and a DECIMAL of the same digits differ in size, but for DECIMALs of four bytes of
digits. Any other document is an error.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from pyspark_mysqlbinlog.decoder.result_rows.json_text import JsonPath
from pyspark_mysqlbinlog.errors import MalformedResultError

__all__ = ["MOST_IN_DOCUMENT", "MOST_PATHS", "NumberTypeQuery", "Told", "UntypedNumbers"]

# Of one column.
MOST_PATHS = 2000
MOST_IN_DOCUMENT = 1000
# Of a document that has more.
_SAMPLE = 50


class UntypedNumbers(Exception):  # noqa: N818 - no error: the reader asks for them
    """A document has numbers whose types were not asked for.

    Attributes
    ----------
    paths : by the column's name.
    """

    def __init__(self, column: str, paths: Sequence[JsonPath]) -> None:
        super().__init__(column)
        wanted = paths if len(paths) <= MOST_IN_DOCUMENT else paths[:_SAMPLE]
        self.paths: dict[str, set[JsonPath]] = {column: set(wanted)}


class Told(NamedTuple):
    """What the server says of one document.

    size : None where it does not tell.
    """

    types: Mapping[JsonPath, str]
    size: int | None


@dataclass(frozen=True, slots=True)
class NumberTypeQuery:
    """What is asked for beside a JSON column.

    Attributes
    ----------
    paths : whose JSON_TYPE it is; none: nothing is asked for.
    is_full : there were more.
    has_size : the documents' sizes, too; older servers don't tell.
    """

    paths: tuple[JsonPath, ...] = ()
    is_full: bool = False
    has_size: bool = True

    def more(self, paths: Collection[JsonPath]) -> NumberTypeQuery:
        """With these paths, too."""
        added = sorted(set(paths).difference(self.paths), key=repr)
        wanted = (*self.paths, *added)
        return replace(self, paths=wanted[:MOST_PATHS], is_full=len(wanted) > MOST_PATHS)

    def expression(self, column: str) -> str | None:
        """What to SELECT beside the column; None where there is nothing to ask.

        column : its name, quoted.
        """
        if not self.paths:
            return None
        answers = [f"JSON_STORAGE_SIZE({column})" if self.has_size else "''"]
        answers += (f"JSON_TYPE({_extracted(column, path)})" for path in self.paths)
        listed = ", ".join(f"IFNULL({each}, '')" for each in answers)
        return f"CONCAT_WS(',', {listed})"

    def told(self, answer: bytes, what: str) -> Told:
        """What the server gave for one row; MalformedResultError."""
        if not self.paths:
            return Told({}, None)
        size, *types = answer.decode("latin-1").split(",")
        if len(types) != len(self.paths) or not (size.isdecimal() or not size):
            raise MalformedResultError(
                f"{what}: expected its size and the types of {len(self.paths)} paths beside it,"
                f" found {len(answer)} bytes with {len(types)} types"
            )
        return Told(dict(zip(self.paths, types, strict=True)), int(size) if size else None)


def _extracted(column: str, path: JsonPath) -> str:
    """JSON_EXTRACT of a path.

    No path leads through an empty key (5.7: error 3143), but in its object it is always the first.
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
