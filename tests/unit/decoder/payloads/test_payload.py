"""The JSON payload: its text, and the methods of its builder."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.parity.decoding import simple_schema, table_map_for
from pyspark_mysqlbinlog.decoder.payloads.payload import JsonPayload, skip_image
from pyspark_mysqlbinlog.decoder.payloads.plan import RowPlan
from pyspark_mysqlbinlog.errors import MalformedEventError
from pyspark_mysqlbinlog.tables import ColumnSchema as C

ODD = simple_schema(C('q"\\', "tinyint"), C("漢 字", "tinyint"), C("n", "tinyint"))
PLAN = RowPlan.make(table_map_for(ODD), ODD)

FORMS = [
    (b"\x07", "00 01 02 03", '{"q\\"\\\\":1,"漢 字":2,"n":3}'),
    (b"\xff", "f8 01 02 03", '{"q\\"\\\\":1,"漢 字":2,"n":3}'),
    (b"\x07", "01 02 03", '{"q\\"\\\\":null,"漢 字":2,"n":3}'),
    (b"\x07", "06 01", '{"q\\"\\\\":1,"漢 字":null,"n":null}'),
    (b"\x07", "07", '{"q\\"\\\\":null,"漢 字":null,"n":null}'),
    (b"\x06", "00 02 03", '{"漢 字":2,"n":3}'),
    (b"\x04", "01", '{"n":null}'),
    (b"\x00", "", "{}"),
]


@pytest.mark.parametrize(("present", "image", "expected"), FORMS)
def test_row_image_becomes_json_of_its_present_columns(
    present: bytes, image: str, expected: str
) -> None:
    builder = JsonPayload(pa.string())
    data = b"\xee" + bytes.fromhex(image) + b"\xee"
    for _ in range(2):  # compiled, then from the cache
        assert builder.append(PLAN.image(present), data, 1) == len(data) - 1
    assert skip_image(PLAN.image(present), data, 1) == len(data) - 1
    builder.append_null()
    array = builder.finish()
    assert array.type == pa.string()
    assert array.to_pylist() == [expected, expected, None]
    assert builder.finish().to_pylist() == []


@pytest.mark.parametrize("length", range(3))
def test_skip_of_a_truncated_row_image_is_rejected(length: int) -> None:
    with pytest.raises(MalformedEventError, match="cut short"):
        skip_image(PLAN.image(b"\x03"), b"\x00\x01\x02"[:length], 0)


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=60))
def test_any_text_round_trips_through_the_json_payload(text: str) -> None:
    schema = simple_schema(C("v", "varchar", 1000, charset="utf8mb4"))
    plan = RowPlan.make(table_map_for(schema), schema)
    raw = text.encode()
    data = b"\xfe" + len(raw).to_bytes(2, "little") + raw
    builder = JsonPayload(pa.string())
    assert builder.append(plan.image(b"\xff"), data, 0) == len(data)
    shown = str(builder.finish()[0])
    assert json.loads(shown) == {"v": text}
    # Only quotes, backslashes and control characters are escaped; the rest is raw UTF-8.
    assert len(shown) - len('{"v":""}') <= sum(
        6 if c < " " else 2 if c in '"\\' else 1 for c in text
    )


def test_caches_of_compiled_row_images_are_bounded() -> None:
    schema = simple_schema(*(C(f"c{at}", "tinyint") for at in range(600)))
    plan = RowPlan.make(table_map_for(schema), schema)
    builder = JsonPayload(pa.string())
    image = plan.image(b"\xff" * 75)
    for seed in range(200):
        nulls = (1 << 600) - 1 - (1 << seed)
        builder.append(image, nulls.to_bytes(75, "little") + b"\x05", 0)
        assert len(image.cache) <= 28
    for at, text in enumerate(builder.finish()):
        assert json.loads(str(text))[f"c{at}"] == 5
    for count in range(300):
        plan.image(count.to_bytes(75, "little"))
        assert len(plan._images) <= 256
