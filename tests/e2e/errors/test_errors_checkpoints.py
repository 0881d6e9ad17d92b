"""Errors of checkpoints from which a query cannot resume.

The module has a server of its own, because binlog files are purged.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from e2e.conftest import AVAILABLE_NOW, REPLICATION, Account, Fails
from helpers.servers import Server
from helpers.streams.spark_session import Reads
from helpers.writers.purges import purge


@pytest.fixture
def checkpoint(shop: Server, account: Account, tmp_path: Path) -> tuple[Reads, Path]:
    """Return reads and the checkpoint of a query on shop.orders that has delivered rows."""
    reads = account(shop, REPLICATION, "SELECT ON *.*")
    shop.execute("REPLACE INTO shop.orders VALUES (100, LEFT(UUID(), 20))")
    path = tmp_path / "checkpoint"
    delivered = reads.available_now(path, tables="shop.orders", startingOffset="earliest")
    assert any(delivered)
    return reads, path


def rewrite_newest_offset(checkpoint: Path, **changes: Any) -> None:
    newest = max((checkpoint / "offsets").glob("[0-9]*"), key=lambda file: int(file.name))
    *head, last = newest.read_text().splitlines()
    newest.write_text("\n".join([*head, json.dumps(json.loads(last) | changes)]))
    newest.with_name(f".{newest.name}.crc").unlink(missing_ok=True)


@pytest.mark.sample(1, by="trigger")
@pytest.mark.parametrize("trigger", [None, AVAILABLE_NOW], ids=["default", "available now"])
@pytest.mark.parametrize(
    ("changes", "name", "says"),
    [
        ({"v": 2}, "OffsetError", "written by a newer pyspark-mysqlbinlog: upgrade"),
        ({"pos": 1 << 30}, "BinlogReplacedError", "lost its tail"),
    ],
    ids=["newer version", "past the end"],
)
def test_checkpoint_of_newer_version_or_past_the_end_is_rejected(
    *,
    changes: dict[str, Any],
    name: str,
    says: str,
    trigger: dict[str, Any] | None,
    checkpoint: tuple[Reads, Path],
    fails: Fails,
) -> None:
    reads, path = checkpoint
    rewrite_newest_offset(path, **changes)
    error = fails(lambda: reads.stream(tables="shop.orders"), trigger=trigger, checkpoint=path)
    assert error.name == name
    assert says in error.message


@pytest.mark.parametrize("trigger", [None, AVAILABLE_NOW], ids=["default", "available now"])
def test_checkpoint_of_another_server_is_rejected(
    *,
    trigger: dict[str, Any] | None,
    checkpoint: tuple[Reads, Path],
    shop: Server,
    mysql56: Server,
    account: Account,
    fails: Fails,
) -> None:
    _, path = checkpoint
    reads = account(mysql56, REPLICATION, "SELECT ON *.*")
    error = fails(lambda: reads.stream(tables="shop.orders"), trigger=trigger, checkpoint=path)
    assert error.name == "ServerError"
    for server in (shop, mysql56):
        assert server.execute("SELECT @@server_uuid")[0][0] in error.message
    assert "new checkpoint" in error.message


@pytest.mark.parametrize("trigger", [None, AVAILABLE_NOW], ids=["default", "available now"])
def test_checkpoint_in_purged_file_is_rejected_unless_fail_on_data_loss_is_false(
    trigger: dict[str, Any] | None,
    checkpoint: tuple[Reads, Path],
    shop: Server,
    fails: Fails,
    tmp_path: Path,
) -> None:
    reads, path = checkpoint
    file = shop.binlog_files()[-1][0]
    kept = tmp_path / "kept"
    shutil.copytree(path, kept)
    purge(shop)
    error = fails(lambda: reads.stream(tables="shop.orders"), trigger=trigger, checkpoint=kept)
    assert error.name == "BinlogPurgedError"
    assert "the server no longer has this binlog" in error.message
    assert "new checkpoint" in error.message
    assert f"at {file}:" in error.message
    # The error contains a remedy.
    assert "set failOnDataLoss=false" in error.message
    shop.execute(
        "DELETE FROM shop.orders WHERE id = 101", "INSERT INTO shop.orders VALUES (101, 'later')"
    )
    batches = reads.available_now(
        kept, tables="shop.orders", failOnDataLoss="false", operations="insert,update,delete,gap"
    )
    rows = [row for batch in batches for row in batch]
    assert "later" in str(rows[-1].after)
    assert [row.op for row in rows].count("gap") == 1
    assert rows[0].source.query.startswith(f"/* gap */ from {file}:")
