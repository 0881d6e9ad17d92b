"""MySQL's character sets: bytes per character, and which collation belongs to which.

Pure data, shared by all packages. The ids are those of MySQL 5.5 to 8.0 and MariaDB, as their
information_schema.COLLATIONS lists them; live tests compare. Each character set has one name,
5.7's: ``utf8`` also for newer servers' ``utf8mb3``.
"""

from __future__ import annotations

from pyspark_mysqlbinlog.errors import UnknownSchemaError

__all__ = [
    "MAX_BYTES_PER_CHARACTER",
    "canonical_charset",
    "charset_of_collation",
    "is_known_charset",
]

# Name: (mbmaxlen, ids of its collations).
_CHARSETS: dict[str, tuple[int, str]] = {
    "armscii8": (1, "32 64"),
    "ascii": (1, "11 65"),
    "big5": (2, "1 84"),
    "binary": (1, "63"),
    "cp1250": (1, "26 34 44 66 99"),
    "cp1251": (1, "14 23 50-52"),
    "cp1256": (1, "57 67"),
    "cp1257": (1, "29 58-59"),
    "cp850": (1, "4 80"),
    "cp852": (1, "40 81"),
    "cp866": (1, "36 68"),
    "cp932": (2, "95-96"),
    "dec8": (1, "3 69"),
    "eucjpms": (3, "97-98"),
    "euckr": (2, "19 85"),
    "gb18030": (4, "248-250"),
    "gb2312": (2, "24 86"),
    "gbk": (2, "28 87"),
    "geostd8": (1, "92-93"),
    "greek": (1, "25 70"),
    "hebrew": (1, "16 71"),
    "hp8": (1, "6 72"),
    "keybcs2": (1, "37 73"),
    "koi8r": (1, "7 74"),
    "koi8u": (1, "22 75"),
    "latin1": (1, "5 8 15 31 47-49 94"),
    "latin2": (1, "2 9 21 27 77"),
    "latin5": (1, "30 78"),
    "latin7": (1, "20 41-42 79"),
    "macce": (1, "38 43"),
    "macroman": (1, "39 53"),
    "sjis": (2, "13 88"),
    "swe7": (1, "10 82"),
    "tis620": (1, "18 89"),
    "ucs2": (2, "35 90 128-151 159 640-642"),
    "ujis": (3, "12 91"),
    "utf16": (4, "54-55 101-124 672-674"),
    "utf16le": (4, "56 62"),
    "utf32": (4, "60-61 160-183 736-738"),
    "utf8": (3, "33 76 83 192-215 223 576-579"),
    "utf8mb4": (4, "45-46 224-247 255-323 608-611"),
}

MAX_BYTES_PER_CHARACTER: dict[str, int] = {name: width for name, (width, _) in _CHARSETS.items()}


def _ids(ranges: str) -> list[int]:
    ids: list[int] = []
    for part in ranges.split():
        first, _, last = part.partition("-")
        ids.extend(range(int(first), int(last or first) + 1))
    return ids


_BY_COLLATION_ID = {
    number: name for name, (_, ranges) in _CHARSETS.items() for number in _ids(ranges)
}

# MariaDB: NO PAD variants are the id + 1024; from 2048 on UCA 14.0.0, 256 ids per character set.
_MARIADB_NOPAD = 1024
_MARIADB_UCA1400 = 2048
_MARIADB_UCA1400_CHARSETS = ("utf8", "utf8mb4", "ucs2", "utf16", "utf32")


def canonical_charset(name: str) -> str:
    """Return the name used here: lower case, ``utf8`` for ``utf8mb3``."""
    name = name.lower()
    return "utf8" if name == "utf8mb3" else name


def is_known_charset(name: str) -> bool:
    """Whether MySQL or MariaDB has a character set of this (canonical) name."""
    return name in _CHARSETS


def charset_of_collation(collation: str | int) -> str:
    """Return the character set of a collation, by name or id.

    Raises UnknownSchemaError for an unknown collation, or one that fits several character sets
    (MariaDB's ``uca1400_…`` without the prefix of a character set).
    """
    if isinstance(collation, int):
        number = collation
        if number >= _MARIADB_UCA1400:
            family = (number - _MARIADB_UCA1400) // 256
            if family < len(_MARIADB_UCA1400_CHARSETS):
                return _MARIADB_UCA1400_CHARSETS[family]
        elif number > _MARIADB_NOPAD:
            number -= _MARIADB_NOPAD
        name = _BY_COLLATION_ID.get(number)
    else:
        # A collation's name begins with its character set's.
        name = canonical_charset(collation.partition("_")[0])
        if name not in _CHARSETS:
            name = None
    if name is None:
        raise UnknownSchemaError(
            f"collation {collation!r} is not known, so neither is its character set"
        )
    return name
