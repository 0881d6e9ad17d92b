"""The compiled scan of damaged logs: the same error at the same position as in Python."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterable

import pytest

import helpers.parity.require_kernel  # noqa: F401 (skips this module if there is no kernel)
from helpers.logs.events import LogBuilder
from helpers.parity.decoding import CAPTURED, raws_in
from helpers.parity.scan_parity import always, captures_half, compare, framed
from pyspark_mysqlbinlog.protocol.events import HEADER, HEADER_LENGTH


def flipped(data: bytes, chance: random.Random) -> bytes:
    damaged = bytearray(data)
    for _ in range(chance.choice([1, 1, 2, 5])):
        damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
    return bytes(damaged)


def with_checksums(raws: Iterable[bytes]) -> list[bytes]:
    """Return damaged events with valid checksums, so that other checks must find the damage."""
    return [raw[:-4] + zlib.crc32(raw[:-4]).to_bytes(4, "little") for raw in raws]


SMALL = ["transactions.001", "numbers.001", "rotations.001", "gtid_no_checksum.001"]


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("packets", [True, False], ids=["dump", "file"])
def test_kernel_scan_of_logs_with_flipped_bits_matches_python(name: str, packets: bool) -> None:
    raws = raws_in(CAPTURED / f"{name}.binlog")
    chance = random.Random(f"{name}{packets}")
    data = framed(raws) if packets else b"".join(raws)
    errors = set()
    for _ in range(150):
        damaged = flipped(data, chance)
        size = chance.choice([100, 1000, 1 << 20])
        found = compare(
            damaged, packets=packets, captured=lambda *_: True, sizes=always(size), capacity=3000
        )
        errors.add(found.error.partition(":")[0])
    assert len(errors - {""}) > 1


@pytest.mark.parametrize("name", SMALL[:3])
def test_kernel_scan_of_flipped_bits_under_valid_checksums_matches_python(name: str) -> None:
    raws = raws_in(CAPTURED / f"{name}.binlog")
    chance = random.Random(name)
    errors = set()
    for _ in range(300):
        damaged = list(raws)
        at = chance.randrange(len(raws))
        damaged[at] = with_checksums([flipped(raws[at], chance)])[0]
        packets = chance.random() < 0.5
        data = framed(damaged) if packets else b"".join(damaged)
        errors.add(compare(data, packets=packets, captured=captures_half).error.partition(":")[0])
    assert len(errors - {""}) > 2


@pytest.mark.parametrize("packets", [True, False], ids=["dump", "file"])
def test_kernel_scan_of_a_log_cut_at_every_byte_matches_python(packets: bool) -> None:
    log = LogBuilder().format_description()
    log.begin(gtid=1).rows(1, "t", 1).xid().begin(gtid=2).rows(1, "t", 1).rows(2, "x", 2).xid()
    data = framed(log.raws) if packets else b"".join(log.raws)
    for length in range(len(data) + 1):
        compare(data[:length], packets=packets)


@pytest.mark.parametrize("seed", range(200))
def test_kernel_scan_of_dropped_doubled_and_reordered_events_matches_python(seed: int) -> None:
    """Positions and checksums are valid, so only the filter can reject the log."""
    chance = random.Random(seed)
    name = chance.choice(["transactions.001", "numbers.001", "statements.001", "rotations.002"])
    events = [
        (HEADER.unpack_from(raw), raw[HEADER_LENGTH:-4])
        for raw in raws_in(CAPTURED / f"{name}.binlog")
    ]
    for _ in range(chance.choice([1, 2, 4])):
        at, to = chance.randrange(1, len(events)), chance.randrange(1, len(events))
        match chance.choice(["drop", "double", "move", "swap"]):
            case "drop" if len(events) > 5:
                del events[at]
            case "double":
                events.insert(to, events[at])
            case "move":
                events.insert(to, events.pop(at))
            case _:
                events[at], events[to] = events[to], events[at]
    log = LogBuilder()
    for (_, kind, _, _, _, flags), body in events:
        log.add(kind, body, flags)
    packets = chance.random() < 0.5
    data = framed(log.raws) if packets else b"".join(log.raws)
    size = chance.choice([50, 1000, 1 << 20])
    salt = chance.choice(["", "a", "b"])
    compare(
        data,
        packets=packets,
        captured=lambda *name: not salt or bool(zlib.crc32(f"{salt}{name}".encode()) & 1),
        sizes=always(size),
        capacity=chance.choice([500, 5000, 1 << 16]),
    )
