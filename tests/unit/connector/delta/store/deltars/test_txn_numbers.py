"""TxnNumbers always equal the numbers that delta-rs finds in the whole Delta log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from pyspark_mysqlbinlog.connector.delta.store.deltars.table import (
    DeltalakeEngine,
    DeltalakeTarget,
)
from pyspark_mysqlbinlog.connector.delta.store.deltars.txn_numbers import TxnNumbers

IDENTIFIERS = ("query", "log", "log:event", "log\ttxn", "never written")
ROWS = pa.table({"id": [1, 2, 3]})


def write(folder: Path, number: int, *identifiers: str) -> None:
    transactions = [Transaction(name, number) for name in identifiers]
    write_deltalake(
        folder,
        ROWS,
        mode="append",
        commit_properties=CommitProperties(app_transactions=transactions),
    )


def commit_file(folder: Path, version: int) -> Path:
    return folder / "_delta_log" / f"{version:020}.json"


class Numbers:
    """TxnNumbers of a folder, and the versions whose commits were read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.table = DeltaTable(folder)
        self.read: list[int] = []
        self.numbers = TxnNumbers(self._lines)

    def _lines(self, version: int) -> Iterator[str]:
        self.read.append(version)
        yield from commit_file(self.folder, version).read_text().splitlines()

    def assert_as_in_log(self) -> None:
        self.table.update_incremental()
        fresh = DeltaTable(self.folder)
        for name in IDENTIFIERS:
            assert self.numbers.get(self.table, name) == fresh.transaction_version(name), name


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(5))
def test_txn_numbers_equal_delta_log_after_random_commits_and_checkpoints(
    tmp_path: Path, seed: int
) -> None:
    random = Random(seed)
    write(tmp_path, 0, "query")
    numbers = Numbers(tmp_path)
    for number in range(1, 60):
        named = [name for name in IDENTIFIERS[:-1] if random.random() < 0.4]
        write(tmp_path, random.randrange(1000), *named)
        table = DeltaTable(tmp_path)
        if random.random() < 0.1:
            table.create_checkpoint()
        if random.random() < 0.1:
            table.optimize.compact()
        if number % random.randint(1, 8) == 0:
            numbers.assert_as_in_log()
    assert numbers.read


def test_each_commit_is_read_once_and_the_log_once_per_identifier(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def transaction_version(table: DeltaTable, name: str) -> int | None:
        asked.append(name)
        return found(table, name)

    write(tmp_path, 1, "query")
    numbers, found = Numbers(tmp_path), DeltaTable.transaction_version
    with monkeypatch.context() as patch:
        patch.setattr(DeltaTable, "transaction_version", transaction_version)
        for number in range(2, 12):
            write(tmp_path, number, "query", "log")
            numbers.table.update_incremental()
            held = [numbers.numbers.get(numbers.table, name) for name in ("query", "log", "none")]
            assert held == [number, number, None]
    assert asked == ["query", "log", "none"]
    assert numbers.read == [*range(2, 11)]


def test_txn_numbers_are_correct_if_a_commit_file_was_removed(tmp_path: Path) -> None:
    write(tmp_path, 1, "query", "log")
    numbers = Numbers(tmp_path)
    numbers.assert_as_in_log()
    write(tmp_path, 2, "query")
    write(tmp_path, 3, "log")
    DeltaTable(tmp_path).create_checkpoint()
    commit_file(tmp_path, 1).unlink()
    numbers.assert_as_in_log()


def test_txn_number_is_correct_after_store_errors(tmp_path: Path) -> None:
    write(tmp_path, 1, "query")
    fails: list[int] = []

    def lines(version: int) -> list[str]:
        if version in fails:
            raise OSError("the store does not answer")
        return commit_file(tmp_path, version).read_text().splitlines()

    table, numbers = DeltaTable(tmp_path), TxnNumbers(lines)
    assert numbers.get(table, "query") == 1
    write(tmp_path, 2, "query")
    write(tmp_path, 3, "log")
    table.update_incremental()
    for fails[:] in ([1], [2]):
        with pytest.raises(OSError, match="does not answer"):
            numbers.get(table, "query")
    fails.clear()
    assert numbers.get(table, "query") == 2


def test_many_new_commits_are_not_read_one_by_one(tmp_path: Path) -> None:
    write(tmp_path, 1, "query")
    numbers = Numbers(tmp_path)
    numbers.assert_as_in_log()
    for number in range(20):
        write(tmp_path, number, "log")
    numbers.assert_as_in_log()
    assert numbers.read == []


def test_older_table_version_has_its_own_txn_numbers(tmp_path: Path) -> None:
    for number in range(4):
        write(tmp_path, number, "query")
    numbers = Numbers(tmp_path)
    numbers.assert_as_in_log()
    numbers.table.load_as_version(1)
    assert numbers.numbers.get(numbers.table, "query") == 1


def target_of(folder: Path) -> DeltalakeTarget:
    return DeltalakeEngine().target(str(folder))


@pytest.mark.parametrize("is_emptied", [False, True], ids=["other rows", "no table"])
def test_table_replaced_at_same_path_has_none_of_old_txn_numbers(
    tmp_path: Path, *, is_emptied: bool
) -> None:
    place = tmp_path / "t"
    write(place, 7, "query")
    target = target_of(place)
    assert target.txn_version("query") == 7
    place.rename(tmp_path / "old")
    if not is_emptied:
        write(place, 8, "log")
    target.forget_state()
    if is_emptied:
        target.create(ROWS.schema, {})
    assert target.txn_version("query") is None
    assert target.txn_version("log") == (None if is_emptied else 8)
