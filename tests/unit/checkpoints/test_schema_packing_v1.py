"""Layout 1 of packed schemas: checkpoints hold it, so it is read for good."""

from __future__ import annotations

import base64
import json
import zlib

import pytest

from helpers.decoding import CAPTURED
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.checkpoints.schema_packing import (
    is_of_version_0_1,
    pack_versions,
    unpack_versions,
)
from pyspark_mysqlbinlog.errors import OffsetError
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema


def at(pos: int, number: int = 1) -> Position:
    return Position.of(f"mysql-bin.{number:06d}", pos)


ID, TOTAL = ColumnSchema("id", "int"), ColumnSchema("total", "int")
A = TableSchema("shop", "orders", (ID,), ("id",))
B = TableSchema("shop", "orders", (ID, TOTAL), ("id",))
KNOWN = SchemaHistory().with_table(at(100), A)
EVERY = TableSchema(
    "a b",
    't\u00e9"x',
    (
        ColumnSchema("id", "bigint", unsigned=True, nullable=False),
        ColumnSchema("billing_address_2", "varchar", 191, charset="utf8mb4"),
        # Whether these were virtual was not written.
        ColumnSchema("billingAddress2", "text", charset="latin1", virtual=None),
        ColumnSchema("_odd__name", "decimal", 12, 2),
        ColumnSchema("\u00e4\u20ac", "enum", charset="utf8mb4", labels=("new", "it's", "\u20ac")),
        ColumnSchema("doc", "json", virtual=None),
        ColumnSchema("at", "datetime", 6),
        ColumnSchema("f", "tinyint", 1),
    ),
    ("at", "id"),
    "utf8mb4",
)

# What the release that wrote layout 1 made of these histories.
WRITTEN: dict[str, tuple[SchemaHistory, str]] = {
    "empty": (
        SchemaHistory(),
        "c-pI0%1NxuFD+5BGSpEjE=epZDOR$Ij@3~rsVqo^GK(v7lk#(5;)zK)5Q$nY0DDFhG5",
    ),
    "one table": (
        KNOWN,
        (
            "c-k$@F%AMD5QSlFJ;tj?1MOagP(T(V$t<i46vTLU7uG3Wrug!Iz^><3v1o!+SE^t!Mw3>GuyuL!-N*D$<20-#)V_"
            "y_5K{%E#(d7xv4rzAc1Y=)&pa&R3NipGs-=aQai0GjdF361T-H$Ja7K|PqwH)QCHuWyu0I(THKh"
        ),
    ),
    "two versions": (
        KNOWN.with_table(at(200), B),
        (
            "c-n1_F%H5o3`JW;j^Wv$gt1qNG9+pck=&-l?hqmFPSPN;@CVEG|9<id$d$AUOd5g3Wnq|%(WsR|SPDPs;^TT%O&T"
            "m#>-OKW2vW9i+(TRiaNUV|xjW*}TVq?2%i<IDETBTkd#LL;L!~5f1P$jreR=#yTeVW2LuNo@6lyfe9?bsLZ>)Ns$"
            "6*{!!v|K_L)Z"
        ),
    ),
    "gone": (
        KNOWN.without(at(200), "shop", "orders", "x", gone=True),
        (
            "c-n1_K?=hl5JlT<kMY;jqFv@H;=&M1g^8w)flBG!8%>s-#W3*Sf6NE$YFY~hO_1Vp5e&v?(n=BLDlfi{A>LFQ4NF"
            "^e{~uXGsf+J@gjhgvW!~4rvH1NowvkfjF>zxNCXfM0QOT?C8aMLck!M;!NO|&EHqI#0WR&f${tezZiq?KFr}Gb_^"
            "+3D"
        ),
    ),
    "not known": (
        KNOWN.without(at(200), "shop", "orders", "altered by ALTER TABLE"),
        (
            "c-n1_y$-@K41{6jDXN<dN*KEpsaq%1Ey|FnK~!>oNYWufygO~mhzHBkeZIRl*raKRC?z38<6}Unlq4wxVMyV{XWN"
            "e#v5kbLRl5F{G$E$h<$v^J1dR*xz8;2y+fSu8GNi#yys_vzkOD|h^oz?j#`4c6Jf|6i$#>3&l~aNwDWS7hZUe*7d"
            "Dj&-6;;#L_oA(CO^rQs4bz{~;rIoR3`dI"
        ),
    ),
    "a database": (
        SchemaHistory().with_charset(at(4), "shop", "utf8mb4").with_table(at(9, 2), A),
        (
            "c-m!+I}XAy5JaKn7*j9Ej#2<uS-G$kM?`Ys;7?&8?v9-x8n#%iG;iO$;B@gh;Vua=>5wAs%#wP-T;kK6&9q!Z8wo"
            "|+(d{qjpcEmM)o#C-mIPX|bNd>#i*`R*H8Pgjc-L4=1Bd|<ltQ+fMjQ9_#D`x&HDwl+;F{(%UT4#zd47NogAK7^k"
            "|eQETUkZa`*b*d02snWcm"
        ),
    ),
    "every attribute": (
        SchemaHistory().with_table(at(2**40, 3), EVERY),
        (
            "c-nQ5OHRWu5QfVe%9|6Q*|0GvPTQpIj&r0@<uq<FavX>qXjHM`ENqatMQ_4M7{?%jN+V_RCHXy%e-<EFm6ryFlz="
            "v@FdBwY)FIRx40@CXei()UfvnPx@;VXf#<N!k;+TM`9(XN>M9hRTKvXHE3#KT!qX?xDq|9(5G7cngpQlXfzY0DP8"
            "IwS$PyE&2T$Nd~fD=Gzru{7G0xA@L1_HudX?%RXen5ThUgv7{TqCjJbMsGP$&64Gendi5^@MaymM2zB?pT3>0bSE"
            "zY(3LemgLg9hNej=)C`;T@xD#df@^JYR9cS_#(A2K$BJ3ofH{FB>;uw#f^ljmPBARs?8Mjz5YLs4>la#Y!m;1rPJ"
            "_D*?lm}QaOl`>oh9;n?d&qa(q{QSf;rZXJklpoK)m>OY#cg%X&)T6b~Y|rn`c|w$L*87)7_)}^DitS#A5"
        ),
    ),
}
TEXT = WRITTEN["two versions"][1]


@pytest.mark.parametrize(("history", "text"), WRITTEN.values(), ids=WRITTEN.keys())
def test_what_an_earlier_release_wrote(history: SchemaHistory, text: str) -> None:
    assert SchemaHistory.unpack(text) == history
    # It is written in the layout of today.
    assert SchemaHistory.unpack(history.pack()) == history
    assert history.pack() != text


def changed(change: str, to: str, stream: bytes | None = None) -> str:
    """TEXT with its header, or all behind it, changed."""
    plain = zlib.decompress(base64.b85decode(TEXT))
    head, _, tail = plain.partition(b"\n")
    assert stream is not None or change in head.decode()
    plain = head.decode().replace(change, to).encode() + b"\n"
    plain += tail if stream is None else stream
    return base64.b85encode(zlib.compress(plain)).decode()


GARBAGE = {
    "no header": base64.b85encode(zlib.compress(b"{}")).decode(),
    "not JSON": base64.b85encode(zlib.compress(b"{\n")).decode(),
    "left over": base64.b85encode(base64.b85decode(TEXT) + b"x").decode(),
    "cut": base64.b85encode(base64.b85decode(TEXT)[:-3]).decode(),
    "too large": base64.b85encode(zlib.compress(b" " * (65 << 20), 1)).decode(),
    "another layout": changed('"layout":1', '"layout":2'),
    "no tables": changed('"tables"', '"table"'),
    "a start that is not there": changed("[[0,1,", "[[7,1,"),
    "a negative start": changed("[[0,1,", "[[-1,1,"),
    "versions out of order": changed("[0,1,[0],null],[1,", "[1,1,[0],null],[0,"),
    "too many columns": changed("[0,1,", "[0,9,"),
    "too few columns": changed("[1,2,", "[1,1,"),
    "a key that is no column": changed("[0,1,[0]", "[0,1,[5]"),
    "a type that is no text": changed('["int",', "[7,"),
    "a symbol that is not there": changed("", "", b"\x00\x50"),
    "half a symbol": changed("", "", b"\xe0"),
    "a name without a type": changed("", "", b"\x00\x00"),
    "a position that is no number": changed('[1,100,"', '["1",100,"'),
}


@pytest.mark.parametrize("text", GARBAGE.values(), ids=GARBAGE.keys())
def test_garbage_is_refused(text: str) -> None:
    with pytest.raises(OffsetError, match="schemas can't be read"):
        SchemaHistory.unpack(text)


def test_which_version_wrote_a_text() -> None:
    old = json.loads(
        (CAPTURED.parent / "checkpoints" / "default_of_0_1.json").read_text(encoding="utf-8")
    )
    text = old["offset"]["schemas"].rpartition(":")[2]
    assert is_of_version_0_1(text)
    assert not is_of_version_0_1(pack_versions(unpack_versions(text)))
    assert not is_of_version_0_1("")
