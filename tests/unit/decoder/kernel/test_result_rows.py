"""Result rows encoded by both implementations: equal row images, or the same error."""

from __future__ import annotations

import pytest

from helpers.parity.result_packets import COLUMNS, END, packet, plan_of, result_value, row
from helpers.parity.result_row_parity import RowParity
from helpers.values.value_bytes import VALUES, column, text
from pyspark_mysqlbinlog.decoder.kernel.implementation import using
from pyspark_mysqlbinlog.decoder.kernel.result_rows import KernelRowImages, row_images
from pyspark_mysqlbinlog.decoder.result_rows.columns import Kind
from pyspark_mysqlbinlog.decoder.result_rows.encode import IMAGES_BYTES, Encoded, RowImages
from pyspark_mysqlbinlog.errors import MalformedResultError
from pyspark_mysqlbinlog.tables import ColumnSchema

# A DECIMAL of -0: the decoder reads it as 0, and no server writes it.
_MINUS_ZERO = "7fffffff"
STORED = [
    (described, bytes.fromhex(stored))
    for described, old, stored, _ in VALUES
    if not old and stored != _MINUS_ZERO and described.type != "json"
]
_ERROR = b"\xff\x25\x05#70100Query execution was interrupted"


def _parity(*columns: ColumnSchema) -> RowParity:
    return RowParity(plan_of(columns))


def _stored_row(parity: RowParity, *stored: bytes | None) -> bytes:
    columns = zip(parity.plan.columns, stored, strict=True)
    return row([None if raw is None else result_value(each, raw) for each, raw in columns])


def test_result_column_kinds_have_equal_numbers_in_both_implementations() -> None:
    from pyspark_mysqlbinlog.decoder.kernel import _result_rows

    kernel = {kind.name.upper(): int(kind) for kind in _result_rows.Kind}
    assert kernel == {kind.name: int(kind) for kind in Kind}
    assert {each.kind for each in plan_of([*COLUMNS, column("json")]).columns} == (
        set(Kind) - {Kind.EXCLUDED}
    )


@pytest.mark.parametrize(("described", "stored"), STORED, ids=lambda each: repr(each)[:60])
def test_result_value_is_encoded_as_in_the_binlog(described: ColumnSchema, stored: bytes) -> None:
    parity = _parity(described)
    payload = _stored_row(parity, stored)
    assert parity.encode_row(payload) == b"\xfe" + stored
    assert parity.encode(packet(payload)) == Encoded(4 + len(payload), 1, b"\xfe" + stored, False)
    assert not parity.by_hand


def test_nulls_of_any_result_column_are_set_in_the_null_bitmap() -> None:
    for count in range(1, 20):
        parity = _parity(*[column("tinyint")] * count)
        for nulls in [set(), set(range(count)), *({at} for at in range(count))]:
            values = [None if at in nulls else bytes((at,)) for at in range(count)]
            bits = sum(1 << at for at in nulls)
            unused = (1 << (count + 7) // 8 * 8) - (1 << count)
            image = (bits | unused).to_bytes((count + 7) // 8, "little") + b"".join(
                filter(None, values)
            )
            assert parity.encode_row(row(values)) == image
        assert not parity.by_hand
        # A null bit after the last column.
        payload = bytearray(row([b"x"] * count))
        if (count + 2) % 8:
            payload[(count + 9) // 8] |= 0x80
            assert isinstance(parity.encode_row(bytes(payload)), MalformedResultError)


def test_excluded_result_columns_are_not_encoded_and_must_be_null() -> None:
    parity = RowParity(
        plan_of([column("int"), text("text"), column("json")], excluded=frozenset({1, 2}))
    )
    assert parity.encode_row(row([b"abcd", None, None])) == b"\xfeabcd"
    assert not parity.by_hand
    assert isinstance(parity.encode_row(row([b"abcd", b"\x01x", None])), MalformedResultError)


def test_result_row_of_every_type_is_encoded_and_rejected_if_cut_or_extended() -> None:
    stored = dict(STORED)
    parity = _parity(*stored)
    image = bytes((len(stored) + 7) // 8 - 1) + (0xFF << len(stored) % 8 & 0xFF).to_bytes(1, "big")
    payload = _stored_row(parity, *stored.values())
    assert parity.encode_row(payload) == image + b"".join(stored.values())
    assert not parity.by_hand
    for size in range(len(payload)):
        assert isinstance(parity.encode_row(payload[:size]), MalformedResultError)
    assert isinstance(parity.encode_row(payload + b"\x00"), MalformedResultError)


def test_result_buffer_cut_anywhere_encodes_its_complete_rows() -> None:
    parity = _parity(column("int"), text("varchar", 10))
    rows = [
        row([pack, text]) for pack, text in ((b"1234", b"\x02ab"), (b"5678", None), (None, None))
    ]
    packets = b"".join(map(packet, rows))
    ends = [0]
    for payload in rows:
        ends.append(ends[-1] + 4 + len(payload))
    for size in range(len(packets) + 1):
        found = parity.encode(packets[:size])
        assert isinstance(found, Encoded)
        assert found.consumed == max(end for end in ends if end <= size)
        assert found.rows == ends.index(found.consumed)
        assert not found.ended


@pytest.mark.parametrize("end", [END, _ERROR])
def test_packet_that_ends_the_result_rows_is_not_consumed(end: bytes) -> None:
    parity = _parity(column("int"))
    first = packet(row([b"1234"]))
    assert parity.encode(first + packet(end)) == Encoded(len(first), 1, b"\xfe1234", True)
    assert parity.encode(packet(end)) == Encoded(0, 0, b"", True)
    # An incomplete packet does not end the rows: the whole error is needed.
    assert parity.encode(packet(end)[:-1]) == Encoded(0, 0, b"", False)


def test_result_row_of_several_packets_is_not_consumed() -> None:
    parity = _parity(text("longtext"))
    first = packet(row([b"\x01a"]))
    for rest in (b"\xff\xff\xff\x01\x00", b"\xff\xff\xff\x01" + bytes(0xFFFFFF)):
        assert parity.encode(first + rest) == Encoded(
            len(first), 1, b"\xfe\x01\x00\x00\x00a", False
        )


def test_empty_packet_is_rejected_once_more_bytes_follow() -> None:
    parity = _parity(column("int"))
    assert parity.encode(b"\x00\x00\x00\x01") == Encoded(0, 0, b"", False)
    assert isinstance(parity.encode(b"\x00\x00\x00\x01\x00"), MalformedResultError)


def test_one_encode_returns_row_images_up_to_the_byte_limit() -> None:
    parity = _parity(text("mediumtext"))
    payload = row([b"\xfc\xff\x0f" + bytes(0x0FFF)])
    found = parity.encode(packet(payload) * 20)
    assert isinstance(found, Encoded)
    assert found.rows == IMAGES_BYTES // 0x1000
    assert len(found.images) >= IMAGES_BYTES
    assert not parity.by_hand
    # A row larger than the limit is returned whole.
    large = row([b"\xfd" + (2 << 20).to_bytes(3, "little") + bytes(2 << 20)])
    found = parity.encode(packet(large) * 2)
    assert isinstance(found, Encoded)
    assert found.rows == 1


@pytest.mark.parametrize("described", COLUMNS, ids=lambda each: repr(each)[:60])
def test_damaged_result_row_gives_the_same_result_in_both_implementations(
    described: ColumnSchema,
) -> None:
    """Every byte is replaced by others: most rows become invalid, some get other values."""
    parity = _parity(described, column("tinyint"))
    sizes = (parity.plan.columns[0].size,)
    stored = [raw for kind, raw in STORED if kind == described] or [_zeros(parity, *sizes)]
    refused = 0
    for raw in stored:
        payload = _stored_row(parity, raw, b"\x07")
        assert isinstance(parity.encode_row(payload), bytes)
        assert not parity.by_hand
        for at in range(len(payload)):
            for byte in (0, 1, 0x2D, 0x2E, 0x30, 0x3A, 0x7F, 0x80, 0xFA, 0xFB, 0xFC, 0xFE, 0xFF):
                damaged = payload[:at] + bytes((byte,)) + payload[at + 1 :]
                refused += not isinstance(parity.encode_row(damaged), bytes)
        parity.by_hand.clear()
    assert refused


def _zeros(parity: RowParity, size: int) -> bytes:
    """Return a stored value for a column type that VALUES does not contain."""
    selected = parity.plan.columns[0]
    match selected.kind:
        case Kind.DECIMAL:
            return b"\x80" + bytes(size - 1)
        case Kind.TIME | Kind.DATETIME:
            return b"\x80" + bytes(size - 1)
        case _:
            return bytes(size)


def test_row_images_use_the_selected_implementation() -> None:
    plan = plan_of([column("int")])
    with using("python"):
        assert isinstance(row_images(plan), RowImages)
    with using("c"):
        assert isinstance(row_images(plan), KernelRowImages)
