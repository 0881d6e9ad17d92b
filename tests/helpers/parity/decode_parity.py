"""Comparison of the two decoders: the same events through both, and their results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import DataType, StringType, VariantType

import helpers.parity.require_kernel  # noqa: F401 (skips the tests if the kernel is missing)
from helpers.parity.decoding import ALL_OPERATIONS, StaticSchemas, captured_ordinal
from pyspark_mysqlbinlog.connector.options.table_filter import ColumnFilter
from pyspark_mysqlbinlog.connector.schemas.struct_schema import payload_type
from pyspark_mysqlbinlog.connector.source.schema import arrow_schema, output_schema
from pyspark_mysqlbinlog.decoder.decode import Decoder, SchemaLookup
from pyspark_mysqlbinlog.decoder.events.rows import OPERATIONS
from pyspark_mysqlbinlog.decoder.kernel.decoder import KernelDecoder
from pyspark_mysqlbinlog.decoder.payloads.payload import (
    PayloadBuilder,
    json_payload,
    json_with_texts,
)
from pyspark_mysqlbinlog.decoder.payloads.struct_payload import StructPayload, Unplaced
from pyspark_mysqlbinlog.decoder.payloads.variant_payload import VariantPayload
from pyspark_mysqlbinlog.decoder.schemas.struct_types import StructOptions
from pyspark_mysqlbinlog.errors import MySQLBinlogError
from pyspark_mysqlbinlog.protocol.blocks import EventBlock, pack_events
from pyspark_mysqlbinlog.protocol.events import Event
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = [
    "KINDS",
    "PAYLOADS",
    "Decoded",
    "Nothing",
    "Payloads",
    "Parity",
    "assert_same",
    "blocks_of_one",
    "note_by_hand",
]

NOTHING_EXCLUDED = ColumnFilter.parse()


@dataclass(frozen=True)
class Decoded:
    """The batches of a decoder, and the error with which it ended, if any."""

    batches: list[pa.RecordBatch]
    error: MySQLBinlogError | None

    @property
    def sizes(self) -> list[int]:
        return [batch.num_rows for batch in self.batches]


@dataclass(frozen=True)
class Payloads:
    """The payload of `before` and `after`.

    promised : the tables of the struct; by default the tables of the log.
    """

    kind: str
    options: StructOptions = field(default_factory=StructOptions)
    unplaced: Unplaced = "stop"
    promised: Sequence[TableSchema] = ()
    columns: ColumnFilter = NOTHING_EXCLUDED

    def arrow_schema(self, schemas: Sequence[TableSchema]) -> pa.Schema:
        kinds: dict[str, Callable[[], DataType]] = {
            "json": StringType,
            "variant": VariantType,
            "struct": lambda: payload_type(
                self.promised or schemas, self.options, self.columns, nested=self._nested(schemas)
            ),
        }
        rescued = self.kind == "struct" and self.unplaced == "rescue"
        return arrow_schema(output_schema(kinds[self.kind](), rescued=rescued))

    def factory(
        self, schemas: Sequence[TableSchema]
    ) -> Callable[[str, pa.DataType], PayloadBuilder]:
        if self.kind == "json":
            return json_with_texts if self.options.json_type == "text" else json_payload
        if self.kind == "variant":
            return lambda _, type_: VariantPayload(type_)
        nested = self._nested(schemas)
        return lambda side, type_: StructPayload(
            side, type_, self.options, nested=nested, unplaced=self.unplaced
        )

    def _nested(self, schemas: Sequence[TableSchema]) -> bool:
        return len(self.promised or schemas) > 1


KINDS = ("json", "struct", "variant")
PAYLOADS = {
    "json": Payloads("json"),
    "json-text": Payloads("json", StructOptions(json_type="text")),
    "variant": Payloads("variant"),
    "struct": Payloads("struct"),
    "struct-micros": Payloads(
        "struct",
        StructOptions(time_type="micros", json_type="variant", tiny_int1_is_boolean=True),
    ),
    "struct-interval": Payloads("struct", StructOptions(time_type="interval", zero_dates="fail")),
    "struct-rescue": Payloads("struct", unplaced="rescue"),
}


class Nothing:
    """A schema lookup that knows no table."""

    def at(self, file: str, pos: int, database: str, table: str) -> TableSchema | None:
        return None

    def reason(self, file: str, pos: int, database: str, table: str) -> str:
        return "unknown"

    def is_known_later(self, file: str, pos: int, database: str, table: str) -> bool:
        return False

    def span(self, file: str, pos: int, database: str, table: str) -> tuple[int, int | None]:
        return 0, None


class Parity:
    """Both decoders for the same tables and settings."""

    def __init__(
        self,
        schemas: Sequence[TableSchema],
        payload: Payloads,
        *,
        lookup: SchemaLookup | None = None,
        **settings: Any,
    ) -> None:
        self.schema = payload.arrow_schema(schemas)
        settings.setdefault("file_ordinal", captured_ordinal)
        operations = settings.pop("operations", ALL_OPERATIONS)
        epoch = settings.pop("epoch", 0)
        given = (lookup or StaticSchemas(schemas), self.schema, epoch, operations)
        settings["payload"] = payload.factory(schemas)
        settings["excluded"] = payload.columns.excludes
        self._python = Decoder(*given, **settings)
        self._kernel = KernelDecoder(Decoder(*given, **settings))

    def python(self, events: Iterable[Event]) -> Decoded:
        return _decoded(self._python.decode(events))

    def kernel(self, blocks: Iterable[EventBlock]) -> Decoded:
        return _decoded(self._kernel.decode(blocks))

    def assert_same(self, events: Sequence[Event]) -> Decoded:
        """Check that both give the same rows and end the same way; return the kernel's result."""
        expected, found = self.python(events), self.kernel(pack_events(events))
        assert_same(self.schema, expected, found)
        return found


def _decoded(batches: Iterator[pa.RecordBatch]) -> Decoded:
    given: list[pa.RecordBatch] = []
    try:
        given.extend(batches)
    except MySQLBinlogError as error:
        return Decoded(given, error)
    return Decoded(given, None)


def assert_same(schema: pa.Schema, expected: Decoded, found: Decoded) -> None:
    """Check for the same rows, and for the same error or none.

    Before an error, one of the two may have returned one batch more: buffered rows are lost with an
    error, and batches may end at other rows if the kernel falls back to Python.
    """
    for batch in found.batches:
        batch.validate(full=True)
        assert batch.schema.equals(schema, check_metadata=True)
        assert batch.num_rows > 0
    assert _words(found.error) == _words(expected.error)
    found_rows, expected_rows = (
        pa.Table.from_batches(each.batches, schema) for each in (found, expected)
    )
    if expected.error is not None:
        fewer, more = sorted((found_rows.num_rows, expected_rows.num_rows))
        largest = max((each.num_rows for each in (*found.batches, *expected.batches)), default=0)
        assert more - fewer <= largest, "rows before the error differ by more than a batch"
        found_rows, expected_rows = found_rows.slice(0, fewer), expected_rows.slice(0, fewer)
    if found_rows.equals(expected_rows):
        return
    # NaN is not equal to itself.
    pairs = zip(found_rows.to_pylist(), expected_rows.to_pylist(), strict=True)
    for at, (one, other) in enumerate(pairs):
        assert repr(one) == repr(other), f"row {at}"


def _words(error: MySQLBinlogError | None) -> tuple[object, ...]:
    return (type(error), str(error))


def blocks_of_one(events: Iterable[Event]) -> list[EventBlock]:
    """Return each event in its own block."""
    return [block for event in events for block in pack_events([event])]


def note_by_hand(monkeypatch: pytest.MonkeyPatch) -> list[Event]:
    """Return a list that records the rows events for which the kernel falls back to Python."""
    given: list[Event] = []
    feed = Decoder.feed

    def noting(
        self: Decoder, event: Event, begin: tuple[int, int] | None = None
    ) -> Iterator[pa.RecordBatch]:
        # Only the kernel's decoder passes `begin`.
        if begin is not None and event.type in OPERATIONS:
            given.append(event)
        return feed(self, event, begin or (0, 0))

    monkeypatch.setattr(Decoder, "feed", noting)
    return given
