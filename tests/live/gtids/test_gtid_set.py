"""GTID sets compared with the server's own functions, for random sets and spellings."""

from __future__ import annotations

import random

import pytest

from helpers.servers import Server
from pyspark_mysqlbinlog.checkpoints.gtid_set import GtidSet

UUIDS = [f"{number:08x}-71ca-11e1-9e33-c80aa9429562" for number in (1, 2, 0xFFFFFFFF)]
TAGS = ["billing", "audit_1", "_"]
PAIRS = 150


def random_text(rng: random.Random, *, newer: bool) -> str:
    """Return a set in any spelling that a server accepts; a `newer` server accepts more."""
    parts: list[str] = []
    for _ in range(rng.randrange(5)):
        uuid = rng.choice(UUIDS)
        part = rng.choice([uuid, uuid.upper(), *([uuid.replace("-", "")] if newer else [])])
        for _ in range(rng.randint(1, 6)):
            if newer and rng.random() < 0.3:
                part += f":{rng.choice(TAGS)}"
            first = rng.randint(1, 30)
            part += f":{first}" if rng.random() < 0.4 else f":{first}-{first + rng.randrange(8)}"
        parts.append(part)
    return rng.choice([",", ", ", ",\n"]).join(parts)


@pytest.mark.parametrize("name", ["mysql56", "live_server", "mysql9"])
def test_gtid_set_operations_equal_those_of_the_server(
    name: str, request: pytest.FixtureRequest
) -> None:
    server: Server = request.getfixturevalue(name)
    rng = random.Random(20261127)
    newer = name == "mysql9"
    for _ in range(PAIRS):
        left, right = random_text(rng, newer=newer), random_text(rng, newer=newer)
        a, b = GtidSet.parse(left), GtidSet.parse(right)
        is_subset, subtracted, both, written = server.execute(
            f"SELECT GTID_SUBSET('{left}', '{right}'), GTID_SUBTRACT('{left}', '{right}'),"
            f" GTID_SUBTRACT(CONCAT('{left}', ',', '{right}'), ''), GTID_SUBTRACT('{left}', '')"
        )[0]
        assert a.is_subset(b) is bool(is_subset), (left, right)
        assert str(a.difference(b)) == str(subtracted).replace("\n", ""), (left, right)
        assert str(a.union(b)) == str(both).replace("\n", ""), (left, right)
        assert str(a) == str(written).replace("\n", ""), left
