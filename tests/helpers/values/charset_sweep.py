"""Every code of every character set, as a live server converts it, and the tables of differences.

`PYTHONPATH=tests python -m helpers.values.charset_sweep` starts MySQL 5.6 and writes the
differences between its character sets and Python's codecs into
pyspark_mysqlbinlog/decoder/values/charset_tables.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from helpers.servers import MySQL56Server, Server
from pyspark_mysqlbinlog.charsets import MAX_BYTES_PER_CHARACTER
from pyspark_mysqlbinlog.decoder.values.charsets import PYTHON_CODECS

__all__ = ["SWEPT", "swept_codes"]

# All character sets of MySQL 5.6 but binary, and utf8 and utf8mb4, to which codes are converted.
SWEPT = tuple(sorted(set(MAX_BYTES_PER_CHARACTER) - {"binary", "utf8", "utf8mb4", "gb18030"}))
_TABLES = Path(__file__).resolve().parents[3] / (
    "pyspark_mysqlbinlog/decoder/values/charset_tables.py"
)


def _candidates(charset: str) -> Iterator[bytes]:
    """Yield byte strings that may be one character; the server stores only some of them."""
    units = range(256)
    if charset in {"ucs2", "utf16", "utf16le"}:
        for unit in range(0x10000):
            yield unit.to_bytes(2, "big")
        if charset != "ucs2":
            codec = "utf-16-be" if charset == "utf16" else "utf-16-le"
            for point in range(0x10000, 0x110000, 37):
                yield chr(point).encode(codec)
        return
    if charset == "utf32":
        for point in [*range(0x10000), *range(0x10000, 0x110010, 37)]:
            yield point.to_bytes(4, "big")
        return
    for first in units:
        yield bytes([first])
    if MAX_BYTES_PER_CHARACTER[charset] == 1:
        return
    for first in range(0x80, 256):
        for second in units:
            yield bytes([first, second])
    if MAX_BYTES_PER_CHARACTER[charset] == 3:
        for second in units:
            for third in units:
                yield bytes([0x8F, second, third])


def swept_codes(server: Server, charset: str) -> dict[bytes, bytes]:
    """Return the codes that a column of this charset stores unchanged -> their utf8mb4 bytes."""
    with (
        server.connect(database=None) as connection,
        connection.cursor() as cursor,
    ):
        # Nothing is logged; without strict mode, the server truncates ill-formed values.
        cursor.execute("SET SESSION sql_log_bin = 0, sql_mode = ''")
        cursor.execute("CREATE DATABASE IF NOT EXISTS charset_sweep")
        cursor.execute("DROP TABLE IF EXISTS charset_sweep.codes")
        cursor.execute(
            "CREATE TABLE charset_sweep.codes"
            f" (c VARCHAR(4) CHARACTER SET {charset}, raw VARBINARY(4)) ENGINE=MyISAM"
        )
        codes = list(_candidates(charset))
        for at in range(0, len(codes), 8192):
            values = ",".join(f"(X'{c.hex()}',X'{c.hex()}')" for c in codes[at : at + 8192])
            cursor.execute(f"INSERT IGNORE INTO charset_sweep.codes VALUES {values}")
        cursor.execute(
            "SELECT raw, CAST(CONVERT(c USING utf8mb4) AS BINARY) FROM charset_sweep.codes"
            " WHERE CAST(c AS BINARY) = raw"
        )
        found = {bytes(raw): bytes(shown) for raw, shown in cursor.fetchall()}
        cursor.execute("DROP TABLE charset_sweep.codes")
        return found


def _python(code: bytes, codec: str) -> str:
    try:
        return code.decode(codec)
    except UnicodeDecodeError:
        return "?"


def _runs(charset: str, codec: str, server: Server) -> Iterator[tuple[int, str]]:
    """Yield the differences as (first code, the characters of it and of the codes after it)."""
    length, run, last = 0, 0, -1
    text = ""
    # By length first: the codes of a run have the same length.
    found = sorted(swept_codes(server, charset).items(), key=lambda item: (len(item[0]), item[0]))
    for code, raw in found:
        shown = raw.decode("utf-8")
        # Two characters are two codes, not one.
        differs = len(shown) == 1 and shown != _python(code, codec)
        number = int.from_bytes(code, "big")
        if text and not (differs and len(code) == length and number == last + 1):
            yield run, text
            text = ""
        if differs:
            if not text:
                run, length = number, len(code)
            text += shown
            last = number
    if text:
        yield run, text


def _source(server: Server) -> str:
    lines = [
        '"""Where MySQL\'s character sets differ from Python\'s codecs of the same kind.',
        "",
        "Made from a live server by tests/helpers/values/charset_sweep.py: don't edit. For each",
        "character set the first code and the characters that it and the codes after it have; ? is",
        "no character.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        '__all__ = ["DIFFERENCES"]',
        "",
        "# fmt: off",
        "DIFFERENCES: dict[str, tuple[tuple[int, str], ...]] = {",
    ]
    for charset, codec in sorted(PYTHON_CODECS.items()):
        if charset not in SWEPT:
            continue
        runs = list(_runs(charset, codec, server))
        if runs:
            lines.append(f'    "{charset}": (')
            for code, text in runs:
                parts = [text[at : at + 12] for at in range(0, len(text), 12)]
                lines.append(f"        (0x{code:02x}, (")
                lines += [f"            {_literal(part)}" for part in parts]
                lines.append("        )),")
            lines.append("    ),")
    return "\n".join([*lines, "}", "# fmt: on", ""])


def _literal(text: str) -> str:
    return '"' + "".join(f"\\u{ord(character):04x}" for character in text) + '"'


if __name__ == "__main__":
    with MySQL56Server() as running:
        _TABLES.write_text(_source(running), encoding="utf-8")
