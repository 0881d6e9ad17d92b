"""A compaction of files that another one has already replaced, as delta-rs 1.6.6 commits it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from deltalake import DeltaTable

__all__ = ["repeat_compaction"]


def repeat_compaction(folder: Path) -> int:
    """Compact a Delta table of several files twice from one version; return the last version.

    The second commit is written as a file, so that it does not depend on the version of delta-rs.
    """
    table = DeltaTable(folder)
    assert len(table.file_uris()) > 1, "there is nothing to compact"
    table.optimize.compact()
    log = folder / "_delta_log"
    lines = (log / f"{table.version():020}.json").read_text(encoding="utf-8").splitlines()
    actions = [json.loads(line) for line in lines]
    for action in actions:
        if "add" in action:
            name = action["add"]["path"]
            action["add"]["path"] = f"{name}.again.parquet"
            shutil.copy(folder / name, folder / action["add"]["path"])
    repeated = log / f"{table.version() + 1:020}.json"
    repeated.write_text("\n".join(map(json.dumps, actions)), encoding="utf-8")
    return table.version() + 1
