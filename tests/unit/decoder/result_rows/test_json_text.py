"""JSON texts encoded as binary documents: texts and logged documents of a 5.7.41, invalid texts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from helpers.logs.recorded_logs import load
from helpers.parity.decoding import captured_ordinal, decoder, rows_of
from helpers.replay import captured_schemas
from pyspark_mysqlbinlog.decoder.result_rows.json_text import JsonPath, Numbers, binary_json
from pyspark_mysqlbinlog.decoder.values.json_binary import json_text, parse_json
from pyspark_mysqlbinlog.errors import MalformedResultError


def made(text: str, *, all_matter: bool = False, **known: str) -> tuple[str, list[JsonPath]]:
    """Return the JSON payload of the encoded document, and the paths of its untyped numbers."""
    types: dict[JsonPath, str] = {(key,): kind for key, kind in known.items()}
    numbers = Numbers(all_matter, types)
    return json_text(parse_json(binary_json(text.encode(), "column `j`", numbers))), numbers.untyped


def test_json_text_of_select_encodes_to_the_logged_document() -> None:
    """The documents are compared by their JSON payloads."""
    described, events = load("json_docs")
    batches = decoder(captured_schemas(described), file_ordinal=captured_ordinal).decode(events)
    logged: dict[str, str] = {}
    for row in rows_of(batches):
        if row["after"] is not None:
            image = row["after"]
            key = str(json.loads(image)["id"])
            logged[key] = image
    shown = {row[0]: row[1] for row in described["tables"]["t"]["rows"]}
    assert len(shown) > 60
    for key, text in shown.items():
        found, untyped = made(text)
        assert untyped == []
        assert f'"j":{found},' in logged[key], key


@pytest.mark.parametrize(
    ("text", "payload", "untyped"),
    [
        ("5", "5", [()]),
        ("-5", "-5", [()]),
        ("18446744073709551615", "18446744073709551615", [()]),
        ("18446744073709551616", "18446744073709551616", []),
        ("-9223372036854775809", "-9223372036854775809", []),
        ("1.5", "1.5", [()]),
        ("1.50", "1.50", []),
        ("-0.00", "0.00", []),
        ("0.123456789012345678", "0.123456789012345678", []),
        ("1e300", "1e+300", []),
        ("5e-324", "5e-324", []),
        ("-0", "-0.0", []),
        ('[1, {"a": 2.5, "": [3]}]', '[1,{"a":2.5,"":[3]}]', [(0,), (1, "a"), (1, "", 0)]),
    ],
)  # fmt: skip
def test_json_text_encodes_numbers_and_lists_paths_of_untyped_ones(
    text: str, payload: str, untyped: list[JsonPath]
) -> None:
    assert made(text, all_matter=True) == (payload, untyped)
    assert made(text) == (payload, [])


@pytest.mark.parametrize(
    ("text", "double", "decimal"),
    [
        ("0.00001", "1e-05", "0.00001"),
        ("-0.000099", "-9.9e-05", "-0.000099"),
        ("0.0001", "0.0001", "0.0001"),
        ("12345.67", "12345.67", "12345.67"),
        ("7", "7", "7"),
    ],
)
def test_json_number_is_encoded_by_its_known_type(text: str, double: str, decimal: str) -> None:
    document = f'{{"k": {text}}}'
    for kind, payload in (("DOUBLE", double), ("DECIMAL", decimal)):
        for all_matter in (False, True):
            found = made(document, all_matter=all_matter, k=kind)
            assert found == (f'{{"k":{payload}}}', [])
    # If not all numbers matter, a type is missing only if its DOUBLE and DECIMAL texts differ.
    assert made(document)[1] == ([] if double == decimal else [("k",)])
    tree: Any = parse_json(binary_json(document.encode(), "j", Numbers(True, {("k",): "DOUBLE"})))
    assert isinstance(tree["k"], float)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1,]", "NaN", "Infinity", "nul", '"\\x"', '{"a" 1}', "1 2", "\ud800", '["a"', "+1"],
)
def test_invalid_json_text_raises_malformed_result_error(text: str) -> None:
    raw = text.encode("utf-8", "surrogatepass")
    with pytest.raises(MalformedResultError, match=r"^column `j` holds \d+ bytes that cannot be"):
        binary_json(raw, "column `j`", Numbers(False))


@pytest.mark.parametrize("kind", ["STRING", "", "OBJECT", "NULL"])
def test_impossible_json_type_of_a_number_is_rejected(kind: str) -> None:
    with pytest.raises(MalformedResultError, match="JSON_TYPE of the number 5"):
        made('{"k": 5}', all_matter=True, k=kind)


def test_json_text_of_too_many_levels_is_rejected() -> None:
    with pytest.raises(MalformedResultError, match="cannot be parsed as JSON"):
        made("[" * 200_000 + "]" * 200_000)


@pytest.mark.parametrize(
    "text",
    ["90071992547409.93", "-1234567890123.4567", "0.12345678901234567", "228380475.69137055"],
)
def test_json_decimal_with_more_digits_than_a_double_is_kept_exactly(text: str) -> None:
    assert made(text) == (text, [])
