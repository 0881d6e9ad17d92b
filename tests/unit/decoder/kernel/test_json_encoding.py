"""JSON texts as binary documents: equal bytes, or an error, in both implementations."""

from __future__ import annotations

import json

import pytest

from helpers.parity.result_packets import counted, plan_of, row
from helpers.parity.result_row_parity import RowParity
from helpers.values.value_bytes import column
from pyspark_mysqlbinlog.decoder.result_rows.json_types import UntypedNumbers
from pyspark_mysqlbinlog.decoder.values.json_binary import json_text, parse_json
from pyspark_mysqlbinlog.errors import MalformedResultError

PLAIN = RowParity(plan_of([column("json")]))
TYPED = RowParity(plan_of([column("json")], typed_json=True))
# As of servers from 8.0 on, which show an integral DOUBLE as `5.0`.
NEWER = RowParity(plan_of([column("json")], doubles_have_points=True))

# Texts that the kernel encodes without the Python implementation.
TEXTS = r"""
null
true
false
"a"
""
0
-1
32767
-32768
32768
-32769
2147483647
-2147483648
2147483648
9223372036854775807
-9223372036854775808
9223372036854775808
18446744073709551615
18446744073709551616
-9223372036854775809
123456789012345678901234567890
-0
1.5
-1.5
0.1
0.30000000000000004
3.141592653589793
1e300
-1.5e-7
2.2250738585072014e-308
4.9e-324
1.50
0.00
-0.50
0.000
1234567890.1234567890
0.123456789012345678
90071992547409.93
-1234567890123.4567
0.12345678901234567
228380475.69137055
0.00012345678901234567
-123456789012345678.90
[]
{}
[[], {}, [[]]]
[1, "two", 3.5, null, true, false, 70000, 3000000000, 18446744073709551615]
{"": 1, "a": -1, "bb": [], "c\"d": "x\ty\\z\/\b\f\n\r\u0001"}
{"ключ": "значение", "键": "値", "e": "😀é"}
 [ 1 ,	{ "a" : 2 } ]
{"a": 1, "a": 2}
""".strip("\n").split("\n")

# Texts that the kernel leaves to the Python implementation, which accepts some of them.
ODD = [
    "",
    " ",
    "nul",
    "nullx",
    "[1,]",
    "[1 2]",
    "[",
    '{"a"}',
    '{"a":}',
    '{"a":1,}',
    "{1:2}",
    '"a',
    '"\\x"',
    '"\\u12"',
    '"\\u00e9"',
    '"\\ud83d\\ude00"',
    '"\\ud83d"',
    "01",
    "-",
    "1.",
    ".5",
    "1e",
    "+1",
    "1e999",
    "NaN",
    "-Infinity",
    "0.00001",
    "-0.00005",
    "[1] 2",
    "9" * 82,
    "[" * 101 + "]" * 101,
    '{"' + "k" * 65536 + '": 1}',
]


def document_of(parity: RowParity, text: bytes) -> bytes | Exception:
    """Return the document that both implementations make of a text, or their error."""
    parity.by_hand.clear()
    image = parity.encode_row(row([counted(text)]))
    if isinstance(image, bytes):
        assert image[:1] == b"\xfe"
        assert int.from_bytes(image[1:5], "little") == len(image) - 5
        return image[5:]
    return image


def encoded(text: str) -> bytes:
    """Return the document of a text; the kernel must encode it without Python."""
    document = document_of(PLAIN, text.encode())
    assert isinstance(document, bytes), document
    assert not PLAIN.by_hand
    return document


@pytest.mark.parametrize("text", TEXTS)
def test_json_text_encodes_to_an_equal_document_in_both_implementations(text: str) -> None:
    shown = json_text(parse_json(encoded(text))) if '"a": 1, "a"' not in text else text
    # Numbers with a point or an exponent are compared as floats: a DOUBLE has no more digits.
    assert json.loads(shown) == json.loads(text)


@pytest.mark.parametrize("text", ODD, ids=lambda text: repr(text[:20]))
def test_kernel_falls_back_to_python_for_unusual_json_text(text: str) -> None:
    document_of(PLAIN, text.encode())
    assert PLAIN.by_hand


def test_json_text_with_invalid_utf8_or_bom_is_rejected() -> None:
    for raw in (b'"\xff"', b'"\xc3"', b'"\xed\xa0\x80"', b'\xef\xbb\xbf"a"'):
        assert isinstance(document_of(PLAIN, raw), MalformedResultError)


@pytest.mark.parametrize("text", TEXTS)
def test_kernel_falls_back_to_python_only_for_untyped_json_numbers(text: str) -> None:
    """The kernel uses only number types that the text shows; it assumes none."""
    document = document_of(TYPED, text.encode())
    assert isinstance(document, UntypedNumbers) == bool(TYPED.by_hand)


@pytest.mark.parametrize(
    ("text", "document"),
    [
        ("5.0", None),
        ("-1234567.0", None),
        ("0.0", None),
        ("[1.0]", None),
        ("-0.0", b"\x0b" + bytes(7) + b"\x80"),
        ("5.00", b"\x0f\xf6\x04\x03\x02\x85\x00"),
        ("5", b"\x05\x05\x00"),
        ("1.5", b"\x0b" + bytes(6) + b"\xf8\x3f"),
        ("1e20", b"\x0b\x40\x8c\xb5\x78\x1d\xaf\x15\x44"),
    ],
)
def test_json_number_of_possible_double_or_decimal_is_untyped_from_8_0_on(
    text: str, document: bytes | None
) -> None:
    """5.0 can be a DOUBLE or a DECIMAL, so the server must be queried for its type."""
    found = document_of(NEWER, text.encode())
    if document is None:
        assert isinstance(found, UntypedNumbers)
    else:
        assert found == document
        assert not NEWER.by_hand


@pytest.mark.parametrize("kind", ["array", "object", "text"])
def test_json_documents_around_64_kib_encode_to_equal_values(kind: str) -> None:
    for size in (65_520, 65_525, *range(65_526, 65_540), 70_000, 200_000):
        filler = "x" * size
        texts = {
            "array": [f'["{filler}", 1, 70000]', f'["{filler}", [1, -70000, 3000000000]]'],
            "object": [
                f'{{"a": 70000, "b": "{filler}", "c": [-1]}}',
                f'{{"": {{"k": "{filler}"}}}}',
            ],
            "text": [f'"{filler}"'],
        }[kind]
        for text in texts:
            assert parse_json(encoded(text)) == json.loads(text)


def test_json_containers_of_many_elements_encode_to_equal_values() -> None:
    # The numbers are inline in the array's header: 3 bytes each, after 4 bytes.
    for count in (21_842, 21_843, 21_844, 65_535, 65_536):
        numbers = [at % 65_536 - 32_768 for at in range(count)]
        assert parse_json(encoded(json.dumps(numbers))) == numbers
    # Each member with its key of five bytes takes 12 bytes.
    for count in (5_460, 5_461, 5_462, 65_536):
        members = {f"{at:05}": -at % 32_768 for at in range(count)}
        assert parse_json(encoded(json.dumps(members))) == members


def test_json_text_of_100_levels_encodes_to_equal_values() -> None:
    text = '{"a": [' * 50 + "1" + "]}" * 50
    assert parse_json(encoded(text)) == json.loads(text)


def test_columns_around_longer_json_documents_are_kept() -> None:
    """These documents are longer than their texts, but must not overwrite other columns."""
    parity = RowParity(plan_of([column("int"), column("json"), column("json"), column("int")]))
    for count in (1, 100, 5_000):
        text = "[" + ",".join(["1"] * count) + "]"
        values = [b"1234", counted(text.encode()), counted(text.encode()), b"5678"]
        image = parity.encode_row(row(values))
        assert isinstance(image, bytes)
        assert image[:5] == b"\xf01234"
        assert image[-4:] == b"5678"
        assert len(image) > 2 * len(text)
    assert not parity.by_hand


@pytest.mark.parametrize("text", [text for text in TEXTS if len(text) < 80])
def test_damaged_json_text_gives_the_same_result_in_both_implementations(text: str) -> None:
    raw = text.encode()
    for at in range(len(raw)):
        for byte in b'0-.e"\\]{,:u \x00\xff':
            document_of(PLAIN, raw[:at] + bytes((byte,)) + raw[at + 1 :])
            document_of(TYPED, raw[:at] + bytes((byte,)) + raw[at:])
        document_of(PLAIN, raw[:at] + raw[at + 1 :])
        document_of(PLAIN, raw[:at])
