"""The offset as Spark stores it: a public format."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_mysqlbinlog.checkpoints.fingerprint import PositionFingerprint
from pyspark_mysqlbinlog.checkpoints.offset import PAYLOADS, Offset
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.errors import OffsetError

OFFSET = Offset(
    Position.of("mysql-bin.000003", 1234),
    server_uuid="3e11fa47-71ca-11e1-9e33-c80aa9429562",
    schemas="abc",
    prepared_xa=("X'61',X'',1",),
    fingerprint=PositionFingerprint(1_600_000_000, 7, 31, 0xFFFFFFFF),
)
STORED = (
    '{"v": 1, "epoch": 0, "file": "mysql-bin.000003", "pos": 1234,'
    ' "server_uuid": "3e11fa47-71ca-11e1-9e33-c80aa9429562", "gtid": null,'
    ' "prepared_xa": ["X\'61\',X\'\',1"], "schemas": "abc", "snapshot": "",'
    ' "fingerprint": {"created": 1600000000, "server_id": 7, "length": 31, "checksum": 4294967295}}'
)


def test_offset_version_1_is_read_and_written_byte_for_byte() -> None:
    """Existing checkpoints contain this text: a release that reads it differently breaks them."""
    assert json.dumps(OFFSET.to_dict()) == STORED
    assert Offset.from_dict(json.loads(STORED)) == OFFSET


def test_unknown_fingerprint_is_stored_as_empty_object() -> None:
    assert Offset.from_dict(changed(fingerprint={})) == replace(OFFSET, fingerprint=None)
    assert replace(OFFSET, fingerprint=None).to_dict()["fingerprint"] == {}


@given(
    st.builds(
        Offset,
        st.builds(
            Position.of, st.integers(1, 10**7).map(lambda n: f"b.{n:06d}"), st.integers(4, 2**40)
        ),
        server_uuid=st.text(max_size=5),
        schemas=st.text("abcXYZ019", max_size=5),
        payload=st.sampled_from(["", *PAYLOADS]),
        prepared_xa=st.lists(st.text(max_size=5), max_size=3).map(tuple),
        gtid=st.sampled_from([None, "", "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5"]),
        epoch=st.integers(0, 100),
        gap=st.sampled_from(["", "b.000001:4"]),
        case_insensitive=st.booleans(),
        fingerprint=st.none() | st.builds(PositionFingerprint, *[st.integers(0, 2**32 - 1)] * 2),
    )
)
def test_any_offset_survives_json_round_trip(offset: Offset) -> None:
    text = json.dumps(offset.to_dict())
    copy = Offset.from_dict(json.loads(text))
    assert copy == offset
    assert json.dumps(copy.to_dict()) == text


def test_offset_has_gap_field_only_if_there_is_a_gap() -> None:
    assert "gap" not in OFFSET.to_dict()
    *_, last = replace(OFFSET, gap="b.000001:4").to_dict().items()
    assert last == ("gap", "b.000001:4")


def test_payload_is_stored_as_prefix_of_schemas() -> None:
    offset = Offset.from_dict(changed(schemas="json:abc"))
    assert (offset.payload, offset.schemas) == ("json", "abc")
    assert offset.to_dict()["schemas"] == "json:abc"


def test_offsets_are_ordered_by_epoch_file_number_and_position() -> None:
    def offset(epoch: int, file: int, pos: int) -> Offset:
        return Offset(Position.of(f"b.{file:06d}", pos), epoch=epoch)

    ordered = [
        offset(0, 9, 4),
        offset(0, 9, 5),
        offset(0, 10, 4),
        offset(0, 1_000_000, 4),
        offset(1, 1, 4),
    ]
    orders = [each.order for each in ordered]
    assert orders == sorted(set(orders))


def changed(**changes: Any) -> dict[str, Any]:
    return {**OFFSET.to_dict(), **changes}


# (value, words of the error)
BROKEN: list[tuple[dict[str, Any], str]] = [
    ({}, "no version 'v'; the checkpoint belongs to another source"),
    ({"topic": {"0": 17}}, "belongs to another source"),
    (changed(v=2), "has version 2, this release reads up to 1; .* upgrade"),
    (changed(v=0), "version 'v' is 0, expected 1"),
    (changed(v="1"), "version 'v' is '1', expected 1"),
    (changed(v=True), "version 'v' is True"),
    (changed(v=None), "version 'v' is None"),
    (changed(pos=3), "'pos' is 3, expected 4 or more"),
    (changed(pos="4"), "'pos' is '4', expected int"),
    (changed(pos=4.0), "'pos' is 4.0, expected int"),
    (changed(pos=True), "'pos' is True, expected int"),
    (changed(epoch=None), "'epoch' is None, expected int"),
    (changed(file="x"), "'file': 'x' is not a binlog file name"),
    (changed(file=7), "'file' is 7, expected str"),
    (changed(prepared_xa="x"), "'prepared_xa' is 'x', expected list"),
    (changed(schemas=[]), "'schemas' is .*, expected str"),
    (changed(schemas="avro:abc"), "payload is 'avro', expected one of json, struct, variant"),
    (changed(fingerprint=None), "'fingerprint' is None, expected integers for created"),
    (changed(fingerprint={"created": 1}), "'fingerprint' is .*; the checkpoint is damaged"),
    (
        changed(fingerprint=PositionFingerprint(1, 1, 1231, 0).to_dict()),
        "'fingerprint' is .*; the checkpoint is damaged",
    ),
    (changed(snapshot=None), "'snapshot' is None, expected str"),
    (changed(gap=4), "'gap' is 4, expected str"),
    (changed(case_insensitive=1), "'case_insensitive' is 1, expected bool"),
]


@pytest.mark.parametrize(("value", "words"), BROKEN)
def test_invalid_offset_raises_offset_error(value: dict[str, Any], words: str) -> None:
    with pytest.raises(OffsetError, match=words):
        Offset.from_dict(value)


@pytest.mark.parametrize("name", list(OFFSET.to_dict()))
def test_offset_without_a_field_is_rejected(name: str) -> None:
    value = OFFSET.to_dict()
    del value[name]
    words = "no version" if name == "v" else f"lacks '{name}'"
    with pytest.raises(OffsetError, match=words):
        Offset.from_dict(value)


def test_unknown_offset_fields_are_ignored() -> None:
    assert Offset.from_dict(changed(more=1)) == OFFSET
