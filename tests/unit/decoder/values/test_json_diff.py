"""JSON diffs applied to binary documents, compared with the same changes of Python trees."""

from __future__ import annotations

import copy
import json
import random
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.values.json_documents import TREES, encode_document, mutations
from pyspark_mysqlbinlog.decoder.values.json_binary import parse_json
from pyspark_mysqlbinlog.decoder.values.json_diff import apply_diffs
from pyspark_mysqlbinlog.errors import MalformedEventError
from pyspark_mysqlbinlog.protocol.wire import lenenc_int

REPLACE, INSERT, REMOVE = 0, 1, 2
Path = list[str | int]


def path_text(path: Path) -> str:
    legs = (f"[{leg}]" if isinstance(leg, int) else f".{json.dumps(leg)}" for leg in path)
    return "$" + "".join(legs)


def diff(operation: int, path: str, value: Any = None) -> bytes:
    text = path.encode()
    raw = bytes((operation,)) + lenenc_int(len(text)) + text
    if operation == REMOVE:
        return raw
    document = encode_document(value)
    return raw + lenenc_int(len(document)) + document


def applied(tree: Any, *diffs: bytes) -> Any:
    return parse_json(apply_diffs(encode_document(tree), b"".join(diffs), "column `j`"))


DOCUMENT = {
    "a": 1,
    "b": [1, 2, {"c": "x"}],
    "é": None,
    "a b": {"d": -7},
    'q"': True,
    "long": "y" * 300,
}
# (diffs, the document's change)
CASES: list[tuple[list[bytes], dict[str, Any]]] = [
    ([], {}),
    ([diff(REPLACE, "$.a", 99)], {"a": 99}),
    ([diff(REPLACE, "$.a", -40_000)], {"a": -40_000}),
    ([diff(REPLACE, "$.a", {"x": [1]})], {"a": {"x": [1]}}),
    ([diff(REPLACE, "$.b[2].c", "new")], {"b": [1, 2, {"c": "new"}]}),
    ([diff(REPLACE, "$.b[last]", 5)], {"b": [1, 2, 5]}),
    ([diff(REPLACE, "$.b[last-2]", 5)], {"b": [5, 2, {"c": "x"}]}),
    ([diff(REPLACE, '$."a b".d', 1 << 40)], {"a b": {"d": 1 << 40}}),
    ([diff(REPLACE, '$."a b"."d"', None)], {"a b": {"d": None}}),
    ([diff(REPLACE, '$."q\\""', False)], {'q"': False}),
    ([diff(REPLACE, "$.é", "ü")], {"é": "ü"}),
    ([diff(INSERT, "$.b[0]", 0)], {"b": [0, 1, 2, {"c": "x"}]}),
    ([diff(INSERT, "$.b[3]", 4)], {"b": [1, 2, {"c": "x"}, 4]}),
    ([diff(INSERT, "$.b[99]", 4)], {"b": [1, 2, {"c": "x"}, 4]}),
    ([diff(INSERT, "$.b[2].e", 4)], {"b": [1, 2, {"c": "x", "e": 4}]}),
    ([diff(INSERT, "$.new", [])], {"new": []}),
    ([diff(REMOVE, "$.b[0]"), diff(REMOVE, "$.b[0]")], {"b": [{"c": "x"}]}),
    ([diff(REPLACE, "$.a", 2), diff(REPLACE, "$.b", 3)], {"a": 2, "b": 3}),
    ([diff(REPLACE, "$.long", "z" * 70_000)], {"long": "z" * 70_000}),
]


@pytest.mark.parametrize(("diffs", "change"), CASES)
def test_json_diffs_replace_insert_and_remove_values(
    diffs: list[bytes], change: dict[str, Any]
) -> None:
    found = applied(DOCUMENT, *diffs)
    assert found == {**DOCUMENT, **change}


def test_json_diff_removes_an_object_member() -> None:
    assert applied(DOCUMENT, diff(REMOVE, "$.long")) == {
        key: value for key, value in DOCUMENT.items() if key != "long"
    }


def test_keys_inserted_by_json_diffs_are_in_server_order() -> None:
    found = applied(
        {"b": 1, "d": 2, "aa": 3}, *(diff(INSERT, f"$.{key}", 0) for key in ("c", "ab", "e"))
    )
    assert list(found) == ["b", "c", "d", "e", "aa", "ab"]


# (diff, part of the error message)
WRONG: list[tuple[bytes, str]] = [
    (diff(REPLACE, "$.none", 1), "nothing is there"),
    (diff(REPLACE, "$.b[3]", 1), "nothing is there"),
    (diff(REPLACE, "$.b[last-3]", 1), "nothing is there"),
    (diff(REMOVE, "$.none"), "nothing is there"),
    (diff(INSERT, "$.a", 1), "the member exists"),
    (diff(INSERT, "$.none.x", 1), "nothing is there"),
    (diff(INSERT, "$.a.x", 1), "no object or array"),
    (diff(INSERT, "$.b.x", 1), "an array has no members"),
    (diff(REPLACE, "$[0]", 1), "an object has no cells"),
    (diff(REPLACE, "$", 1), "not one of names and array cells"),
    (diff(REPLACE, "", 1), "not one of names and array cells"),
    (diff(REPLACE, "$.*", 1), "not one of names and array cells"),
    (diff(REPLACE, "$**.a", 1), "not one of names and array cells"),
    (diff(REPLACE, "$.b[-1]", 1), "not one of names and array cells"),
    (diff(REPLACE, "$.b[", 1), "not one of names and array cells"),
    (diff(REPLACE, "a", 1), "not one of names and array cells"),
    (diff(REPLACE, "$" + ".a" * 101, 1), "not one of names and array cells"),
    (b"\x03\x03$.a", "operation 3, expected 0 to 2"),
    (b"\x00\x03$.a", "cut short"),
    (b"\x00\x03$.a\x00", "an empty value"),
    (b"\x02\xfa$.a", "cut short"),
    (b"\x02\x03$.\xff", "the path is not UTF-8"),
    (b"\x02", "cut short"),
]


@pytest.mark.parametrize(("diffs", "message"), WRONG)
def test_invalid_json_diff_raises_malformed_event_error(diffs: bytes, message: str) -> None:
    with pytest.raises(MalformedEventError) as caught:
        applied(DOCUMENT, diffs)
    assert message in caught.value.message
    assert "column `j`" in caught.value.message


def places(tree: Any, path: Path) -> list[Path]:
    """Return the paths of all values below a tree."""
    members = (
        tree.items()
        if isinstance(tree, dict)
        else enumerate(tree)
        if isinstance(tree, list)
        else ()
    )
    return [
        found for leg, value in members for found in ([*path, leg], *places(value, [*path, leg]))
    ]


def at(tree: Any, path: Path) -> Any:
    for leg in path:
        tree = tree[leg]
    return tree


def change(tree: Any, made: random.Random, value: Any) -> bytes | None:
    """Change the tree at random, in place; return the diff, or None if nothing can be changed."""
    everywhere = places(tree, [])
    containers = [path for path in ([], *everywhere) if isinstance(at(tree, path), (dict, list))]
    if not containers:
        return None
    operation = made.choice((REPLACE, INSERT, REMOVE)) if everywhere else INSERT
    if operation == INSERT:
        path = made.choice(containers)
        parent = at(tree, path)
        leg: str | int = made.randrange(len(parent) + 1)
        if isinstance(parent, list):
            parent.insert(int(leg), value)
        else:
            leg = f"new {made.randrange(1 << 30)}"
            parent[leg] = value
        return diff(INSERT, path_text([*path, leg]), value)
    path = made.choice(everywhere)
    parent = at(tree, path[:-1])
    if operation == REMOVE:
        del parent[path[-1]]
        return diff(REMOVE, path_text(path))
    parent[path[-1]] = value
    return diff(REPLACE, path_text(path), value)


@given(TREES, st.lists(TREES, min_size=1, max_size=6), st.booleans(), st.integers(0, 1 << 32))
def test_random_json_diffs_equal_the_same_changes_of_the_tree(
    tree: Any, values: list[Any], large: bool, seed: int
) -> None:
    made = random.Random(seed)
    document = encode_document(tree, lambda: large)
    expected = copy.deepcopy(tree)
    diffs = [change(expected, made, copy.deepcopy(value)) for value in values]
    found = apply_diffs(document, b"".join(each for each in diffs if each), "column `j`")
    assert parse_json(found) == expected


@given(TREES.flatmap(lambda tree: mutations(encode_document(tree))), st.integers(0, 1 << 32))
def test_json_diff_of_damaged_document_raises_only_malformed_event_error(
    document: bytes, seed: int
) -> None:
    made = random.Random(seed)
    legs = "".join(made.choice((".a", "[0]", "[last]", ".b")) for _ in range(made.randrange(1, 4)))
    try:
        apply_diffs(document, diff(made.randrange(2), f"${legs}", 1), "column `j`")
    except MalformedEventError:
        return


def test_json_diffs_switch_between_small_and_large_offsets() -> None:
    many = {f"k{n:05}": "v" * 20 for n in range(3000)}
    grown = apply_diffs(encode_document({"a": {}}), diff(REPLACE, "$.a", 1), "x")
    grown = apply_diffs(grown, diff(INSERT, "$.many", []), "x")
    for key, value in list(many.items())[:50]:
        grown = apply_diffs(grown, diff(INSERT, f"$.{key}", value * 100), "x")
    assert grown[0] == 1
    assert struct.unpack_from("<I", grown, 1)[0] == 52
    for key in list(many)[:50]:
        grown = apply_diffs(grown, diff(REMOVE, f"$.{key}"), "x")
    assert grown[0] == 0
    assert parse_json(grown) == {"a": 1, "many": []}
