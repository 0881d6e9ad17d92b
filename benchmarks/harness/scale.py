"""How large a run is: the whole one, and the short one that only shows that every part works."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FULL", "FULL_SNAPSHOTS", "SHORT", "SHORT_SNAPSHOTS", "Scale", "SnapshotScale"]


@dataclass(frozen=True, slots=True)
class Scale:
    """Sizes of one run.

    Attributes
    ----------
    bulk_rows : in INSERTs of 1,000 rows.
    single_rows : in transactions of one row each.
    rounds : each part runs once a round, the parts interleaved.
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


@dataclass(frozen=True, slots=True)
class SnapshotScale:
    """Sizes of the benchmarks of first loads and mirrors.

    Attributes
    ----------
    rows : of the large table.
    slow_rows : of it that the slowest peer reads.
    small_tables : of ten rows each.
    rounds : each part runs once a round, the parts interleaved.
    mirror_rows : of each of the mirror's tables.
    updates : of each of them in a batch.
    batches : that are measured; one more comes first.
    log_bulk, log_single : rows in INSERTs of 1,000, and transactions of one row, that a mirror
        follows.
    lag_rate, lag_seconds : transactions a second, and for how long.
    warm_up : whether what is quick runs before it is measured.
    """

    rows: int
    slow_rows: int
    small_tables: int
    rounds: int
    mirror_rows: int
    updates: int
    batches: int
    log_bulk: int
    log_single: int
    lag_rate: int
    lag_seconds: float
    warm_up: bool = True


FULL_SNAPSHOTS = SnapshotScale(
    rows=5_000_000,
    slow_rows=1_000_000,
    small_tables=1_000,
    rounds=3,
    mirror_rows=1_000_000,
    updates=20_000,
    batches=5,
    log_bulk=FULL.bulk_rows,
    log_single=FULL.single_rows,
    lag_rate=500,
    lag_seconds=600.0,
)
SHORT_SNAPSHOTS = SnapshotScale(
    rows=10_000,
    slow_rows=2_000,
    small_tables=20,
    rounds=1,
    mirror_rows=5_000,
    updates=500,
    batches=1,
    log_bulk=SHORT.bulk_rows,
    log_single=SHORT.single_rows,
    lag_rate=100,
    lag_seconds=3.0,
    warm_up=False,
)
