"""Check that both implementations of an installed wheel decode recorded logs to the same rows.

A program that needs no pytest. It prints the numbers of rows and logs, and fails if the compiled
kernel is missing or gives other rows.
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
