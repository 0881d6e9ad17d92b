"""A program for an installed wheel, without pytest: both implementations decode recorded logs.

Prints how many rows of how many logs; fails when the compiled kernel is not there, or differs.
"""

from __future__ import annotations

import sys

from helpers.logs.recorded_logs import SCENARIOS, load
from helpers.parity.decoding import captured_ordinal, decoder
from helpers.replay import captured_schemas
from pyspark_mysqlbinlog.decoder.kernel.implementation import Implementation, described, using

__all__ = ["main"]

_IMPLEMENTATIONS: tuple[Implementation, ...] = ("c", "python")


def main() -> None:
    rows = 0
    for scenario in SCENARIOS:
        scene, events = load(scenario)
        given = []
        for implementation in _IMPLEMENTATIONS:
            with using(implementation):
                decoding = decoder(captured_schemas(scene), file_ordinal=captured_ordinal)
                given.append(
                    [row for batch in decoding.decode(events) for row in batch.to_pylist()]
                )
        if not given[0] or given[0] != given[1]:
            sys.exit(f"{scenario}: {len(given[0])} and {len(given[1])} rows that are not the same")
        rows += len(given[0])
    sys.stdout.write(f"{rows} rows of {len(SCENARIOS)} logs are the same by both: {described()}\n")


if __name__ == "__main__":
    main()
