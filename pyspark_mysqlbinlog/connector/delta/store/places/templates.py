"""Where a mirror's Delta tables are: its arguments `target` and `change_log`, parsed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from pyspark_mysqlbinlog.connector.delta.store.places.names import (
    NameTemplate,
    is_catalog_name,
)
from pyspark_mysqlbinlog.connector.delta.store.places.paths import (
    PathTemplate,
    check_paths_disjoint,
)
from pyspark_mysqlbinlog.errors import OptionError
from pyspark_mysqlbinlog.names import Table

__all__ = ["MirrorPlaces"]


@dataclass(frozen=True, slots=True)
class MirrorPlaces:
    """Locations of a mirror's Delta tables.

    Attributes
    ----------
    tables : template for the mirrored tables; None if there are none.
    change_logs : template for the change logs; None if there are none.
    given : both as given, by the argument's name.
    """

    tables: PathTemplate | NameTemplate | None
    change_logs: PathTemplate | None
    given: Mapping[str, str | None]

    @classmethod
    def parse(cls, target: str | None, change_log: str | None) -> Self:
        """Parse the mirror's arguments; OptionError if neither is given."""
        tables: PathTemplate | NameTemplate | None = None
        if target is not None:
            kind = NameTemplate if is_catalog_name(target) else PathTemplate
            tables = kind.parse(target)
        elif change_log is None:
            raise OptionError("target: expected target, change_log or both, found neither")
        return cls(
            tables,
            # delta-rs writes change logs with either engine, and resolves no names.
            None if change_log is None else PathTemplate.parse(change_log, "change_log"),
            {"target": target, "change_log": change_log},
        )

    @property
    def catalog(self) -> str | None:
        """The catalog of the mirrored tables' names; None if they have paths."""
        return self.tables.catalog if isinstance(self.tables, NameTemplate) else None

    def check_paths(self, tables: Iterable[Table]) -> None:
        """OptionError if two Delta tables would have one path, or one in the other's folder."""
        paths = [each for each in (self.tables, self.change_logs) if isinstance(each, PathTemplate)]
        check_paths_disjoint(tables, paths)
