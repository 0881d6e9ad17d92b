"""The results of a comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pyspark_mysqlbinlog.names import Table

__all__ = ["KINDS", "Difference", "Kind", "TableResult"]

Kind = Literal["missing", "extra", "different", "duplicate"]
# Each kind, with its words in the text output.
KINDS: Mapping[Kind, str] = {
    "missing": "missing in Delta",
    "extra": "extra in Delta",
    "different": "different",
    "duplicate": "several times in Delta",
}


@dataclass(frozen=True, slots=True)
class Difference:
    """A row that differs.

    Attributes
    ----------
    row : its key's values; all values of a row without a key.
    columns : which of its values differ.
    server, delta : the number of copies of the row, if its table has no key.
    """

    kind: Kind
    row: Mapping[str, Any]
    columns: tuple[str, ...] = ()
    server: int | None = None
    delta: int | None = None


@dataclass(frozen=True, slots=True)
class TableResult:
    """The result for one table.

    Attributes
    ----------
    rows, delta_rows : that were compared.
    counts : differences by kind; none has 0.
    shown : some of the differences.
    unconfirmed : rows that differed, but could not be confirmed.
    pending : rows that are equal at `position`, and changed in the binlog after it.
    reason : why the table, or those rows, could not be compared; None if all could.
    stopped : why the mirror has stopped the table; None if it has not.
    position : up to which the Delta table is complete.
    """

    table: Table
    rows: int = 0
    delta_rows: int = 0
    counts: Mapping[Kind, int] = field(default_factory=dict)
    shown: tuple[Difference, ...] = ()
    unconfirmed: int = 0
    pending: int = 0
    reason: str | None = None
    stopped: str | None = None
    position: str | None = None
    seconds: float = 0.0

    @property
    def name(self) -> str:
        """``database.table``."""
        return ".".join(self.table)

    @property
    def is_different(self) -> bool:
        """Whether a difference is confirmed."""
        return bool(self.counts)

    @property
    def is_complete(self) -> bool:
        """Whether every row is known to be equal or different."""
        return self.reason is None and not self.unconfirmed
