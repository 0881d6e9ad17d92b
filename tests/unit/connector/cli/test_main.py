"""What the command line says of itself."""

from __future__ import annotations

import inspect
import typing
from importlib.metadata import version

import pytest
from typer.models import CommandInfo, ParameterInfo
from typer.testing import CliRunner

from pyspark_mysqlbinlog.connector.cli.main import app


def test_version_is_that_of_the_package() -> None:
    shown = CliRunner().invoke(app, ["--version"])
    assert shown.exit_code == 0
    assert shown.stdout == f"pyspark-mysqlbinlog {version('pyspark-mysqlbinlog')}\n"


@pytest.mark.parametrize("command", app.registered_commands)
def test_every_option_has_help_and_a_heading(command: CommandInfo) -> None:
    assert command.callback is not None
    hints = typing.get_type_hints(command.callback, include_extras=True)
    for name in inspect.signature(command.callback).parameters:
        (option,) = typing.get_args(hints[name])[1:]
        assert isinstance(option, ParameterInfo)
        assert option.help, name
        assert option.rich_help_panel, name
