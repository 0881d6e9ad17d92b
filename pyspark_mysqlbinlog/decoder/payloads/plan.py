"""The row plan: all that can be known before the first row of a table is read.

Made once per (table map, schema): checks that the two fit, gives every column its codec or its
skip. A rows event may hold only some columns (binlog_row_image minimal, noblob); each bitmap of
present columns gives an `ImagePlan`, made once as well, so that the row loop only follows lists.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from json.encoder import encode_basestring
from typing import Any

from pyspark_mysqlbinlog.decoder.events.table_map import TableMap
from pyspark_mysqlbinlog.decoder.schemas.table_map_check import check_fit
from pyspark_mysqlbinlog.decoder.values.codec import Codec, Skip
from pyspark_mysqlbinlog.decoder.values.select_codec import codec_for, skip_for
from pyspark_mysqlbinlog.errors import MySQLBinlogError
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema

__all__ = ["ColumnPlan", "ImagePlan", "RowPlan"]


@dataclass(frozen=True, slots=True, eq=False)
class ColumnPlan:
    """One column.

    Attributes
    ----------
    json_key : the name as a JSON string with its colon.
    codec : None when the column is excluded: skipped and never shown.
    schema : None where names and types are not known, so that there is no codec either.
    """

    name: str
    json_key: str
    skip: Skip
    codec: Codec | None
    schema: ColumnSchema | None = None

    @property
    def before_image_unreliable(self) -> bool:
        """Whether it is left out of the before images of updates: see ColumnSchema."""
        return self.codec is not None and (
            self.schema is not None and self.schema.before_image_unreliable
        )


@dataclass(frozen=True, slots=True, eq=False)
class ImagePlan:
    """One kind of row image: the columns that it holds, in table order.

    Attributes
    ----------
    bitmap_length : bytes of an image's null bitmap, which counts these columns only.
    missing : names of the columns that the image does not hold, or not for certain, excluded ones
        left out.
    cache : room for what a payload builder compiles per null bitmap.
    table : (database, table).
    """

    columns: tuple[ColumnPlan, ...]
    bitmap_length: int
    missing: tuple[str, ...]
    cache: dict[bytes, Any] = field(default_factory=dict, repr=False)
    table: tuple[str, str] = ("", "")


class RowPlan:
    """How the rows of one table map are read."""

    __slots__ = ("_has_doubtful", "_images", "columns", "key", "schema", "table_map")

    def __init__(
        self, table_map: TableMap, schema: TableSchema, columns: tuple[ColumnPlan, ...]
    ) -> None:
        self.table_map = table_map
        self.schema = schema
        # None where it is not known: names made up for a table map tell no key.
        self.key: tuple[str, ...] | None = schema.primary_key
        self.columns = columns
        self._has_doubtful = any(column.before_image_unreliable for column in columns)
        # With what is in doubt left out, and with all there is.
        self._images: dict[tuple[bytes, bool], ImagePlan] = {}

    @classmethod
    def make(
        cls,
        table_map: TableMap,
        schema: TableSchema,
        excluded: Callable[[str, str, str], bool] | None = None,
    ) -> RowPlan:
        """Plan a table.

        excluded : (database, table, column) -> whether the column is skipped.

        Raises SchemaMismatchError where the two do not fit, SchemaError where a column that must be
        decoded has a type or charset that is not built.
        """
        check_fit(table_map, schema)
        columns = []
        for index, column in enumerate(schema.columns):
            code, metadata = table_map.types[index], table_map.metadata[index]
            what = f"column `{column.name}` ({column.type})"
            codec = None
            if excluded is None or not excluded(schema.database, schema.table, column.name):
                try:
                    codec = codec_for(code, metadata, column)
                except MySQLBinlogError as error:
                    raise error.with_location(table=table_map.full_name) from None
            skip = codec.skip if codec else skip_for(code, metadata, what)
            key = f"{encode_basestring(column.name)}:"
            columns.append(ColumnPlan(column.name, key, skip, codec, column))
        return cls(table_map, schema, tuple(columns))

    def image(self, present: bytes, *, is_updated: bool = False) -> ImagePlan:
        """The plan of images with these columns.

        present : bitmap of (columns + 7) // 8 bytes, low bit first; bits past the last column are
            not read (servers set them).
        is_updated : of before images of an UPDATE, in which some columns are in doubt.
        """
        is_updated = is_updated and self._has_doubtful
        plan = self._images.get((present, is_updated))
        if plan is None:
            held, missing = [], []
            for at, column in enumerate(self.columns):
                if present[at >> 3] >> (at & 7) & 1:
                    if is_updated and column.before_image_unreliable:
                        # Passed over as an excluded one, and named.
                        held.append(replace(column, codec=None))
                        missing.append(column.name)
                    else:
                        held.append(column)
                elif column.codec is not None:
                    missing.append(column.name)
            plan = ImagePlan(
                tuple(held),
                (len(held) + 7) // 8,
                tuple(missing),
                table=(self.schema.database, self.schema.table),
            )
            # A minimal log has one bitmap per set of columns that statements change.
            if len(self._images) >= 256:
                self._images.clear()
            self._images[present, is_updated] = plan
        return plan
