"""Schema versions by position, and their text in offsets."""

from __future__ import annotations

import base64
import bz2
import json
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_mysqlbinlog.checkpoints import schema_packing
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.errors import OffsetError
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema


def at(pos: int, number: int = 1) -> Position:
    return Position.of(f"mysql-bin.{number:06d}", pos)


def table(name: str, *columns: str, database: str = "shop") -> TableSchema:
    return TableSchema(
        database, name, tuple(ColumnSchema(column, "int") for column in columns), columns[:1]
    )


A, B = table("orders", "id"), table("orders", "id", "total")
KNOWN = SchemaHistory().with_table(at(100), A)
DROPPED = KNOWN.without(at(200), "shop", "orders", "x", is_dropped=True)


def test_history_until_position_includes_version_that_starts_there() -> None:
    history = KNOWN.with_table(at(200), B).with_table(at(200), table("other", "id"))
    assert history.until(at(199)) == KNOWN
    assert history.until(at(200)) == history
    assert list(history.until(at(99)).tables()) == []


def test_schema_version_holds_from_its_start_to_the_next() -> None:
    history = SchemaHistory().with_table(at(100), A).with_table(at(50, 2), B)
    seen = [
        history.at(position, "shop", "orders")
        for position in (
            at(99),
            at(100),
            at(10**10),
            at(4, 2),
            at(49, 2),
            at(50, 2),
            at(4, 1000000),
        )
    ]
    assert seen == [None, A, A, A, A, B, B]
    assert history.at(at(100), "shop", "Orders") is None
    assert history.at(at(100), "other", "orders") is None


def test_table_of_unknown_columns_exists_until_it_is_dropped() -> None:
    history = SchemaHistory().without(at(100), "shop", "orders", "altered")
    history = history.without(at(200), "shop", "orders", "x", is_dropped=True).with_table(
        at(300), A
    )
    found = [history.exists(at(pos), "shop", "orders") for pos in (99, 100, 199, 200, 299, 300)]
    assert found == [None, True, True, False, False, True]
    assert history.exists(at(300), "shop", "Orders") is None


def test_valid_range_of_schema_version_ends_at_next_version_in_same_file() -> None:
    history = SchemaHistory().with_table(at(100), A).with_table(at(200), B)
    history = history.with_table(at(50, 3), A)
    spans = {
        at(4): (0, 100),
        at(99): (0, 100),
        at(100): (100, 200),
        at(200): (200, None),
        at(10**10): (200, None),
        at(4, 2): (0, None),
        at(4, 3): (0, 50),
        at(50, 3): (50, None),
        at(4, 4): (0, None),
    }
    assert {each: history.valid_range(each, "shop", "orders") for each in spans} == spans
    assert history.valid_range(at(100), "shop", "other") == (0, None)
    # For each position, `at` returns the same schema at both ends of the valid range.
    for each in (at(pos, number) for number in (1, 2, 3) for pos in range(4, 230)):
        first, end = history.valid_range(each, "shop", "orders")
        assert first <= each.pos
        assert end is None or each.pos < end
        last = each._replace(pos=10**12 if end is None else end - 1)
        known = history.at(each, "shop", "orders")
        for edge in (each._replace(pos=first), last):
            assert history.at(edge, "shop", "orders") == known


def test_unknown_schema_has_a_reason_and_known_schema_has_none() -> None:
    history = SchemaHistory().with_table(at(100), A).without(at(200), "shop", "orders", "altered")
    assert "CREATE TABLE" in history.unknown_reason(at(99), "shop", "orders")
    assert history.unknown_reason(at(100), "shop", "orders") == ""
    assert history.unknown_reason(at(200), "shop", "orders") == "altered"
    assert history.at(at(200), "shop", "orders") is None
    assert history.with_table(at(300), B).at(at(300), "shop", "orders") == B


def test_history_is_independent_of_order_of_added_versions() -> None:
    later_first = SchemaHistory().with_table(at(200), B).with_table(at(100), A)
    assert later_first == SchemaHistory().with_table(at(100), A).with_table(at(200), B)
    assert hash(later_first) == hash(SchemaHistory().with_table(at(100), A).with_table(at(200), B))


def test_schema_version_with_same_start_replaces_the_earlier_one() -> None:
    history = SchemaHistory().with_table(at(100), A).with_table(at(100), B)
    assert history.at(at(100), "shop", "orders") == B
    assert len(history.versions("shop", "orders")) == 1


def test_unchanged_schema_adds_no_version() -> None:
    history = SchemaHistory().with_table(at(100), A)
    assert history.with_table(at(200), A) is history


def test_added_version_leaves_old_history_and_other_tables_unchanged() -> None:
    other = table("lines", "id")
    before = SchemaHistory().with_table(at(4), A).with_table(at(4), other)
    after = before.with_table(at(9), B)
    assert before.at(at(9), "shop", "orders") == A
    assert after.versions("shop", "lines") is before.versions("shop", "lines")


@pytest.mark.parametrize(
    ("history", "position", "starts"),
    [
        (KNOWN.with_table(at(200), B), at(4), [100, 200]),
        (KNOWN.with_table(at(200), B), at(199), [0, 200]),
        (KNOWN.with_table(at(200), B), at(200), [0]),
        (KNOWN.without(at(200), "shop", "orders", "x"), at(300), [0]),
        (DROPPED, at(100), [0, 200]),
        (DROPPED, at(200), []),
        (DROPPED.with_table(at(300), B), at(250), [300]),
        (DROPPED.with_table(at(300), B), at(150), [0, 200, 300]),
    ],
)  # fmt: skip
def test_versions_not_visible_from_a_position_are_dropped(
    history: SchemaHistory, position: Position, starts: list[int]
) -> None:
    needed = history.from_position(position)
    assert [start.pos for start, _ in needed.versions("shop", "orders")] == starts
    for later in (position, at(position.pos + 60), at(4, 2)):
        assert needed.at(later, "shop", "orders") == history.at(later, "shop", "orders")


def test_select_keeps_only_matching_tables() -> None:
    history = SchemaHistory().with_table(at(4), A).with_table(at(4), table("t", "id", database="z"))
    assert list(history.select(lambda database, _: database == "z").tables()) == [("z", "t")]
    assert history.select(lambda *_: True) is history


# Usual names, and arbitrary ones.
_names = st.one_of(
    st.from_regex(r"\A[a-z]{1,4}(_[a-z0-9]{1,3}){0,3}\Z"),
    st.from_regex(r"\A[A-Za-z_]{1,9}\Z"),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=9),
)
_columns = st.builds(
    ColumnSchema,
    name=_names,
    type=st.sampled_from(["int", "varchar", "enum"]),
    length=st.none() | st.integers(0, 65535),
    scale=st.none() | st.integers(0, 30),
    unsigned=st.booleans(),
    charset=st.none() | st.sampled_from(["utf8mb4", "latin1"]),
    labels=st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=4), max_size=3).map(
        tuple
    ),
    nullable=st.booleans(),
    virtual=st.sampled_from([False, True, None]),
    generated=st.booleans(),
)
_schemas = st.builds(
    TableSchema,
    database=st.sampled_from(["a", "b c"]),
    table=_names,
    columns=st.lists(_columns, max_size=5, unique_by=lambda column: column.name).map(tuple),
    charset=st.none() | st.just("utf8mb4"),
).flatmap(
    lambda schema: st.lists(
        st.sampled_from([column.name for column in schema.columns] or [""]), unique=True, max_size=2
    ).map(lambda key: replace(schema, primary_key=tuple(key) if schema.columns else ()))
)
_positions = st.builds(at, st.integers(4, 2**40), st.integers(1, 3))


@given(
    st.lists(st.tuples(_positions, _schemas, st.sampled_from(["", "why", "dropped"])), max_size=8)
)
def test_any_history_survives_packing(changes: list[tuple[Position, TableSchema, str]]) -> None:
    def apply(history: SchemaHistory, change: tuple[Position, TableSchema, str]) -> SchemaHistory:
        position, schema, reason = change
        if not reason:
            return history.with_table(position, schema)
        is_dropped = reason == "dropped"
        return history.without(
            position, schema.database, schema.table, reason, is_dropped=is_dropped
        )

    history = SchemaHistory()
    for change in changes:
        history = apply(history, change)
    text = history.pack()
    again = SchemaHistory.unpack(text)
    assert again == history
    assert again.pack() == text
    assert text.isascii() and '"' not in text and "\\" not in text


def test_equal_histories_pack_to_equal_text() -> None:
    tables = [table(f"t{index}", "id", f"c{index % 7}") for index in range(50)]
    texts = set()
    for seed in range(5):
        random.Random(seed).shuffle(tables)
        history = SchemaHistory()
        for schema in tables:
            history = history.with_table(at(4), schema)
        texts.add(history.pack())
    assert len(texts) == 1


def test_empty_text_and_packed_empty_history_unpack_to_empty_history() -> None:
    assert SchemaHistory.unpack("") == SchemaHistory()
    assert SchemaHistory.unpack(SchemaHistory().pack()) == SchemaHistory()


PACKED = KNOWN.with_table(at(200), B).pack()


def compressed(plain: bytes) -> str:
    return base64.b85encode(bz2.compress(plain)).decode()


def changed(change: str, to: str) -> str:
    """Return PACKED with a change of its JSON."""
    plain = bz2.decompress(base64.b85decode(PACKED)).decode()
    assert change in plain
    return compressed(plain.replace(change, to, 1).encode())


GARBAGE = {
    "not base85": "a b",
    "not ASCII": "é",
    "not bz2": base64.b85encode(b"hello").decode(),
    "bz2 in name only": base64.b85encode(b"BZh9hello").decode(),
    "nothing": compressed(b""),
    "no tables": compressed(b"{}"),
    "not JSON": compressed(b"{"),
    "not UTF-8": compressed(b'"\xff"'),
    "a list": compressed(b"[]"),
    "too deep": compressed(b"[" * 100_000),
    "left over": base64.b85encode(base64.b85decode(PACKED) + b"x").decode(),
    "cut": base64.b85encode(base64.b85decode(PACKED)[:-3]).decode(),
    "another table's name": changed('"table"', '"tables"'),
    "a negative start": changed("[1,100,", "[-1,100,"),
    "versions out of order": changed("[1,100,", "[1,300,"),
    "a version twice": changed("[1,100,", "[1,200,"),
    "no versions": compressed(
        b'{"layout":1,"tables":[{"database":"a","table":"b","versions":[]}]}'
    ),
    "a position that is no number": changed("[1,100,", '["1",100,'),
    "a key that is no column": changed('"primary_key":["id"]', '"primary_key":["no"]'),
    "a key that is a text": changed('"primary_key":["id"]', '"primary_key":"id"'),
    "a type that is no text": changed('"type":"int"', '"type":7'),
    "a column without a type": changed(',"type":"int"', ""),
    "a length that is no number": changed('"type":"int"', '"type":"int","length":true'),
    "what a column does not have": changed('"type":"int"', '"type":"int","kind":"x"'),
    "a charset that is no text": changed('"charset":null', '"charset":1'),
}


@pytest.mark.parametrize("text", GARBAGE.values(), ids=GARBAGE.keys())
def test_invalid_packed_history_raises_offset_error(text: str) -> None:
    with pytest.raises(OffsetError, match="schemas can't be read"):
        SchemaHistory.unpack(text)


def test_every_changed_character_of_packed_history_raises_offset_error() -> None:
    for index in range(len(PACKED)):
        other = PACKED[:index] + ("0" if PACKED[index] != "0" else "1") + PACKED[index + 1 :]
        with pytest.raises(OffsetError):
            SchemaHistory.unpack(other)


def test_packed_history_with_a_table_twice_is_rejected() -> None:
    plain = json.loads(bz2.decompress(base64.b85decode(PACKED)))
    plain["tables"] *= 2
    with pytest.raises(OffsetError, match="schemas can't be read"):
        SchemaHistory.unpack(compressed(json.dumps(plain).encode()))


def test_history_larger_than_limit_is_neither_packed_nor_unpacked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    size = len(bz2.decompress(base64.b85decode(PACKED)))
    monkeypatch.setattr(schema_packing, "_MAX_PLAIN_BYTES", size)
    assert SchemaHistory.unpack(KNOWN.with_table(at(200), B).pack()).pack() == PACKED
    monkeypatch.setattr(schema_packing, "_MAX_PLAIN_BYTES", size - 1)
    with pytest.raises(OffsetError, match=r"1 followed tables take .* fewer tables"):
        KNOWN.with_table(at(200), B).pack()
    with pytest.raises(OffsetError, match="can't be read"):
        SchemaHistory.unpack(PACKED)


def test_packed_history_of_newer_layout_is_rejected() -> None:
    with pytest.raises(OffsetError, match="newer version"):
        SchemaHistory.unpack(changed('"layout":1', '"layout":2'))


def test_packed_history_is_base85_of_bz2_compressed_json() -> None:
    """Existing checkpoints contain this text: a release that reads it differently breaks them."""
    history = KNOWN.with_table(at(200), replace(B, charset="utf8mb4")).without(
        at(300), "shop", "orders", "why"
    )
    file = "mysql-bin.000001"
    assert json.loads(bz2.decompress(base64.b85decode(history.pack()))) == {
        "layout": 1,
        "tables": [
            {
                "database": "shop",
                "table": "orders",
                "versions": [
                    {
                        "from": [1, 100, file],
                        "columns": [{"name": "id", "type": "int"}],
                        "primary_key": ["id"],
                        "charset": None,
                    },
                    {
                        "from": [1, 200, file],
                        "columns": [
                            {"name": "id", "type": "int"},
                            {"name": "total", "type": "int"},
                        ],
                        "primary_key": ["id"],
                        "charset": "utf8mb4",
                    },
                    {"from": [1, 300, file], "unknown": "why", "dropped": False},
                ],
            }
        ],
    }


ENTITIES = [
    "account", "address", "agent", "article", "audit", "batch", "booking", "brand", "budget",
    "campaign", "cart", "category", "channel", "claim", "comment", "company", "contact",
    "contract", "coupon", "course", "customer", "delivery", "department", "device", "discount",
    "document", "employee", "event", "expense", "feature", "feedback", "file", "filter", "goal",
    "group", "inventory", "invoice", "item", "job", "label", "lead", "ledger", "location",
    "machine", "media", "member", "merchant", "message", "module", "notification", "offer",
    "order", "organization", "package", "page", "partner", "payment", "payout", "permission",
    "plan", "policy", "position", "post", "price", "product", "profile", "project", "promotion",
    "property", "purchase", "question", "quote", "rating", "receipt", "refund", "region",
    "report", "request", "reservation", "return", "review", "role", "route", "rule", "sale",
    "schedule", "segment", "seller", "service", "session", "shipment", "shop", "site", "source",
    "stock", "store", "subscription", "supplier", "survey", "task", "tax", "team", "template",
    "tenant", "ticket", "token", "tour", "transaction", "transfer", "user", "vehicle", "vendor",
    "visit", "voucher", "warehouse", "webhook", "workflow", "zone",
]  # fmt: skip
Shape = tuple[str, int | None, bool]  # type, length, unsigned
KEY: Shape = ("bigint", None, True)
NUMBER: Shape = ("int", None, True)
MONEY: Shape = ("decimal", 12, False)
FLAG: Shape = ("tinyint", 1, False)
LINE: Shape = ("varchar", 255, False)
CODE: Shape = ("varchar", 32, False)
LONG: Shape = ("text", None, False)
DAY: Shape = ("date", None, False)
MOMENT: Shape = ("datetime", 0, False)
# Column names that many tables share, and (ENDINGS) last words of other column names.
COMMON: dict[str, Shape] = {
    "id": KEY, "uuid": ("char", 36, False), "tenant_id": NUMBER, "name": LINE, "title": LINE,
    "email": ("varchar", 191, False), "description": LONG, "status": CODE, "type": CODE,
    "is_active": FLAG, "is_deleted": FLAG, "notes": LONG, "currency": ("char", 3, False),
    "amount": MONEY, "country_code": ("char", 2, False), "city": LINE, "street": LINE,
    "zip_code": CODE, "phone_number": CODE, "sort_order": NUMBER, "quantity": NUMBER,
    "metadata": ("json", None, False), "external_id": CODE, "locale": CODE, "created_by": KEY,
    "updated_by": KEY, "created_at": MOMENT, "updated_at": MOMENT, "deleted_at": MOMENT,
    "valid_from": DAY, "valid_to": DAY, "version": NUMBER,
}  # fmt: skip
ENDINGS: dict[str, Shape] = {
    "id": KEY, "code": CODE, "name": LINE, "status": CODE, "count": NUMBER, "total": MONEY,
    "date": DAY, "at": ("datetime", 6, False), "rate": ("decimal", 8, False),
    "url": ("varchar", 1024, False), "type": ("enum", None, False), "flag": FLAG,
}  # fmt: skip


def realistic(camel: bool) -> SchemaHistory:
    """Return the history of 200 tables of 50 columns, half of which have shared names."""
    random_ = random.Random(1)

    def column(name: str, shape: Shape) -> ColumnSchema:
        kind, length, unsigned = shape
        if camel:
            head, *tail = name.split("_")
            name = head + "".join(word.capitalize() for word in tail)
        return ColumnSchema(
            name,
            kind,
            length,
            2 if kind == "decimal" else None,
            unsigned,
            "utf8mb4" if kind in ("varchar", "char", "text", "enum") else None,
            ("new", "open", "closed") if kind == "enum" else (),
            random_.random() < 0.6,
        )

    history = SchemaHistory()
    for number in range(200):
        names = {"id": COMMON["id"]}
        names |= {name: COMMON[name] for name in random_.sample(sorted(COMMON), 24)}
        while len(names) < 50:
            ending = random_.choice(sorted(ENDINGS))
            words = random_.choices(ENTITIES, k=random_.choice([1, 1, 1, 2]))
            names["_".join([*words, ending])] = ENDINGS[ending]
        name = "_".join([*random_.sample(ENTITIES, 2), str(number)])
        columns = tuple(column(*each) for each in names.items())
        schema = TableSchema("shop", name, columns, ("id",), "utf8mb4")
        history = history.with_table(
            at(random_.randrange(4, 10**9), random_.randrange(1, 50)), schema
        )
    return history


@pytest.mark.parametrize("camel", [False, True], ids=["snake_case", "camelCase"])
def test_packed_history_of_200_tables_of_50_columns_fits_in_32_kb(camel: bool) -> None:
    history = realistic(camel)
    text = history.pack()
    assert len(text) <= 32_000
    assert SchemaHistory.unpack(text) == history


def test_unique_keys_survive_packing_and_may_be_absent_in_older_text() -> None:
    keyed = replace(B, primary_key=(), unique_keys=(("i", ("total", "id")), ("j", ("id",))))
    history = KNOWN.with_table(at(300), keyed)
    text = history.pack()
    assert SchemaHistory.unpack(text) == history
    plain = json.loads(bz2.decompress(base64.b85decode(text)))
    (described,) = plain["tables"]
    assert [*map(len, described["versions"])] == [4, 5]
    del described["versions"][1]["unique_keys"]
    old = base64.b85encode(bz2.compress(json.dumps(plain).encode())).decode()
    expected = replace(keyed, unique_keys=())
    assert SchemaHistory.unpack(old).at(at(300), "shop", "orders") == expected


def test_merged_history_prefers_the_added_version_at_an_equal_start() -> None:
    """Database character sets come from the first history only."""
    other = SchemaHistory().with_table(at(100), B).without(at(300), "shop", "orders", "x")
    other = other.with_table(at(50), table("items", "id")).with_charset(at(1), "shop", "utf8")
    merged = KNOWN.with_table(at(20), A).merged(other)
    assert [merged.at(at(pos), "shop", "orders") for pos in (19, 20, 100, 299)] == [None, A, B, B]
    assert merged.unknown_reason(at(300), "shop", "orders") == "x"
    assert merged.versions("shop", "items") == other.versions("shop", "items")
    assert list(merged.databases()) == []
    assert SchemaHistory().merged(KNOWN) == KNOWN
