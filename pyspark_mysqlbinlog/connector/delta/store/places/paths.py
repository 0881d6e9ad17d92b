"""Locations of the Delta tables: a URI template, filled in with each table's names.

MySQL names may contain any character, including a slash. Characters with a meaning in a path or URI
are percent-encoded, but with a tilde, ``~2F``; all others stay. A percent sign has different
meanings in a path and in a URI: delta-rs creates a table in one folder and searches it in another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from pyspark_mysqlbinlog.connector.delta.store.places.names import is_catalog_name
from pyspark_mysqlbinlog.errors import OptionError
from pyspark_mysqlbinlog.names import Table

__all__ = ["PathTemplate", "check_paths_disjoint"]

_FIELD = re.compile(r"\{([^{}]*)\}")
# In addition to control characters: path separators, characters with a meaning in a URI or a glob,
# and Delta's log folder.
_UNSAFE = re.compile(r"[\x00-\x20/\\:?#%~*\[\]{}\"<>|^\x7f]|^\.+|^_(?=delta_log$)")
# Below a folder with one of them in its name, most writes of delta-rs panic.
_REFUSED = re.compile(r"[\[\]^|]")
# In a URI: ``s3://key:secret@bucket``.
_PASSWORD = re.compile(r"://[^/:@]*:[^/]*@")


@dataclass(frozen=True, slots=True)
class PathTemplate:
    """A checked template.

    Attributes
    ----------
    template : a path or URI with ``{database}`` and ``{table}`` in it.
    """

    template: str

    @classmethod
    def parse(cls, template: str, option: str = "target") -> Self:
        """Check a template; OptionError describes the fault.

        option : the option's name.
        """
        expected = "expected a path or URI such as /lake/{database}/{table}"
        fields = _FIELD.findall(template)
        unknown = [name for name in fields if name not in {"database", "table"}]
        if unknown:
            raise OptionError(f"{option}: {expected}, found {{{unknown[0]}}} in {template!r}")
        # Without {database} a template fits one database; without {table} it fits no mirror.
        if "table" not in fields:
            raise OptionError(f"{option}: {expected}, found no {{table}} in {template!r}")
        if "{" in _FIELD.sub("", template) or "}" in _FIELD.sub("", template):
            raise OptionError(f"{option}: {expected}, found a single brace in {template!r}")
        if is_catalog_name(template):
            raise OptionError(
                f"{option}: {expected}, found {template!r}, which looks like a name in a catalog:"
                " only the target of a mirror with the engine 'spark' can be one; for a folder of"
                f" that name in the working directory use './{template}'"
            )
        refused = _REFUSED.search(template)
        if refused is not None:
            raise OptionError(
                f"{option}: {expected}, found {refused[0]!r} in {template!r}, below which delta-rs"
                " cannot write: use a folder with another name"
            )
        if _PASSWORD.search(template) is not None:
            # Paths are in log lines, in plans of Spark and in the checkpoint.
            raise OptionError(
                f"{option}: {expected}, found a password in it; remove it, and give credentials in"
                " storage_options (engine deltalake) or in Spark's configuration"
            )
        return cls(template)

    def render(self, table: Table) -> str:
        """Return the URI of a table's Delta table."""
        names = {"database": _quoted(table[0]), "table": _quoted(table[1])}
        return _FIELD.sub(lambda found: names[found[1]], self.template)


def check_paths_disjoint(tables: Iterable[Table], templates: Iterable[PathTemplate]) -> None:
    """OptionError if two Delta tables would be one, or one would be in the other's folder.

    There, a VACUUM of the outer table would delete the inner table's files as unreferenced.
    """
    places: dict[tuple[str, ...], str] = {}
    for template in templates:
        for table in tables:
            uri = template.render(table)
            parts = tuple(part for part in uri.split("/") if part not in ("", "."))
            if parts in places:
                raise OptionError(f"{uri} would be two Delta tables: set different paths")
            places[parts] = uri
    for parts, uri in places.items():
        for length in range(1, len(parts)):
            outer = places.get(parts[:length])
            if outer is not None:
                raise OptionError(
                    f"the Delta table {uri} would be in the folder of another one, {outer}: set"
                    " a path outside of it"
                )


def _quoted(name: str) -> str:
    return _UNSAFE.sub(
        lambda found: "".join(f"~{byte:02X}" for byte in found[0].encode()),
        name,
    )
