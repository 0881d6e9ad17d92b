"""The binlog position that a streaming query has reached."""

from __future__ import annotations

import json
from typing import Any

from helpers.waiting import wait_until

__all__ = ["wait_for_position"]


def wait_for_position(query: Any, end: tuple[str, int]) -> None:
    """Wait until a batch up to this position is written; the last change must be a captured one.

    `processAllAvailable` is not enough: it returns when the stream has read nothing for a moment.
    """

    def reached() -> bool:
        assert query.exception() is None, query.exception()
        if query.lastProgress is None:
            return False
        offset = query.lastProgress["sources"][0]["endOffset"]
        offset = json.loads(offset) if isinstance(offset, str) else offset
        return offset is not None and (offset["file"], offset["pos"]) >= end

    wait_until(reached, f"{end} is reached", 300, every=0.1)
