"""The command ``inspect``: selections, output formats and errors."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from helpers.waiting import patience
from pyspark_mysqlbinlog.connector.cli.main import app

DATA = Path(__file__).resolve().parents[3] / "data"
TRANSACTIONS = DATA / "binlogs57" / "transactions.001.binlog"
GTIDS = [DATA / "binlogs57" / f"gtid_no_checksum.00{n}.binlog" for n in (1, 2)]


def inspect(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["inspect", *map(str, arguments)])


def objects(*arguments: object) -> list[dict[str, Any]]:
    shown = inspect(*arguments, "--json")
    assert shown.exit_code == 0, shown.output
    return [json.loads(text) for text in shown.stdout.splitlines()]


def test_inspect_prints_one_line_per_event() -> None:
    shown = inspect(TRANSACTIONS)
    assert shown.exit_code == 0
    file, heading, first, *_ = shown.stdout.splitlines()
    assert file == "# transactions.001.binlog"
    assert heading.split() == ["position", "end", "size", "time", "(UTC)", "event"]
    assert first.split()[:6] == ["4", "123", "119", "2026-11-20", "23:31:12", "FORMAT_DESCRIPTION"]
    assert len(shown.stdout.splitlines()) == 2 + len(objects(TRANSACTIONS))


def test_inspect_json_has_one_object_per_event_with_its_rows() -> None:
    found = objects(TRANSACTIONS, "-v")
    rows = [each for each in found if "op" in each]
    assert rows
    for each in rows:
        assert len(each["changes"]) == each["rows"]
        sides = {"c": {"after"}, "u": {"before", "after"}, "d": {"before"}}[each["op"]]
        assert all(change.keys() == sides for change in each["changes"])
    ends = [each["transaction"] for each in found if "transaction" in each]
    assert sum(end["rows"] for end in ends) == sum(each["rows"] for each in rows)


def test_inspect_shows_files_in_the_given_order() -> None:
    found = objects(*GTIDS)
    assert [*dict.fromkeys(each["file"] for each in found)] == [path.name for path in GTIDS]
    found = objects(DATA / "relay57" / "relay-bin.00000[23]")
    assert {each["file"] for each in found} == {"relay-bin.000002", "relay-bin.000003"}


def test_tables_option_selects_rows_with_their_transactions_and_ddl() -> None:
    found = objects(TRANSACTIONS, "--tables", "*.chi")
    assert {each["table"] for each in found if "table" in each} == {"chi"}
    # The last transaction is complete, from its first event to its last.
    types = [each["type"] for each in found if each["tx_pos"] == found[-1]["tx_pos"]]
    assert types[:2] == ["ANONYMOUS_GTID", "QUERY"]
    assert types[-1] == "XID"
    assert any("create table chi" in each.get("query", "") for each in found)
    assert not any("create table par" in each.get("query", "") for each in found)


def test_start_and_stop_position_limit_the_events_shown() -> None:
    whole = objects(TRANSACTIONS)
    first, end = (whole[at]["tx_pos"] for at in (6, 20))
    part = objects(TRANSACTIONS, "--start-position", first, "--stop-position", end)
    assert part == [each for each in whole if first <= each["pos"] < end]


def test_stop_and_start_datetime_split_the_events_shown() -> None:
    path = DATA / "binlogs57" / "random_ddl_177.001.binlog"
    times = sorted({each["time"] for each in objects(path)})
    assert len(times) > 1
    before = objects(path, "--stop-datetime", times[-1].removesuffix("Z"))
    after = objects(path, "--start-datetime", times[-1].replace("T", " "))
    assert len(before) + len(after) == len(objects(path))
    assert all(each["time"] < times[-1] for each in before)


def test_include_and_exclude_gtids_select_complementary_transactions() -> None:
    whole = [each for each in objects(GTIDS[0]) if "gtid" in each]
    uuid, _, number = whole[-1]["gtid"].rpartition(":")
    chosen = f"{uuid}:4-5"
    included = objects(GTIDS[0], "--include-gtids", chosen)
    excluded = objects(GTIDS[0], "--exclude-gtids", chosen)
    assert {each["gtid"] for each in included} == {f"{uuid}:4", f"{uuid}:5"}
    assert int(number) > 5
    assert sorted(each["pos"] for each in included + excluded) == [each["pos"] for each in whole]


def test_compressed_file_is_shown_like_the_plain_file(tmp_path: Path) -> None:
    packed = tmp_path / f"{TRANSACTIONS.name}.gz"
    packed.write_bytes(gzip.compress(TRANSACTIONS.read_bytes()))
    assert inspect("-v", packed).stdout == inspect("-v", TRANSACTIONS).stdout


def test_file_cut_inside_an_event_is_shown_up_to_that_event(tmp_path: Path) -> None:
    cut = tmp_path / TRANSACTIONS.name
    cut.write_bytes(TRANSACTIONS.read_bytes()[:-7])
    shown = inspect(cut)
    assert shown.exit_code == 0
    whole = inspect(TRANSACTIONS).stdout.splitlines()
    assert shown.stdout.splitlines() == whole[:-1]
    assert f"{cut.name} ends inside an event" in shown.stderr


def damaged(folder: Path) -> Path:
    content = bytearray(TRANSACTIONS.read_bytes())
    content[-40] ^= 0xFF
    path = folder / TRANSACTIONS.name
    path.write_bytes(content)
    return path


def encrypted(folder: Path) -> Path:
    path = folder / "mysql-bin.000001"
    path.write_bytes(b"\xfdbin" + bytes(600))
    return path


def no_binlog(folder: Path) -> Path:
    path = folder / "mysql-bin.000001"
    path.write_bytes(b"no binlog at all")
    return path


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (damaged, "ChecksumError: "),
        (encrypted, "UnsupportedEventError: the file is encrypted"),
        (no_binlog, "FormatError: this is not a binlog"),
    ],
)
@pytest.mark.parametrize("form", [[], ["-v", "--json"], ["--hexdump"], ["--stats"]])
def test_unreadable_file_gives_a_one_line_error_after_the_readable_events(
    make: Any, error: str, form: list[str], tmp_path: Path
) -> None:
    path = make(tmp_path)
    shown = inspect(path, *form)
    assert shown.exit_code == 1
    (line,) = shown.stderr.splitlines()
    assert line.startswith(error)
    assert path.name in line
    if make is damaged and not form:
        whole = inspect(TRANSACTIONS).stdout.splitlines()
        lines = shown.stdout.splitlines()
        assert lines == whole[: len(lines)]
        assert len(lines) > len(whole) - 4


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ([], "no log is given"),
        (["nowhere/mysql-bin.000001"], "no file at it"),
        ([TRANSACTIONS, "--tables", "a.b.c.d"], "option tables"),
        ([TRANSACTIONS, "--start-datetime", "yesterday"], "--start-datetime: expected a time"),
        ([TRANSACTIONS, "--include-gtids", "nothing"], "expected"),
        ([TRANSACTIONS, "--user", "root"], "need --host"),
        (["--host", "localhost", "--option", "tables"], "expected name=value"),
    ],
)
def test_inspect_with_wrong_argument_gives_a_one_line_error(
    arguments: list[object], error: str
) -> None:
    shown = inspect(*arguments)
    assert shown.exit_code == 2
    (line,) = shown.stderr.splitlines()
    assert line.startswith("OptionError: ")
    assert error in line


@pytest.mark.parametrize("flag", ["--start-position", "--stop-position"])
def test_inspect_rejects_a_negative_position(flag: str) -> None:
    shown = inspect(TRANSACTIONS, flag, "-4")
    assert shown.exit_code == 2
    assert flag in shown.stderr


def test_report_option_writes_html_and_prints_nothing_without_stats(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    (statistics,) = objects(TRANSACTIONS, "--stats", "--report", page)
    assert statistics["transactions"] > 20
    assert f"<b>{statistics['transactions']}</b>" in page.read_text(encoding="utf-8")
    assert inspect(TRANSACTIONS, "--report", page).stdout == ""


def test_unwritable_report_path_gives_a_one_line_error(tmp_path: Path) -> None:
    page = tmp_path / "missing" / "report.html"
    shown = inspect(TRANSACTIONS, "--report", page)
    assert shown.exit_code == 1
    assert shown.stderr == f"OptionError: '{page}' can't be written: No such file or directory\n"


@pytest.mark.parametrize("name", ["binlogs57/charsets.001.binlog", "binlogs97/strings.001.binlog"])
def test_inspect_json_is_utf_8_in_an_ascii_locale(name: str) -> None:
    command = [sys.executable, "-P", "-m", "pyspark_mysqlbinlog.connector.cli.main", "inspect"]
    ascii_locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [*command, "-v", "--json", str(DATA / name)],
        env=os.environ | ascii_locale,
        capture_output=True,
        timeout=patience(60),
        check=True,
    )
    assert not done.stdout.isascii()
    lines = done.stdout.decode("utf-8").splitlines()
    assert [json.loads(text) for text in lines] == objects(DATA / name, "-v")


def test_inspect_exits_without_an_error_message_when_its_pipe_is_closed() -> None:
    command = [sys.executable, "-P", "-m", "pyspark_mysqlbinlog.connector.cli.main", "inspect"]
    path = DATA / "binlogs57" / "json_docs.001.binlog"
    with subprocess.Popen(
        [*command, "-v", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(patience(60)) == 1


PROGRAM = """
import sys
from pyspark_mysqlbinlog.connector.cli.main import app
app(["inspect", "-v", "--hexdump", sys.argv[1]], standalone_mode=False)
print({"pyspark", "deltalake"} & set(sys.modules), file=sys.stderr)
"""


def test_inspect_of_files_imports_neither_pyspark_nor_deltalake() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, str(TRANSACTIONS)],
        capture_output=True,
        text=True,
        timeout=patience(60),
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "set()\n")


def test_inspect_of_a_folder_shows_its_binlog_files(tmp_path: Path) -> None:
    for path in GTIDS:
        shutil.copy(path, tmp_path)
    assert objects(tmp_path) == objects(*GTIDS)
