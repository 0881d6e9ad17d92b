"""Statements for each server version, in a form that a terminal can display."""

from __future__ import annotations

import pytest

from pyspark_mysqlbinlog.connector.doctor.remedies import (
    Remedies,
    pasteable,
    quoted_account,
    shown,
    version_of,
)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("5.6.24-log", (5, 6, 24)),
        ("5.7.41-log", (5, 7, 41)),
        ("9.7.4", (9, 7, 4)),
        ("5.5.5-10.11.6-MariaDB-0+deb12u1", (10, 11, 6)),
        ("11.8.9-MariaDB", (11, 8, 9)),
        ("unknown", (0, 0, 0)),
    ],
)
def test_server_version_numbers_are_parsed_from_the_handshake(
    text: str, numbers: tuple[int, ...]
) -> None:
    assert version_of(text) == numbers


@pytest.mark.parametrize(
    ("is_mariadb", "version", "verb"),
    [
        (False, (5, 7, 41), "GLOBAL"),
        (False, (8, 0, 0), "PERSIST"),
        (False, (9, 7, 4), "PERSIST"),
        (True, (11, 8, 9), "GLOBAL"),
    ],
)
def test_only_mysql_8_and_later_persist_settings(
    *, is_mariadb: bool, version: tuple[int, ...], verb: str
) -> None:
    remedies = Remedies(is_mariadb, version, "`u`@`%`")
    assert remedies.set_global("server_id", "1") == f"SET {verb} server_id = 1"
    assert bool(remedies.configure(server_id="1")) == (verb == "GLOBAL")


@pytest.mark.parametrize(
    ("account", "quoted"),
    [
        ("spark@%", "`spark`@`%`"),
        ("a@b@10.0.0.%", "`a@b`@`10.0.0.%`"),
        ("o'`x@localhost", "`o'``x`@`localhost`"),
        ("@localhost", "``@`localhost`"),
    ],
)
def test_account_is_quoted_with_backquotes(account: str, quoted: str) -> None:
    assert quoted_account(account) == quoted


def test_statement_with_control_characters_is_shown_in_hex() -> None:
    statement = "DROP TABLE `a\x1b[2J`"
    text = pasteable(statement)
    assert text.isprintable()
    assert bytes.fromhex(text.partition("X'")[2].partition("'")[0]).decode() == statement


def test_printable_statement_is_shown_as_plain_sql() -> None:
    assert pasteable("DROP TABLE `ñ漢`") == "DROP TABLE `ñ漢`;"


def test_control_characters_are_escaped() -> None:
    assert shown("a\x1b[2J\n\u202eñ") == "a\\x1b[2J\\n\\u202eñ"
