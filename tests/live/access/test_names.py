"""Letters that are equal in column names, derived from the names that real servers reject."""

from __future__ import annotations

import pymysql
from pymysql.constants import ER

from helpers.servers import MariaDB11Server, Server
from pyspark_mysqlbinlog.names import fold

_LETTERS = [chr(code) for code in range(0x80, 0x10000) if not 0xD800 <= code < 0xE000]


def test_column_names_are_case_folded_as_on_the_server(
    any_server: Server, any_database: str
) -> None:
    """Every letter that Python's `str.lower` changes is compared."""
    server = f"CREATE TABLE `{any_database}`.t"
    wrong = []
    with any_server.connect() as connection:
        cursor = connection.cursor()
        cursor.execute("SET NAMES utf8")
        for letter in _LETTERS:
            if len(letter.lower()) == 1 and letter.lower() == letter:
                continue
            other = fold(letter) if fold(letter) != letter else letter.lower()
            try:
                cursor.execute(f"{server} (`x{letter}` INT, `x{other}` INT)")
            except pymysql.MySQLError as error:
                is_same = error.args[0] == ER.DUP_FIELDNAME
            else:
                cursor.execute(f"DROP TABLE `{any_database}`.t")
                is_same = False
            if is_same != (fold(letter) == fold(other)):
                wrong.append((letter, other))
    if any_server.name == MariaDB11Server.name:
        # It has other rules, those of Unicode 14: see docs/reference/limitations.md.
        assert len(wrong) == 479
        assert [letter for letter, _ in wrong if fold(letter) != letter] == [*"İ\u2126\u212a\u212b"]
    else:
        assert wrong == []
