"""Arguments that commands share, and the options that they set."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from pyspark_mysqlbinlog.connector.cli.arguments import pairs, source_options
from pyspark_mysqlbinlog.connector.cli.main import app
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


@pytest.mark.parametrize("given", ["secret", "=secret", ""])
def test_malformed_name_value_pair_is_rejected_without_showing_it(given: str) -> None:
    with pytest.raises(OptionError, match=r"^--conf: expected name=value") as caught:
        pairs("--conf", [given])
    assert "secret" not in str(caught.value)
