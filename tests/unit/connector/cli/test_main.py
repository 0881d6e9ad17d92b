"""What the command line says of itself."""

from __future__ import annotations

import inspect
import typing
from importlib.metadata import version

from typer.models import OptionInfo
from typer.testing import CliRunner

from pyspark_mysqlbinlog.connector.cli.main import app, ingest


def test_version_is_that_of_the_package() -> None:
    shown = CliRunner().invoke(app, ["--version"])
    assert shown.exit_code == 0
    assert shown.stdout == f"pyspark-mysqlbinlog {version('pyspark-mysqlbinlog')}\n"


def test_every_option_of_ingest_has_help_and_a_heading() -> None:
    hints = typing.get_type_hints(ingest, include_extras=True)
    for name in inspect.signature(ingest).parameters:
        (option,) = typing.get_args(hints[name])[1:]
        assert isinstance(option, OptionInfo)
        assert option.help, name
        assert option.rich_help_panel, name
