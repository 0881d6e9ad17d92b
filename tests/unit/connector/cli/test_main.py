"""Help and version of the command line, and the modules that they import."""

from __future__ import annotations

import inspect
import subprocess
import sys
import typing
from importlib.metadata import version

import pytest
from typer.models import ParameterInfo
from typer.testing import CliRunner

from pyspark_mysqlbinlog.connector.cli.commands import SUMMARIES, command_function
from pyspark_mysqlbinlog.connector.cli.main import app

# Prints the heavy packages that the command line has imported when it ends.
IMPORTED_AT_THE_END = """
import atexit, sys
HEAVY = {"deltalake", "pandas", "pyarrow", "pydantic", "pymysql", "pyspark", "rich", "tenacity"}
atexit.register(lambda: print("imported:", *HEAVY & {*sys.modules}))
from pyspark_mysqlbinlog.connector.cli.main import app
app(prog_name="pyspark-mysqlbinlog")
"""


def test_version_option_prints_the_package_version() -> None:
    shown = CliRunner().invoke(app, ["--version"])
    assert shown.exit_code == 0
    assert shown.stdout == f"pyspark-mysqlbinlog {version('pyspark-mysqlbinlog')}\n"


@pytest.mark.parametrize("command", SUMMARIES)
def test_every_command_line_option_has_help_and_a_heading(command: str) -> None:
    function = command_function(command)
    hints = typing.get_type_hints(function, include_extras=True)
    for name in inspect.signature(function).parameters:
        (option,) = typing.get_args(hints[name])[1:]
        assert isinstance(option, ParameterInfo)
        assert option.help, name
        assert option.rich_help_panel, name


@pytest.mark.parametrize("command", SUMMARIES)
def test_command_summary_is_the_first_line_of_its_docstring(command: str) -> None:
    documentation = inspect.getdoc(command_function(command))
    assert documentation is not None
    assert documentation.splitlines()[0] == SUMMARIES[command]


@pytest.mark.parametrize("command", SUMMARIES)
def test_command_help_has_each_heading_once(command: str) -> None:
    shown = CliRunner().invoke(app, [command, "--help"]).stdout
    headings = [line for line in shown.splitlines() if line.endswith(":") and line[0] != " "]
    hints = typing.get_type_hints(command_function(command), include_extras=True)
    wanted = {
        hint.__metadata__[0].rich_help_panel for name, hint in hints.items() if name != "return"
    }
    assert {*headings} == {f"{each}:" for each in wanted} | {"Other:"}
    assert len(headings) == len({*headings})


@pytest.mark.parametrize("typed", ["--help", "--version"])
def test_help_and_version_import_no_heavy_package(typed: str) -> None:
    assert _imported_by(typed) == set()


@pytest.mark.parametrize("command", SUMMARIES)
def test_help_of_a_command_imports_no_heavy_package(command: str) -> None:
    # Newer versions of typer need pydantic for flags.
    assert _imported_by(command, "--help") <= {"pydantic"}


def _imported_by(*typed: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED_AT_THE_END, *typed],
        capture_output=True,
        text=True,
        check=True,
    )
    shown, _, imported = done.stdout.rpartition("imported:")
    assert shown
    return {*imported.split()}


def test_unknown_command_exits_with_2() -> None:
    done = CliRunner().invoke(app, ["igest"])
    assert done.exit_code == 2
    assert "No such command 'igest'" in done.stderr
