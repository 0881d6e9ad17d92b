"""The row plan: everything that is known before the first row of a table is read.

It is made once per (table map, schema). It checks that the two fit, and gives each column its codec
or its skip. A rows event may contain only some columns (binlog_row_image minimal, noblob); each
bitmap of present columns has an `ImagePlan`, also made once, so that the row loop only reads lists.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from json.encoder import encode_basestring
from typing import Any

from pyspark_mysqlbinlog.decoder.events.table_map import TableMap
from pyspark_mysqlbinlog.decoder.payloads.row_filter import RowFilter
from pyspark_mysqlbinlog.decoder.schemas.table_map_check import check_fit
from pyspark_mysqlbinlog.decoder.transforms.bound_conditions import bind
from pyspark_mysqlbinlog.decoder.transforms.masks import Masking, masked_codec, masked_column
from pyspark_mysqlbinlog.decoder.transforms.transforms import Transforms
from pyspark_mysqlbinlog.decoder.values.codec import Codec, Read, Skip
from pyspark_mysqlbinlog.decoder.values.select_codec import codec_for, skip_for
from pyspark_mysqlbinlog.errors import MySQLBinlogError
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema

__all__ = ["ColumnPlan", "ImagePlan", "RowPlan"]


@dataclass(frozen=True, slots=True, eq=False)
class ColumnPlan:
    """One column.

    Attributes
    ----------
    json_key : the name as a JSON string, with its colon.
    codec : None if the column is excluded: skipped and not output.
    schema : None if names and types are unknown; then there is no codec either. Of a masked column,
        the mask's.
    masking : of a masked column; the codec applies it.
    """

    name: str
    json_key: str
    skip: Skip
    codec: Codec | None
    schema: ColumnSchema | None = None
    masking: Masking | None = None

    @property
    def before_image_unreliable(self) -> bool:
        """Whether the column is omitted from the before images of updates: see ColumnSchema."""
        return self.codec is not None and (
            self.schema is not None and self.schema.before_image_unreliable
        )


@dataclass(frozen=True, slots=True, eq=False)
class ImagePlan:
    """One kind of row image: its columns, in table order.

    Attributes
    ----------
    bitmap_length : bytes of an image's null bitmap, which counts these columns only.
    missing : names of the columns that are absent or unreliable in the image, without excluded
        columns.
    cache : data that a payload builder compiles per null bitmap.
    table : (database, table).
    """

    columns: tuple[ColumnPlan, ...]
    bitmap_length: int
    missing: tuple[str, ...]
    cache: dict[bytes, Any] = field(default_factory=dict, repr=False)
    table: tuple[str, str] = ("", "")


class RowPlan:
    """The plan for reading the rows of one table map.

    Attributes
    ----------
    row_filter : None if all rows are read.
    """

    __slots__ = (
        "_has_doubtful",
        "_images",
        "columns",
        "key",
        "row_filter",
        "schema",
        "table_map",
    )

    def __init__(
        self,
        table_map: TableMap,
        schema: TableSchema,
        columns: tuple[ColumnPlan, ...],
        *,
        row_filter: RowFilter | None = None,
    ) -> None:
        self.table_map = table_map
        self.row_filter = row_filter
        self.schema = schema
        # None if unknown: the generated names of a table map have no key.
        self.key: tuple[str, ...] | None = schema.primary_key
        self.columns = columns
        self._has_doubtful = any(column.before_image_unreliable for column in columns)
        # Without the unreliable columns (True), and with all columns (False).
        self._images: dict[tuple[bytes, bool], ImagePlan] = {}

    @classmethod
    def make(
        cls,
        table_map: TableMap,
        schema: TableSchema,
        excluded: Callable[[str, str, str], bool] | None = None,
        transforms: Transforms | None = None,
    ) -> RowPlan:
        """Plan a table.

        excluded : (database, table, column) -> whether the column is skipped.
        transforms : masks of columns, and conditions of rows; None if there are none.

        Raises SchemaMismatchError if the two do not fit, SchemaError if a column that must be
        decoded has an unsupported type or charset, OptionError if the transforms do not fit the
        table.
        """
        check_fit(table_map, schema)
        masks = {} if transforms is None else transforms.masks(schema)
        secret = b"" if transforms is None else transforms.secret
        condition = (
            None if transforms is None else transforms.condition_of(schema.database, schema.table)
        )
        bound = None if condition is None else bind(condition, schema)
        filtered = set() if bound is None else set(bound.columns)
        reads: dict[str, Read] = {}
        columns = []
        for index, column in enumerate(schema.columns):
            code, metadata = table_map.types[index], table_map.metadata[index]
            what = f"column `{column.name}` ({column.type})"
            codec = None
            is_excluded = excluded is not None and excluded(
                schema.database, schema.table, column.name
            )
            if not is_excluded or column.name in filtered:
                try:
                    codec = codec_for(code, metadata, column)
                except MySQLBinlogError as error:
                    raise error.with_location(table=table_map.full_name) from None
                reads[column.name] = codec.read
            skip = codec.skip if codec else skip_for(code, metadata, what)
            key = f"{encode_basestring(column.name)}:"
            shown, masking = column, None
            mask = masks.get(column.name)
            if mask is not None and codec is not None and not is_excluded:
                masking = Masking(mask, column, secret)
                codec = masked_codec(codec, masking)
                shown = masked_column(column)
            columns.append(
                ColumnPlan(column.name, key, skip, None if is_excluded else codec, shown, masking)
            )
        return cls(
            table_map,
            schema,
            tuple(columns),
            row_filter=None if bound is None else RowFilter(bound, reads),
        )

    def image(self, present: bytes, *, is_updated: bool = False) -> ImagePlan:
        """Return the plan of images with these columns.

        present : bitmap of (columns + 7) // 8 bytes, low bit first; bits after the last column are
            ignored (servers set them).
        is_updated : for before images of an UPDATE, in which some columns are unreliable.
        """
        is_updated = is_updated and self._has_doubtful
        plan = self._images.get((present, is_updated))
        if plan is None:
            held, missing = [], []
            for at, column in enumerate(self.columns):
                if present[at >> 3] >> (at & 7) & 1:
                    if is_updated and column.before_image_unreliable:
                        # Skipped like an excluded column, and listed as missing.
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
            # A binlog with minimal images has one bitmap per set of columns that statements change.
            if len(self._images) >= 256:
                self._images.clear()
            self._images[present, is_updated] = plan
        return plan
