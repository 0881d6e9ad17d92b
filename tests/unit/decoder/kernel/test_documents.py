"""The kernel's JSON documents and variants: byte for byte as in Python, or rejected by both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.types import VariantType, VariantVal

from helpers.logs.recorded_logs import SCENARIOS, load
from helpers.parity.decoding import (
    ALL_OPERATIONS,
    StaticSchemas,
    captured_ordinal,
    simple_schema,
    table_map_body,
)
from helpers.parity.require_kernel import documents as _documents
from helpers.parity.require_kernel import values as _values
from helpers.replay import captured_schemas
from helpers.values.json_documents import (
    ALL_TREES,
    encode_document,
    every_flip,
    mutations,
    packed_decimal,
)
from pyspark_mysqlbinlog.connector.source.schema import arrow_schema, output_schema
from pyspark_mysqlbinlog.decoder.decode import Decoder
from pyspark_mysqlbinlog.decoder.events.table_map import TableMap
from pyspark_mysqlbinlog.decoder.payloads import variant
from pyspark_mysqlbinlog.decoder.payloads.plan import ImagePlan, RowPlan
from pyspark_mysqlbinlog.decoder.payloads.variant_payload import VariantPayload
from pyspark_mysqlbinlog.decoder.schemas.struct_types import VARIANT
from pyspark_mysqlbinlog.decoder.schemas.table_map_check import expected_fields
from pyspark_mysqlbinlog.decoder.values.json_binary import (
    JsonOpaque,
    json_text,
    parse_json,
)
from pyspark_mysqlbinlog.errors import MySQLBinlogError
from pyspark_mysqlbinlog.tables import ColumnSchema

# Shared by all documents, so that state that one of them leaves would change the next result.
VARIANTS = _documents.DocumentVariants()


def python_text(document: bytes) -> bytes | None:
    try:
        return json_text(parse_json(document)).encode()
    except MySQLBinlogError:
        return None


def python_variant(document: bytes) -> tuple[bytes, bytes] | None:
    keys: variant.Keys = {}
    try:
        value = variant.encode_tree(parse_json(document), keys)
    except MySQLBinlogError:
        return None
    return value, variant.encode_metadata(keys)


def check(document: bytes) -> bool:
    """Check that both implementations agree on a document; return whether it is valid."""
    text, encoded = python_text(document), python_variant(document)
    assert _documents.document_json(document) == text
    assert VARIANTS.variant(document) == encoded
    return encoded is not None


def by_server_order(tree: Any) -> Any:
    """Return the tree with its objects' keys in server order: by length, then by bytes."""
    if isinstance(tree, list):
        return [by_server_order(each) for each in tree]
    if not isinstance(tree, dict):
        return tree
    names = sorted(tree, key=lambda key: (len(key.encode()), key.encode()))
    return {key: by_server_order(tree[key]) for key in names}


@given(ALL_TREES, st.booleans(), st.randoms(use_true_random=False))
@settings(max_examples=100)
@pytest.mark.sample(1, of=5)
def test_json_documents_are_equal_in_both_implementations(
    tree: Any, as_server: bool, random: Any
) -> None:
    tree = by_server_order(tree) if as_server else tree
    assert check(encode_document(tree, lambda: random.random() < 0.3))


@given(st.data(), ALL_TREES, st.booleans())
@settings(max_examples=100)
@pytest.mark.sample(1, of=10)
def test_broken_json_documents_give_the_same_result_in_both_implementations(
    data: st.DataObject, tree: Any, large: bool
) -> None:
    check(data.draw(mutations(encode_document(tree, lambda: large))))


@given(st.binary(max_size=80), st.sampled_from((0, 1, 2, 3, 4, 11, 12, 15)))
@settings(max_examples=1000)
def test_random_bytes_as_json_document_give_the_same_result_in_both_implementations(
    data: bytes, code: int
) -> None:
    check(bytes([code]) + data)


RICH: dict[str, Any] = {
    "": [],
    "a": {"é": "\x01ü€😀", "": None, "big": 2**64 - 1},
    "b": [True, -1.5, {"n": [Decimal("-0.10"), {}]}, -(2**31)],
    "c": JsonOpaque(252, bytes(60)),
    "\uffff": "x" * 70,
    "\U00010000": 70_000,
}


@pytest.mark.parametrize("large", [False, True])
def test_json_document_with_any_bit_flipped_or_byte_cut_matches_python(large: bool) -> None:
    document = encode_document(RICH, lambda: large)
    assert check(document)
    accepted = [check(broken) for broken in every_flip(document)]
    # Flipped bits of characters and numbers are mostly valid, those of lengths and offsets are not.
    assert 0.2 < sum(accepted) / len(accepted) < 0.8
    for end in range(1, len(document)):
        assert not check(document[:end])


# Sizes around limits of the encodings: ids, offsets, counts, short strings, lines of base64.
SIZES: list[Any] = [
    *({f"k{at}": at for at in range(count)} for count in (1, 16, 17, 255, 256, 257, 70_000)),
    *([at % 3 for at in range(count)] for count in (1, 255, 256, 257, 70_000)),
    *("é" * length for length in (31, 32, 33, 127, 128, 8191, 8192)),
    *({"v": "x" * length} for length in (200, 253, 254, 255, 256, 65_530, 65_531, 65_532, 65_536)),
    *(["x" * length, 1] for length in (0xFFFFF0, 0xFFFFFA, 0xFFFFFB, 0x1000000)),
    {"k" * 65_535: 1, "k" * 65_534: {"k" * 300: [[[[]]]]}},
    [{"a": 1, "b": {"c": at}} for at in range(100)],
    *(JsonOpaque(250, b"\xff" * length) for length in (0, 1, 2, 27, 28, 56, 57, 58, 113, 114, 171)),
]


@pytest.mark.parametrize("tree", SIZES, ids=range(len(SIZES)))
def test_json_documents_of_boundary_sizes_match_python(tree: Any) -> None:
    assert check(encode_document(tree, lambda: True))


def test_json_document_over_100_levels_is_rejected_by_both_implementations() -> None:
    for levels in (99, 100, 101):
        for nest in (lambda tree: [tree], lambda tree: {"k": tree, "l": 1}):
            tree: Any = nest(1)
            for _ in range(levels - 1):
                tree = nest(tree)
            assert check(encode_document(tree)) == (levels <= 100)


def test_unordered_json_keys_are_accepted_but_duplicate_ones_rejected() -> None:
    document = encode_document({"bb": 1, "c": 2, "zz": 3, "d": 4})
    assert check(document)
    assert not check(document.replace(b"zz", b"bb"))


# (schema, strategy for stored values, most of them valid)
Values = tuple[ColumnSchema, st.SearchStrategy[bytes]]


def prefixed(size: int, raw: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    return raw.map(lambda value: len(value).to_bytes(size, "little") + value)


def packed(size: int, number: st.SearchStrategy[int], order: Any = "little") -> Any:
    return number.map(lambda value: value.to_bytes(size, order))


def _decimal(precision: int, scale: int) -> Values:
    digits = st.text("0123456789", min_size=precision, max_size=precision)
    few = st.integers(0, 10**9).map(lambda number: str(number)[-precision:].zfill(precision))
    raw = st.builds(packed_decimal, digits | few, st.just(scale), st.booleans())
    return ColumnSchema("", "decimal", precision, scale), raw


_CLOCK = st.builds(
    lambda hour, minute, second: hour << 12 | minute << 6 | second,
    st.integers(0, 23),
    st.integers(0, 59),
    st.integers(0, 59),
)
_DAY = st.tuples(st.integers(0, 9999), st.integers(0, 12), st.integers(0, 31))
_UNITS = (1, 100, 10_000, 1_000_000)


def _temporal(kind: str, fsp: int) -> Values:
    size = (fsp + 1) // 2
    fraction = packed(size, st.integers(0, _UNITS[size] - 1), "big")
    if kind == "timestamp":
        whole = packed(4, st.just(0) | st.integers(0, 2**32 - 1), "big")
    elif kind == "datetime":
        whole = st.builds(
            lambda day, clock: (
                1 << 39 | ((day[0] * 13 + day[1]) << 5 | day[2]) << 17 | clock
            ).to_bytes(5, "big"),
            _DAY,
            _CLOCK,
        )
    else:
        # TIME and its fraction are one number, so a negative TIME complements the fraction, too.
        number = st.builds(
            lambda clock, units, sign: (0x800000 << 8 * size) + sign * (clock << 8 * size | units),
            _CLOCK,
            st.integers(0, _UNITS[size] - 1),
            st.sampled_from((1, -1)),
        )
        return ColumnSchema("", kind, fsp), packed(3 + size, number, "big")
    return ColumnSchema("", kind, fsp), st.builds(lambda a, b: a + b, whole, fraction)


def _text(charset: str, codec: str, alphabet: str) -> Values:
    texts = st.text(alphabet, max_size=10) | st.text(alphabet, min_size=60, max_size=70)
    raw = texts.map(lambda text: text.encode(codec))
    return ColumnSchema("", "text", charset=charset), prefixed(2, raw)


LABELS = ("a", "é", "", "x" * 70)
COLUMNS: list[Values] = [
    *(
        (ColumnSchema("", kind, unsigned=unsigned), st.binary(min_size=size, max_size=size))
        for kind, size in [("tinyint", 1), ("smallint", 2), ("mediumint", 3), ("int", 4)]
        for unsigned in (False, True)
    ),
    *(
        (
            ColumnSchema("", "bigint", unsigned=unsigned),
            packed(8, st.integers(0, 300) | st.integers(2**63 - 200, 2**63 + 2**34))
            | st.binary(min_size=8, max_size=8),
        )
        for unsigned in (False, True)
    ),
    (ColumnSchema("", "float"), st.binary(min_size=4, max_size=4)),
    (ColumnSchema("", "double"), st.binary(min_size=8, max_size=8)),
    *(_decimal(*size) for size in [(1, 0), (10, 2), (9, 9), (18, 0), (19, 19), (38, 10), (38, 38)]),
    *(_decimal(*size) for size in [(39, 0), (65, 30)]),
    *(
        (ColumnSchema("", "bit", bits), packed((bits + 7) // 8, st.integers(0, 2**bits - 1), "big"))
        for bits in (1, 5, 8, 33, 64)
    ),
    (ColumnSchema("", "year"), st.binary(min_size=1, max_size=1)),
    (
        ColumnSchema("", "date"),
        packed(3, _DAY.map(lambda day: day[0] << 9 | day[1] << 5 | day[2])),
    ),
    *(_temporal(kind, fsp) for kind in ("time", "datetime", "timestamp") for fsp in (0, 1, 4, 6)),
    _text("utf8mb4", "utf-8", 'aé漢😀"\n'),
    _text("latin1", "cp1252", "aé€"),
    _text("gbk", "gbk", "a汉漢"),
    _text("utf16", "utf-16-be", "aé漢😀"),
    (ColumnSchema("", "binary", 70), prefixed(1, st.binary(max_size=71))),
    (ColumnSchema("", "varbinary", 300), prefixed(2, st.binary(max_size=300))),
    (ColumnSchema("", "longblob"), prefixed(4, st.binary(max_size=300))),
    (ColumnSchema("", "enum", labels=LABELS), packed(1, st.integers(0, 5))),
    (ColumnSchema("", "set", labels=LABELS), packed(1, st.integers(0, 16))),
    (ColumnSchema("", "json"), prefixed(4, st.just(b"") | ALL_TREES.map(encode_document))),
    (
        ColumnSchema("", "point"),
        prefixed(4, st.binary(max_size=4) | st.binary(min_size=5, max_size=300)),
    ),
]
# Temporal columns in the layout before 5.6.
OLD_COLUMNS: list[Values] = [
    (
        ColumnSchema("", "time", 0),
        packed(3, st.integers(0, 59) | st.integers(2**24 - 59, 2**24 - 1)),
    ),
    (
        ColumnSchema("", "datetime", 0),
        packed(
            8,
            _DAY.map(lambda day: (day[0] * 10_000 + day[1] * 100 + day[2]) * 1_000_000 + 235_959),
        ),
    ),
    (ColumnSchema("", "timestamp", 0), packed(4, st.integers(0, 2**32 - 1))),
]


class Table:
    """A table whose row images are encoded by both implementations."""

    def __init__(
        self,
        columns: list[ColumnSchema],
        *,
        old: bool = False,
        excluded: Callable[[str, str, str], bool] | None = None,
    ) -> None:
        fields = [list(expected_fields(column))[-1 if old else 0] for column in columns]
        body = table_map_body(fields, [column.nullable for column in columns])
        plan = RowPlan.make(TableMap.parse(body), simple_schema(*columns), excluded)
        self.image = plan.image(b"\xff" * ((len(columns) + 7) // 8))
        self.kernel = _documents.ImageVariants(programs(self.image, fields))
        self.payload = VariantPayload(VARIANT)

    def python(self, image: bytes) -> tuple[bytes, bytes, int] | None:
        try:
            end = self.payload.append(self.image, image, 0)
        except MySQLBinlogError:
            return None
        made: Any = self.payload.finish()[0].as_py()
        return made["value"], made["metadata"], end

    def check(self, image: bytes) -> bool:
        made, expected = self.kernel.variant(image), self.python(image)
        if made is None and expected is not None:
            # The kernel leaves a FLOAT's NaN to Python, which can change its bits.
            assert "nan" in map(str, VariantVal(*expected[:2]).toPython().values())
        else:
            assert made == expected
        return expected is not None


def programs(image: ImagePlan, fields: list[tuple[int, int]]) -> list[Any]:
    made = [
        _values.column_program(*field, column.schema, column.codec is None)
        for field, column in zip(fields, image.columns, strict=True)
    ]
    assert None not in made
    return made


NAMES = ("b", "a", "é", "srid", "wkb", "\uffff", "longer_name", "id", "A", "value")


@st.composite
def tables(draw: st.DrawFn) -> tuple[Table, list[st.SearchStrategy[bytes]]]:
    old = draw(st.sampled_from((False, False, False, True)))
    chosen = draw(st.lists(st.sampled_from(OLD_COLUMNS if old else COLUMNS), max_size=10))
    names = draw(st.permutations(NAMES))
    columns = [replace(kind, name=name) for name, (kind, _) in zip(names, chosen, strict=False)]
    excluded = draw(st.sets(st.sampled_from(NAMES), max_size=2))
    table = Table(columns, old=old, excluded=lambda *name: name[-1] in excluded)
    return table, [values for _, values in chosen]


@given(tables(), st.data())
@settings(max_examples=50)
@pytest.mark.sample(1, of=10)
def test_variants_of_random_row_images_match_python(
    made: tuple[Table, list[st.SearchStrategy[bytes]]], data: st.DataObject
) -> None:
    """Each table has several images, which are whole, with a tail, damaged, and cut."""
    table, strategies = made
    for _ in range(3):
        nulls = data.draw(st.integers(0, (1 << len(strategies)) - 1) | st.just(0))
        image = nulls.to_bytes((len(strategies) + 7) // 8, "little")
        for at, values in enumerate(strategies):
            if not nulls >> at & 1:
                image += data.draw(values)
        table.check(image)
        table.check(image + b"tail")
        if image:
            table.check(data.draw(mutations(image)))
            for end in range(max(len(image) - 20, 0), len(image)):
                table.check(image[:end])


@pytest.mark.parametrize("at", range(len(COLUMNS) + len(OLD_COLUMNS)))
def test_variants_of_every_column_type_match_python(at: int) -> None:
    """Over a third of the values must be accepted: the comparison also passes for rejected ones."""
    kind, values = [*COLUMNS, *OLD_COLUMNS][at]
    table = Table([replace(kind, name="c")], old=at >= len(COLUMNS))
    accepted = []

    @given(values)
    @settings(max_examples=60)
    def run(value: bytes) -> None:
        accepted.append(table.check(b"\x00" + value))

    run()
    assert sum(accepted) > len(accepted) / 3


@pytest.mark.parametrize("columns", [1, 8, 9, 255, 256, 257, 4096])
def test_variants_of_wide_rows_match_python(columns: int) -> None:
    """Column counts exceed one byte, and value offsets exceed one and two bytes."""
    schemas = [ColumnSchema(f"c{at}", "varbinary", 300) for at in range(columns)]
    table = Table(schemas)
    bitmap = bytes((columns + 7) // 8)
    for length in (0, 1, 255, 300, 3):
        value = length.to_bytes(2, "little") + bytes(length)
        assert table.check(bitmap + value * columns)


def test_row_variant_over_the_spark_size_limit_is_rejected() -> None:
    """One byte over the limit, the kernel rejects the row, and Python raises the error."""
    table = Table([ColumnSchema("c", "longblob")])
    # 11 is header, count, id, and two offsets of four bytes; 5 is the blob's header and length.
    size = variant.SIZE_LIMIT - 11 - 5
    image = b"\x00" + size.to_bytes(4, "little") + bytes(size)
    made = table.kernel.variant(image)
    assert made is not None
    assert len(made[0]) == variant.SIZE_LIMIT
    assert made == table.python(image)
    image = b"\x00" + (size + 1).to_bytes(4, "little") + bytes(size + 1)
    assert table.kernel.variant(image) is None
    with pytest.raises(MySQLBinlogError, match="the limit of Spark"):
        table.payload.append(table.image, image, 0)


@pytest.mark.parametrize("head", [5, 15], ids=["text", "array"])
def test_document_variant_over_the_spark_size_limit_is_rejected(head: int) -> None:
    """`head` is a text's header and length; an array adds header, count, and two offsets."""
    size = variant.SIZE_LIMIT - head
    for length in (size, size + 1):
        text = "x" * length
        document = encode_document(text if head == 5 else [text], lambda: True)
        made = VARIANTS.variant(document)
        if length > size:
            assert made is None
            with pytest.raises(MySQLBinlogError, match="the limit of Spark"):
                variant.within_limit(variant.encode_tree(parse_json(document), {}))
        else:
            assert made is not None
            assert len(made[0]) == variant.SIZE_LIMIT
            assert made == python_variant(document)


class BothImplementations(VariantPayload):
    """The Python payload, which also compares each image with the kernel's encoding."""

    __slots__ = ("_kernels", "images")

    def __init__(self) -> None:
        super().__init__(VARIANT)
        self._kernels: dict[ImagePlan, Any] = {}
        self.images = 0

    def append(self, image: ImagePlan, data: bytes, pos: int) -> int:
        if image not in self._kernels:
            schemas = [column.schema for column in image.columns if column.schema is not None]
            fields = [next(expected_fields(schema)) for schema in schemas]
            self._kernels[image] = _documents.ImageVariants(programs(image, fields))
        end = super().append(image, data, pos)
        made = self._kernels[image].variant(data[pos:])
        assert made == (self._values[-1], self._metadata[-1], end - pos)
        self.images += 1
        return end


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_variants_of_captured_logs_match_python(scenario: str) -> None:
    described, events = load(scenario)
    sides: list[BothImplementations] = []

    def payload(_side: str, _type: object) -> BothImplementations:
        sides.append(BothImplementations())
        return sides[-1]

    decoder = Decoder(
        StaticSchemas(captured_schemas(described)),
        arrow_schema(output_schema(VariantType())),
        0,
        ALL_OPERATIONS,
        payload=payload,
        file_ordinal=captured_ordinal,
    )
    rows = sum(batch.num_rows for batch in decoder.decode(events))
    assert sum(side.images for side in sides) >= rows > 0
