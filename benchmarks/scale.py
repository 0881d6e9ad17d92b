"""How large a run is: the whole one, and the short one that only shows that every part works."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FULL", "SHORT", "Scale"]


@dataclass(frozen=True, slots=True)
class Scale:
    """Sizes of one run.

    Attributes
    ----------
    bulk_rows : in INSERTs of 1,000 rows.
    single_rows : in transactions of one row each.
    rounds : each part runs once a round, the parts by turns.
    piece_rows : what slow ones read of each file.
    latency_seconds, latency_rate : commits a second, and for how long.
    memory_bytes : of the backlog that memory is measured with; 0 leaves it out.
    warm_up : whether everything runs before it is measured.
    """

    bulk_rows: int
    single_rows: int
    rounds: int
    piece_rows: int
    latency_seconds: float
    latency_rate: int
    memory_bytes: int = 0
    warm_up: bool = True


FULL = Scale(
    bulk_rows=600_000,
    single_rows=100_000,
    rounds=5,
    piece_rows=50_000,
    latency_seconds=20.0,
    latency_rate=500,
)
SHORT = Scale(
    bulk_rows=4_000,
    single_rows=1_000,
    rounds=1,
    piece_rows=500,
    latency_seconds=2.0,
    latency_rate=100,
    memory_bytes=1_000_000,
    warm_up=False,
)
