"""Tables with columns of random types, and statements on them; a seed makes them repeatable."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

__all__ = ["RandomTable"]

Value = Callable[[Random], str]

# Characters that each charset can represent.
_ALPHABETS = {
    "utf8mb4": "aé漢字😀'\\\"\n\t %_Ω\u200d",
    "utf8": "aé漢字'\\ Ω",
    "latin1": "aé€ÿ'\\ ‰",
    "gbk": "a汉字漢ⅰ'\\ ",
    "sjis": "a表示ソ能ｱ ",
    "cp932": "a①㈱～表ソ'\\ ",
    "big5": "a許功蓋漢'\\ ",
    "ujis": "a日本語ｱ丂 ",
    "euckr": "a한글똠 ",
    "cp1251": "aПриветЁ ",
    "koi8r": "aПривет ",
    "greek": "aΕλλάδα ",
    "hebrew": "aשלום ",
    "tis620": "aสวัสดี ",
    "ucs2": "aé漢字 ",
    "utf16": "aé漢字😀 ",
    "utf16le": "aé漢字😀 ",
    "utf32": "aé漢字😀 ",
    "swe7": "aÅÄÖ ",
    "armscii8": "aՀայ ",
    "keybcs2": "aČeština ",
}
_INTEGERS = {"TINYINT": 8, "SMALLINT": 16, "MEDIUMINT": 24, "INT": 32, "BIGINT": 64}


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _integer(random: Random) -> tuple[str, Value]:
    name, bits = random.choice(list(_INTEGERS.items()))
    unsigned = random.random() < 0.5
    low, high = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)

    def value(random: Random) -> str:
        return str(random.choice((low, high, 0, random.randint(low, high))))

    return name + " UNSIGNED" * unsigned, value


def _float(random: Random) -> tuple[str, Value]:
    # Six digits, as SELECT shows a FLOAT.
    return "FLOAT", lambda random: f"{random.randint(-999999, 999999)}e{random.randint(-35, 30)}"


def _double(random: Random) -> tuple[str, Value]:
    return "DOUBLE", lambda random: repr(random.uniform(-1, 1) * 10.0 ** random.randint(-290, 290))


def _decimal(random: Random) -> tuple[str, Value]:
    precision = random.randint(1, 65)
    scale = random.randint(0, min(30, precision))

    def value(random: Random) -> str:
        digits = str(random.randint(0, 10 ** random.randint(0, precision) - 1)).zfill(scale + 1)
        point = len(digits) - scale
        return random.choice(("", "-")) + f"{digits[:point]}.{digits[point:]}"

    return f"DECIMAL({precision},{scale})", value


def _bit(random: Random) -> tuple[str, Value]:
    bits = random.randint(1, 64)
    return f"BIT({bits})", lambda random: str(random.getrandbits(bits))


def _date(random: Random) -> str:
    if random.random() < 0.05:
        return random.choice(("0000-00-00", "2026-00-00", "2026-11-00"))
    return f"{random.randint(0, 9999):04d}-{random.randint(1, 12):02d}-{random.randint(1, 28):02d}"


def _clock(random: Random, hours: int = 23) -> str:
    hour, minute, second = random.randint(0, hours), random.randint(0, 59), random.randint(0, 59)
    return f"{hour:02d}:{minute:02d}:{second:02d}.{random.randint(0, 999999):06d}"


def _temporal(random: Random) -> tuple[str, Value]:
    digits = random.randint(0, 6)
    kind = random.choice(("DATE", "TIME", "DATETIME", "TIMESTAMP", "YEAR"))
    if kind == "DATE":
        return kind, lambda random: f"'{_date(random)}'"
    if kind == "TIME":
        return (
            f"TIME({digits})",
            lambda random: f"'{random.choice(('', '-'))}{_clock(random, 837)}'",
        )
    if kind == "DATETIME":
        return f"DATETIME({digits})", lambda random: f"'{_date(random)} {_clock(random)}'"
    if kind == "YEAR":
        return "YEAR", lambda random: str(random.choice((0, random.randint(1901, 2155))))

    def timestamp(random: Random) -> str:
        year, rest = random.randint(1971, 2037), random.randint(1, 28)
        return f"'{year}-{random.randint(1, 12):02d}-{rest:02d} {_clock(random)}'"

    return f"TIMESTAMP({digits}) NULL", timestamp


def _text(random: Random) -> tuple[str, Value]:
    charset = random.choice(list(_ALPHABETS))
    alphabet = _ALPHABETS[charset]
    length = random.choice((1, 20, 63, 64, 85, 86, 127, 128, 200))
    kind = random.choice((f"CHAR({length})", f"VARCHAR({length})", "TINYTEXT", "TEXT", "LONGTEXT"))
    # TINYTEXT holds 255 bytes; values that the server would truncate are not tested here.
    longest = min(length, 60) if kind == "TINYTEXT" else length

    def value(random: Random) -> str:
        return _quoted("".join(random.choices(alphabet, k=random.randint(0, longest))))

    return f"{kind} CHARACTER SET {charset}", value


def _binary(random: Random) -> tuple[str, Value]:
    length = random.choice((1, 16, 255))
    kind = random.choice((f"BINARY({length})", f"VARBINARY({length + 50})", "BLOB", "MEDIUMBLOB"))

    def value(random: Random) -> str:
        raw = random.randbytes(random.randint(0, length))
        return f"X'{raw.rstrip(b' ').hex()}'"

    return kind, value


def _labels(random: Random) -> tuple[str, Value]:
    charset = random.choice(list(_ALPHABETS))
    letters = [c for c in _ALPHABETS[charset] if c.isalpha()]
    kind = random.choice(("ENUM", "SET"))
    count = random.choice((1, 3, 8, 9, 40, 64) if kind == "SET" else (1, 3, 255, 256, 400))
    names = [f"{random.choice(letters)}{number}" for number in range(count)]

    def value(random: Random) -> str:
        if kind == "ENUM":
            return str(random.randint(0, count))
        return str(random.getrandbits(count))

    return f"{kind}({','.join(map(_quoted, names))}) CHARACTER SET {charset}", value


def _point(random: Random) -> tuple[str, Value]:
    def value(random: Random) -> str:
        srid = random.choice((0, 4326))
        # From MySQL 8.0 on, x is the latitude in SRID 4326.
        most = 90 if srid else 180
        x, y = random.uniform(-most, most), random.uniform(-90, 90)
        return f"ST_GeomFromText('POINT({x} {y})', {srid})"

    return random.choice(("GEOMETRY", "POINT")), value


_KINDS = (_integer, _float, _double, _decimal, _bit, _temporal, _text, _binary, _labels, _point)
_NAMES = ("a`b", "select", "é", 'quo"te', "it's", "with space", "漢字", "UPPER", "per%cent")


@dataclass(frozen=True)
class RandomTable:
    """Table t: an id, and columns of random types with unusual names."""

    columns: list[tuple[str, str, Value]]

    @classmethod
    def make(cls, random: Random, columns: int) -> RandomTable:
        # Every kind of type occurs at least once.
        kinds = list(_KINDS) + random.choices(_KINDS, k=max(0, columns - len(_KINDS)))
        random.shuffle(kinds)
        described = []
        for number, kind in enumerate(kinds):
            name = _NAMES[number] if number < len(_NAMES) else f"c{number}"
            described.append((f"`{name.replace('`', '``')}`", *kind(random)))
        return cls(described)

    def statements(self, random: Random, rows: int) -> Iterator[str]:
        """Yield CREATE, INSERTs of `rows` rows, UPDATEs of a third and DELETEs of a tenth."""
        definitions = ", ".join(f"{name} {kind}" for name, kind, _ in self.columns)
        yield f"CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, {definitions})"
        names = ", ".join(name for name, _, _ in self.columns)
        done = 0
        while done < rows:
            count = min(rows - done, random.choice((1, 1, 7, 50, 300)))
            values = ", ".join(self._row(random) for _ in range(count))
            yield f"INSERT INTO t ({names}) VALUES {values}"
            done += count
        for row in random.sample(range(1, rows + 1), rows // 3):
            name, _, value = random.choice(self.columns)
            # The new id makes the row differ, whatever the value was.
            yield f"UPDATE t SET {name} = {value(random)}, id = id + 1000000 WHERE id = {row}"
        for row in random.sample(range(1, rows + 1), rows // 10):
            yield f"DELETE FROM t WHERE id IN ({row}, {row + 1000000})"

    def _row(self, random: Random) -> str:
        values = ("NULL" if random.random() < 0.1 else value(random) for *_, value in self.columns)
        return f"({', '.join(values)})"
