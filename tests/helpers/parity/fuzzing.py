"""Property tests of both implementations with this run's seed.

The run's header shows the seed; set MYSQLBINLOG_FUZZ_SEED to it to repeat the same examples.
`make fuzz` continues with new seeds until its time is up.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from time import monotonic

from hypothesis import HealthCheck, seed, settings

__all__ = ["fuzz"]

LOG = logging.getLogger(__name__)
SEED = int(os.environ["MYSQLBINLOG_FUZZ_SEED"])
# Shared by all properties.
MINUTES = float(os.environ.get("MYSQLBINLOG_FUZZ_MINUTES") or 0)


def fuzz(test: Callable[..., None], examples: int, *, share: float) -> None:
    """Run a property with this run's seed; with MINUTES, also with further seeds.

    share : the property's fraction of MINUTES.
    """
    until = monotonic() + 60 * MINUTES * share
    limited = settings(
        max_examples=examples,
        database=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )(test)
    number = SEED
    while True:
        LOG.info("MYSQLBINLOG_FUZZ_SEED=%d", number)
        try:
            seed(number)(limited)()
        except BaseException as error:
            error.add_note(f"to see it again: MYSQLBINLOG_FUZZ_SEED={number}")
            raise
        number = (number + 1) % 2**32
        if monotonic() >= until:
            return
