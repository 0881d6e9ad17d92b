"""``inspect`` as it is called: selections, forms of output, and what ends it."""

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


def test_each_event_is_a_line() -> None:
    shown = inspect(TRANSACTIONS)
    assert shown.exit_code == 0
    file, heading, first, *_ = shown.stdout.splitlines()
    assert file == "# transactions.001.binlog"
    assert heading.split() == ["position", "end", "size", "time", "(UTC)", "event"]
    assert first.split()[:6] == ["4", "123", "119", "2026-11-20", "23:31:12", "FORMAT_DESCRIPTION"]
    assert len(shown.stdout.splitlines()) == 2 + len(objects(TRANSACTIONS))


def test_json_has_one_object_for_each_event_with_its_rows() -> None:
    found = objects(TRANSACTIONS, "-v")
    rows = [each for each in found if "op" in each]
    assert rows
    for each in rows:
        assert len(each["changes"]) == each["rows"]
        sides = {"c": {"after"}, "u": {"before", "after"}, "d": {"before"}}[each["op"]]
        assert all(change.keys() == sides for change in each["changes"])
    ends = [each["transaction"] for each in found if "transaction" in each]
    assert sum(end["rows"] for end in ends) == sum(each["rows"] for each in rows)


def test_files_are_shown_in_the_order_in_which_they_are_given() -> None:
    found = objects(*GTIDS)
    assert [*dict.fromkeys(each["file"] for each in found)] == [path.name for path in GTIDS]
    found = objects(DATA / "relay57" / "relay-bin.00000[23]")
    assert {each["file"] for each in found} == {"relay-bin.000002", "relay-bin.000003"}


def test_tables_select_their_rows_and_the_events_around_them() -> None:
    found = objects(TRANSACTIONS, "--tables", "*.chi")
    assert {each["table"] for each in found if "table" in each} == {"chi"}
    # The transaction of each, from its first event to its last.
    types = [each["type"] for each in found if each["tx_pos"] == found[-1]["tx_pos"]]
    assert types[:2] == ["ANONYMOUS_GTID", "QUERY"]
    assert types[-1] == "XID"
    assert any("create table chi" in each.get("query", "") for each in found)
    assert not any("create table par" in each.get("query", "") for each in found)


def test_positions_limit_what_is_shown() -> None:
    whole = objects(TRANSACTIONS)
    first, behind = (whole[at]["tx_pos"] for at in (6, 20))
    part = objects(TRANSACTIONS, "--start-position", first, "--stop-position", behind)
    assert part == [each for each in whole if first <= each["pos"] < behind]


def test_times_select_whole_transactions() -> None:
    path = DATA / "binlogs57" / "random_ddl_177.001.binlog"
    times = sorted({each["time"] for each in objects(path)})
    assert len(times) > 1
    before = objects(path, "--stop-datetime", times[-1].removesuffix("Z"))
    after = objects(path, "--start-datetime", times[-1].replace("T", " "))
    assert len(before) + len(after) == len(objects(path))
    assert all(each["time"] < times[-1] for each in before)


def test_gtids_select_transactions() -> None:
    whole = [each for each in objects(GTIDS[0]) if "gtid" in each]
    uuid, _, number = whole[-1]["gtid"].rpartition(":")
    chosen = f"{uuid}:4-5"
    included = objects(GTIDS[0], "--include-gtids", chosen)
    excluded = objects(GTIDS[0], "--exclude-gtids", chosen)
    assert {each["gtid"] for each in included} == {f"{uuid}:4", f"{uuid}:5"}
    assert int(number) > 5
    assert sorted(each["pos"] for each in included + excluded) == [each["pos"] for each in whole]


def test_compressed_files_are_shown_as_what_they_contain(tmp_path: Path) -> None:
    packed = tmp_path / f"{TRANSACTIONS.name}.gz"
    packed.write_bytes(gzip.compress(TRANSACTIONS.read_bytes()))
    assert inspect("-v", packed).stdout == inspect("-v", TRANSACTIONS).stdout


def test_a_file_that_ends_inside_an_event_is_shown_up_to_it(tmp_path: Path) -> None:
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
def test_what_cannot_be_read_is_one_line_after_everything_before_it(
    make: Any, error: str, form: list[str], tmp_path: Path
) -> None:
    path = make(tmp_path)
    shown = inspect(path, *form)
    assert shown.exit_code == 1
    (told,) = shown.stderr.splitlines()
    assert told.startswith(error)
    assert path.name in told
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
def test_a_wrong_argument_is_one_line(arguments: list[object], error: str) -> None:
    shown = inspect(*arguments)
    assert shown.exit_code == 2
    (told,) = shown.stderr.splitlines()
    assert told.startswith("OptionError: ")
    assert error in told


@pytest.mark.parametrize("flag", ["--start-position", "--stop-position"])
def test_a_position_before_the_first_event_is_a_wrong_argument(flag: str) -> None:
    shown = inspect(TRANSACTIONS, flag, "-4")
    assert shown.exit_code == 2
    assert flag in shown.stderr


def test_a_report_is_written_next_to_the_numbers(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    (told,) = objects(TRANSACTIONS, "--stats", "--report", page)
    assert told["transactions"] > 20
    assert f"<b>{told['transactions']}</b>" in page.read_text(encoding="utf-8")
    assert inspect(TRANSACTIONS, "--report", page).stdout == ""


def test_a_report_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    page = tmp_path / "missing" / "report.html"
    shown = inspect(TRANSACTIONS, "--report", page)
    assert shown.exit_code == 1
    assert shown.stderr == f"OptionError: '{page}' can't be written: No such file or directory\n"


@pytest.mark.parametrize("name", ["binlogs57/charsets.001.binlog", "binlogs97/strings.001.binlog"])
def test_json_is_utf_8_in_every_locale(name: str) -> None:
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


def test_a_reader_that_has_enough_ends_the_command_quietly() -> None:
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


def test_files_are_inspected_without_spark() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, str(TRANSACTIONS)],
        capture_output=True,
        text=True,
        timeout=patience(60),
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "set()\n")


def test_a_log_is_found_in_a_folder(tmp_path: Path) -> None:
    for path in GTIDS:
        shutil.copy(path, tmp_path)
    assert objects(tmp_path) == objects(*GTIDS)
