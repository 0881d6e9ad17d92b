"""Names of the Delta tables in a catalog: a template, filled in with each table's names.

Spark resolves such a name with the catalog of its configuration: `spark_catalog` (in memory, or a
Hive metastore), Unity Catalog, or another one. Catalogs ignore the case of names, and a Hive
metastore allows only letters of ASCII, digits and underscores. So names are written in lower case,
and every other character as SQL/XML does: ``_x002d_`` for a hyphen. Different MySQL tables may
then have one name, one after the other (see `query.former_tables`), but not at the same time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from pyspark_mysqlbinlog.errors import OptionError
from pyspark_mysqlbinlog.names import Table, quoted

__all__ = [
    "SOURCE_TABLE",
    "CatalogName",
    "DeltaPlace",
    "NameTemplate",
    "check_names_distinct",
    "is_catalog_name",
    "same_name_error",
]

# A property of a named Delta table: the MySQL table that it belongs to.
SOURCE_TABLE = "mysqlbinlog.sourceTable"

_EXAMPLE = "spark_catalog.{database}.{table}"
_EXPECTED = f"expected catalog.schema.table such as {_EXAMPLE}"
_FIELD = re.compile(r"\{([^{}]*)\}")
# The template's own characters: Spark quotes the name, and catalogs restrict it further.
_LITERAL = re.compile(r"[\w-]*")
_PART_COUNT = 3


@dataclass(frozen=True, slots=True)
class CatalogName:
    """The name of one Delta table.

    Attributes
    ----------
    catalog, schema, table : its parts, not quoted.
    source : the MySQL table.
    may_create_schema : the schema is that of a MySQL database, and is created if it is missing.
    former_sources : MySQL tables that had the name before, and no longer exist.
    """

    catalog: str
    schema: str
    table: str
    source: Table
    may_create_schema: bool
    former_sources: frozenset[Table] = frozenset()

    def __str__(self) -> str:
        return f"{self.catalog}.{self.schema}.{self.table}"

    @property
    def sql(self) -> str:
        """The name in SQL."""
        return quoted(self.catalog, self.schema, self.table)

    @property
    def sql_schema(self) -> str:
        """The name of its schema in SQL."""
        return quoted(self.catalog, self.schema)


# Where a Delta table is: a path or URI, or its name in a catalog.
DeltaPlace = str | CatalogName


def is_catalog_name(template: str) -> bool:
    """Return whether a template is of catalog names; all others are paths or URIs."""
    return "." in template and "/" not in template


@dataclass(frozen=True, slots=True)
class NameTemplate:
    """A checked template.

    Attributes
    ----------
    template : ``catalog.schema.table`` with ``{database}`` and ``{table}`` in it, as given.
    catalog, schema, table : its parts, without quotes.
    """

    template: str
    catalog: str
    schema: str
    table: str

    @classmethod
    def parse(cls, template: str, option: str = "target") -> Self:
        """Check a template; OptionError describes the fault.

        option : the option's name.
        """

        def error(found: str, advice: str = "") -> OptionError:
            return OptionError(
                f"{option}: {_EXPECTED}, found {found} in {template!r}{advice} (a path has a"
                f" slash: './{template}')"
            )

        parts = [_unquoted(part) for part in template.split(".")]
        if len(parts) != _PART_COUNT:
            # The current catalog of a session is not part of the checkpoint, and may change.
            advice = ""
            if len(parts) == _PART_COUNT - 1:
                advice = f"; put the catalog in front, as in 'spark_catalog.{template}'"
            raise error(f"{len(parts)} names", advice)
        fields = _FIELD.findall(template)
        unknown = [name for name in fields if name not in {"database", "table"}]
        if unknown:
            raise error(f"{{{unknown[0]}}}")
        # Without {database} a template fits one database; without {table} it fits no mirror.
        if "table" not in fields:
            raise error("no {table}")
        if _FIELD.search(parts[0]):
            raise error(f"a catalog that depends on the table, {parts[0]!r},")
        for part in parts:
            text = _FIELD.sub("", part)
            if not part or not _LITERAL.fullmatch(text):
                raise error(f"{part!r}")
        return cls(template, *parts)

    def render(self, table: Table) -> CatalogName:
        """Return the name of a table's Delta table."""
        names = {"database": _encoded(table[0]), "table": _encoded(table[1])}
        schema, last = (
            _FIELD.sub(lambda found: names[found[1]], part) for part in (self.schema, self.table)
        )
        return CatalogName(self.catalog, schema, last, table, bool(_FIELD.search(self.schema)))


def check_names_distinct(tables: Iterable[Table], template: NameTemplate) -> None:
    """OptionError if two MySQL tables would be one Delta table."""
    sources: dict[str, Table] = {}
    for table in tables:
        other = sources.setdefault(str(template.render(table)).lower(), table)
        if other != table:
            raise same_name_error(other, table, template)


def same_name_error(one: Table, other: Table, template: NameTemplate) -> OptionError:
    """Return the error for two MySQL tables that would be one Delta table."""
    is_schema_enough = _encoded(one[0]) != _encoded(other[0])
    schema = ", or set a target with {database} as the schema" if is_schema_enough else ""
    return OptionError(
        f"target: the tables {quoted(*one)} and {quoted(*other)} would be one Delta table,"
        f" {template.render(other)} (catalogs ignore the case of names): exclude one of them"
        f" (excludeTables){schema}, or set a path as target; another target needs another"
        " checkpoint"
    )


def _unquoted(part: str) -> str:
    """Return a part of a template without the quotes around it."""
    return part[1:-1] if len(part) > 1 and part[0] == part[-1] == "`" else part


def _encoded(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", lambda found: f"_x{ord(found[0]):04x}_", name).lower()
