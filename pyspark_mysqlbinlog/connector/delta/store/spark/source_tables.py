"""The MySQL table of a named Delta table, as a property of the Delta table records it.

Two MySQL tables can have one name in a catalog (see `places.names`): of two mirrors, or one after
the other. So the property is written before the first rows, and checked before each commit. It is
missing in an empty table that another program created, such as an external one, and in one that a
mirror wrote by its path.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from pyspark_mysqlbinlog.connector.delta.rows.columns import SEQ
from pyspark_mysqlbinlog.connector.delta.store.places.names import (
    SOURCE_TABLE,
    CatalogName,
    DeltaPlace,
)
from pyspark_mysqlbinlog.errors import OptionError

__all__ = ["SourceTable"]


@dataclass(frozen=True, slots=True)
class SourceTable:
    """The MySQL table that a Delta table must be of.

    Attributes
    ----------
    uri : of the Delta table.
    name : ``database.table``; None if the Delta table's path shows it.
    former : tables that had the Delta table before, and no longer exist.
    """

    uri: str
    name: str | None
    former: frozenset[str] = frozenset()

    @classmethod
    def of(cls, place: DeltaPlace) -> Self:
        """Return the MySQL table of a place."""
        if not isinstance(place, CatalogName):
            return cls(place, None)
        former = frozenset(map(".".join, place.former_sources))
        return cls(str(place), ".".join(place.source), former)

    @property
    def property(self) -> dict[str, str]:
        """The table property that records it; empty without one."""
        return {} if self.name is None else {SOURCE_TABLE: self.name}

    def is_recorded(self, properties: Mapping[str, str]) -> bool:
        """Return whether the properties of a Delta table name the MySQL table."""
        return self.name is None or properties.get(SOURCE_TABLE) == self.name

    def check(self, properties: Mapping[str, str]) -> None:
        """OptionError if a mirror created the Delta table for another MySQL table."""
        known = properties.get(SOURCE_TABLE)
        is_other = known not in {None, self.name} and known not in self.former
        if self.name is not None and is_other:
            raise OptionError(
                f"target: {self.uri} is the Delta table of another MySQL table: expected"
                f" {self.name!r}, found {known!r} in its property {SOURCE_TABLE}; set another"
                " target, exclude one of the MySQL tables (excludeTables), or drop the Delta table"
                f" if {known!r} no longer exists"
            )

    def foreign_rows_error(self) -> OptionError:
        """Return the error for a table with rows of another program."""
        return OptionError(
            f"target: {self.uri} has rows, but no column {SEQ}, so no mirror created it: expected a"
            " table of a mirror, or one without rows; set another target, or remove its rows if"
            " they are not needed"
        )
