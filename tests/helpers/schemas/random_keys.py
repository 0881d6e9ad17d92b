"""Keys of random types and sort directions, with values close to each other."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import strategies as st

__all__ = ["RandomKey", "random_keys"]

Literals = st.SearchStrategy[str]


def _hexed(letters: str, charset: str, codec: str, size: int) -> Literals:
    texts = st.text(letters, max_size=size)
    return texts.map(lambda text: f"_{charset} X'{text.encode(codec).hex()}'")


def _numbers(low: int, high: int) -> Literals:
    edges = st.sampled_from((low, low + 1, -1, 0, 1, 2, high - 1, high))
    return (edges | st.integers(low, high)).filter(lambda n: low <= n <= high).map(str)


def _text(charset: str, codec: str, collation: str, letters: str) -> tuple[str, Literals]:
    definition = f"{{}}(6) CHARACTER SET {charset} COLLATE {collation}"
    return definition, _hexed(letters, charset, codec, 4)


_CLOCK = st.integers(0, 3).map(lambda second: f"10:00:0{second}")
_FRACTION = st.sampled_from(("", ".000001", ".5", ".999999"))
_DATES = st.sampled_from(("0000-00-00", "2026-00-00", "2026-02-28", "2026-02-31", "2026-03-01"))
_LETTERS = "aAbBzZéÉß \t!09"

# Definition (with a placeholder for CHAR or VARCHAR in texts), literals.
_COLUMNS: list[tuple[str, Literals]] = [
    ("TINYINT", _numbers(-128, 127)),
    ("SMALLINT UNSIGNED", _numbers(0, 65535)),
    ("MEDIUMINT", _numbers(-(2**23), 2**23 - 1)),
    ("INT", _numbers(-3, 3)),
    ("BIGINT", _numbers(-(2**63), 2**63 - 1)),
    ("BIGINT UNSIGNED", _numbers(0, 2**64 - 1)),
    ("DECIMAL(30,10)", _numbers(-(10**12), 10**12).map(lambda n: f"{n}e-8")),
    ("DECIMAL(5,0) UNSIGNED ZEROFILL", _numbers(0, 99999)),
    ("FLOAT", st.floats(-100, 100, width=32).map(repr)),
    ("FLOAT(7,2)", st.integers(-999, 999).map(lambda n: f"{n}e-2")),
    ("DOUBLE", st.floats(allow_nan=False, allow_infinity=False).map(repr)),
    ("BIT(5)", _numbers(0, 31)),
    ("BIT(64)", _numbers(0, 2**64 - 1)),
    ("DATE", _DATES.map(lambda day: f"'{day}'")),
    ("DATETIME", st.builds("'{} {}'".format, _DATES, _CLOCK)),
    ("DATETIME(6)", st.builds("'{} {}{}'".format, _DATES, _CLOCK, _FRACTION)),
    ("TIMESTAMP(6)", st.builds("'2026-10-25 {}{}'".format, _CLOCK, _FRACTION)),
    ("TIME", st.builds("'{}{}'".format, st.sampled_from(("", "-")), _CLOCK)),
    ("TIME(6)", st.builds("'{}{}{}'".format, st.sampled_from(("", "-")), _CLOCK, _FRACTION)),
    ("YEAR", (st.just(0) | st.integers(1901, 2155)).map(lambda year: f"'{year:04d}'")),
    ("ENUM('z','A','a ','1','0')", _numbers(0, 5)),
    ("SET('z','A','1')", _numbers(0, 7)),
    ("BINARY(3)", st.binary(max_size=3).map(lambda raw: f"X'{raw.hex()}'")),
    ("VARBINARY(3)", st.binary(max_size=3).map(lambda raw: f"X'{raw.hex()}'")),
    _text("utf8mb4", "utf-8", "utf8mb4_general_ci", _LETTERS + "漢😀"),
    _text("utf8mb4", "utf-8", "utf8mb4_unicode_ci", _LETTERS + "漢😀"),
    _text("utf8mb4", "utf-8", "utf8mb4_bin", _LETTERS + "漢😀"),
    _text("utf8", "utf-8", "utf8_general_ci", _LETTERS + "漢"),
    _text("latin1", "cp1252", "latin1_swedish_ci", _LETTERS + "äåö€"),
    _text("latin1", "cp1252", "latin1_german2_ci", _LETTERS + "äåö€"),
    _text("ucs2", "utf-16-be", "ucs2_general_ci", _LETTERS + "漢"),
    _text("utf16", "utf-16-be", "utf16_unicode_ci", _LETTERS + "漢😀"),
    _text("utf16le", "utf-16-le", "utf16le_general_ci", _LETTERS + "漢😀"),
    _text("utf32", "utf-32-be", "utf32_general_ci", _LETTERS + "漢😀"),
    _text("sjis", "shift_jis", "sjis_japanese_ci", "aAzZ09 表ソ能ｱ"),
    _text("gbk", "gbk", "gbk_chinese_ci", "aAzZ09 汉字"),
    _text("big5", "big5", "big5_chinese_ci", "aAzZ09 許功"),
    _text("cp1251", "cp1251", "cp1251_general_ci", "aAzZ09 яЯё"),
    _text("ascii", "ascii", "ascii_general_ci", "aAzZ09 '\\"),
]

# Collations of MySQL 8.0 and later. CHAR is not used as a key here: trailing spaces are
# significant.
_NEWER_COLUMNS: list[tuple[str, Literals]] = [
    (
        f"VARCHAR(6) CHARACTER SET utf8mb4 COLLATE utf8mb4_{collation}",
        _hexed(_LETTERS + "漢😀" + more, "utf8mb4", "utf-8", 4),
    )
    for collation, more in {
        "0900_ai_ci": "ñ",
        "0900_as_ci": "ñ",
        "0900_as_cs": "ñ",
        "0900_bin": "",
        "de_pb_0900_ai_ci": "äÄ",
        "ja_0900_as_cs_ks": "かがカガ",
        "zh_0900_as_cs": "汉字",
    }.items()
]


@dataclass(frozen=True)
class RandomKey:
    """A table's key: its columns' definitions, their order in it, and options of the table."""

    columns: list[str]
    order: list[int]
    kind: str
    engine: str
    partitions: int
    descending: bool = False

    @property
    def has_bit_in_front(self) -> bool:
        return any(self.columns[number].startswith("BIT") for number in self.order[:-1])

    @property
    def create(self) -> str:
        columns = "".join(f"c{n} {text} NOT NULL, " for n, text in enumerate(self.columns))
        names = ", ".join(f"c{n}" for n in self.order)
        # One direction for all columns: tables are not read by a key with both directions.
        key = ", ".join(f"c{n}{' DESC' * self.descending}" for n in self.order)
        partitioned = f" PARTITION BY KEY ({names}) PARTITIONS {self.partitions}"
        parts = partitioned if self.partitions else ""
        return (
            f"CREATE TABLE t ({columns}n INT NOT NULL, {self.kind} ({key}))"
            f" ENGINE={self.engine} CHARACTER SET latin1{parts}"
        )


@st.composite
def random_keys(draw: st.DrawFn, *, newer: bool = False) -> tuple[RandomKey, Literals]:
    """Draw a key, and a strategy for values of its columns: ``1, 'a'``.

    newer : for MySQL 8.0 and later.
    """
    columns = st.sampled_from(_COLUMNS)
    if newer:
        columns |= st.sampled_from(_NEWER_COLUMNS)
    chosen = draw(st.lists(columns, min_size=1, max_size=3))
    texts = st.sampled_from(("CHAR", "VARCHAR"))
    key = RandomKey(
        columns=[definition.replace("{}", draw(texts)) for definition, _ in chosen],
        order=draw(st.permutations(range(len(chosen)))),
        kind=draw(st.sampled_from(("PRIMARY KEY", "UNIQUE u"))),
        engine=draw(st.sampled_from(("InnoDB", "InnoDB", "MyISAM"))),
        partitions=draw(st.sampled_from((0, 0, 0, 3))),
    )
    if newer:
        key = replace(key, descending=draw(st.booleans()))
        # In these versions only InnoDB supports partitions and descending keys.
        if key.descending or key.partitions:
            key = replace(key, engine="InnoDB")
    # Few values of each column, so that rows often share values.
    pools = [draw(st.lists(literals, min_size=1, max_size=5)) for _, literals in chosen]
    return key, st.tuples(*map(st.sampled_from, pools)).map(", ".join)
