"""Arguments that commands share, and the options that they set."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from pyspark_mysqlbinlog.connector.cli.arguments import (
    CONNECTION_OPTIONS,
    pairs,
    source_options,
)
from pyspark_mysqlbinlog.connector.cli.main import app
from pyspark_mysqlbinlog.connector.options.model import FIELDS
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.errors import OptionError

SERVER = ("--host", "db.invalid", "--user", "u")
LAKE = ("--tables", "shop.*", "--target", "/lake/{database}/{table}")


def test_omitted_arguments_set_no_options() -> None:
    assert source_options("db", 3306, None, None, None) == {"host": "db", "port": "3306"}


def test_arguments_and_named_options_are_merged() -> None:
    found = source_options("db", 1, "u", Path("/run/p"), ["a=b=c", "d="], tables="shop.*")
    assert found == {
        "host": "db",
        "port": "1",
        "user": "u",
        "passwordFile": "/run/p",
        "tables": "shop.*",
        "a": "b=c",
        "d": "",
    }


@pytest.mark.parametrize(
    "command",
    [
        ("doctor", *SERVER),
        ("ingest", *SERVER, *LAKE, "--checkpoint", "/lake/checkpoint"),
        ("inspect", *SERVER),
        ("tail", *SERVER),
        ("verify", *SERVER, *LAKE),
    ],
    ids=lambda command: command[0],
)
def test_option_flag_for_a_dedicated_argument_is_rejected(command: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, [*command, "--option", "Host=other.invalid"])
    assert done.exit_code == 2
    assert done.stderr == "OptionError: --option host: use this command's own option for it\n"


WINDOW = ("--tables", "shop.*", "--since", "10m")
APPLIED = {
    ("tail", *SERVER): {"retryTimeout"},
    ("inspect", *SERVER): set(),
    ("flashback", *SERVER, *WINDOW): {"excludeTables"},
}
FLAGS = {
    ("tail", "excludeTables"): "--tables",
    ("tail", "operations"): "--operations",
    ("tail", "startingOffset"): "--since",
    ("tail", "tables"): "--tables",
    ("inspect", "endingOffset"): "--stop-position or --stop-datetime",
    ("inspect", "excludeTables"): "--tables",
    ("inspect", "startingOffset"): "--start-position or --start-datetime",
    ("inspect", "tables"): "--tables",
    ("flashback", "endingOffset"): "--until",
    ("flashback", "startingOffset"): "--since",
}


@pytest.mark.parametrize("command", APPLIED, ids=lambda command: command[0])
def test_option_that_a_command_does_not_apply_is_rejected(command: tuple[str, ...]) -> None:
    own = {"host", "port", "user"} | ({"tables"} if "--tables" in command else set())
    applied = CONNECTION_OPTIONS | APPLIED[command]
    for name in FIELDS.keys() - applied - own:
        done = CliRunner().invoke(app, [*command, "--option", f"{name.upper()}=secret"])
        flag = FLAGS.get((command[0], name))
        assert done.exit_code == 2, name
        assert done.stderr == (
            f"OptionError: --option {name}: {command[0]} does not apply it, expected one of"
            f" {', '.join(sorted(applied))}; {f'use {flag}' if flag else 'remove it'}\n"
        )


def test_each_connection_option_changes_how_a_server_is_connected(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("secret")
    tls = "sslCert=c.pem sslKey=k.pem sslMode=VERIFY_CA sslCa=ca.pem"
    given = {
        "connectTimeout": "connectTimeout=3s",
        "heartbeatInterval": "heartbeatInterval=3s",
        "password": "password=secret",
        "passwordFile": f"passwordFile={tmp_path / 'password'}",
        "serverId": "serverId=7",
        "sslCa": tls,
        "sslCert": tls,
        "sslKey": tls,
        "sslMode": "sslMode=REQUIRED",
    }
    assert given.keys() == CONNECTION_OPTIONS
    server = {"host": "db", "user": "u"}
    plain = parse_options(server).server_settings()
    for name, texts in given.items():
        settings = parse_options(server | pairs("--option", texts.split())).server_settings()
        assert settings != plain, name


@pytest.mark.parametrize(
    "command",
    [
        ("doctor", *SERVER),
        ("ingest", *SERVER, *LAKE, "--checkpoint", "/lake/checkpoint"),
        ("verify", *SERVER, *LAKE),
    ],
    ids=lambda command: command[0],
)
def test_commands_of_a_stream_reject_ending_offset(command: tuple[str, ...]) -> None:
    end = ("--option", "startingOffset=earliest", "--option", "endingOffset=mysql-bin.000001:4")
    done = CliRunner().invoke(app, [*command, *end])
    assert (done.exit_code, "option endingOffset is for batch reads" in done.stderr) == (2, True)


@pytest.mark.parametrize("given", ["secret", "=secret", ""])
def test_malformed_name_value_pair_is_rejected_without_showing_it(given: str) -> None:
    with pytest.raises(OptionError, match=r"^--conf: expected name=value") as caught:
        pairs("--conf", [given])
    assert "secret" not in str(caught.value)
