"""The output of `doctor` and its exit codes."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from rich.console import Console
from typer.testing import CliRunner

from helpers.servers.base import free_port
from pyspark_mysqlbinlog.connector.cli.console.findings import remedies_of, show_findings
from pyspark_mysqlbinlog.connector.cli.main import app
from pyspark_mysqlbinlog.connector.doctor.finding import Finding

FINDINGS = [
    Finding("ok", "log_bin is ON", check="binlog"),
    Finding("warning", "[red]a\x1b[2J", "b", ("ALTER TABLE `a\x1b`", "DO 1"), "or\nnot", "keys"),
    Finding("stop", "no ROW", statements=("SET GLOBAL x = 'ROW'",), check="format"),
    Finding("warning", "nothing to type", check="clock"),
]


def _printed(*findings: Finding, width: int = 60) -> str:
    text = StringIO()
    show_findings(findings, Console(file=text, width=width))
    return text.getvalue()


def test_doctor_prints_one_line_per_finding_and_the_counts_last() -> None:
    lines = _printed(*FINDINGS).splitlines()
    assert [line.split()[:2] for line in lines[1:5]] == [
        ["ok", "binlog"],
        ["warning", "keys"],
        ["stop", "format"],
        ["warning", "clock"],
    ]
    assert lines[-1] == "1 stop, 2 warning, 1 ok"


def test_doctor_escapes_control_characters_and_keeps_markup_as_text() -> None:
    text = _printed(*FINDINGS)
    assert "[red]a\\x1b[2J (expected: b)" in text
    assert "\x1b" not in text


def test_statement_wider_than_the_terminal_is_printed_unwrapped() -> None:
    long = f"ALTER TABLE `{'t' * 200}` ENGINE = InnoDB"
    assert f"\n{long};\n" in _printed(Finding("warning", "x", statements=(long,), check="y"))


def test_doctor_remedies_are_sql_statements_with_comments() -> None:
    lines = remedies_of(FINDINGS)
    assert [line for line in lines if not line.startswith("SET @s")] == [
        "-- keys",
        "-- or\\nnot",
        "DO 1;",
        "-- format",
        "SET GLOBAL x = 'ROW';",
    ]
    assert all(line.startswith("-- ") or line.endswith(";") for line in lines)


def test_findings_without_statements_print_no_mysql_client_hint() -> None:
    assert "mysql client" not in _printed(FINDINGS[0], FINDINGS[3])


@pytest.mark.parametrize(
    "more",
    [
        ["--option", "nope=1"],
        ["--option", "port=1"],
        ["--option", "nope"],
        ["--option", "tables=t"],
        ["--target", "/lake/one"],
        ["--storage-option", "AWS_REGION=x"],
        ["--target", "/lake/{table}", "--option", "payload=json"],
        ["--password-file", "/nowhere/at/all"],
    ],
)
def test_doctor_with_wrong_argument_exits_with_2(more: list[str]) -> None:
    done = CliRunner().invoke(app, ["doctor", "--host", "db.invalid", "--user", "u", *more])
    assert done.exit_code == 2
    assert done.stderr.startswith("OptionError: ")


def test_doctor_with_unreachable_server_exits_with_1_and_checks_the_target(
    tmp_path: object,
) -> None:
    address = ["--host", "127.0.0.1", "--port", str(free_port()), "--user", "u"]
    target = ["--target", f"{tmp_path}/lake/{{database}}/{{table}}"]
    done = CliRunner().invoke(app, ["doctor", *address, *target, "--json"])
    assert done.exit_code == 1
    found = json.loads(done.stdout)
    assert [(each["check"], each["status"]) for each in found] == [
        ("connection", "stop"),
        ("target storage", "ok"),
    ]
