"""Retry policies: which errors, how often and for how long.

Only a lost connection is retried; errors that a retry can't fix are raised at once. The first
connection of a new query gets three tries, so that a wrong host fails quickly. If the server is
known to be right, by a checkpoint or by an earlier connection, tries continue with capped
exponential backoff and jitter until the timeout.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import monotonic
from typing import NoReturn, ParamSpec, TypeVar

from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    stop_after_attempt,
    stop_after_delay,
    wait_random_exponential,
)

from pyspark_mysqlbinlog.errors import ConnectionFailedError, LostConnectionError

__all__ = ["LOG", "call_with_retry", "initial_retry", "log_reconnected", "reconnect_retry"]

P = ParamSpec("P")
T = TypeVar("T")

LOG = logging.getLogger("pyspark_mysqlbinlog")

_MAX_INITIAL_TRIES = 3
_MAX_WAIT_SECONDS = 30.0


def initial_retry() -> Retrying:
    """Return a policy of three tries, for a server that should be available.

    The pauses are less than a second, but each try may take up to connectTimeout.
    """
    return Retrying(
        retry=retry_if_exception_type(LostConnectionError),
        stop=stop_after_attempt(_MAX_INITIAL_TRIES),
        wait=wait_random_exponential(multiplier=0.1, max=0.5),
        before_sleep=_log,
        retry_error_callback=_give_up,
    )


def reconnect_retry(timeout: float) -> Retrying:
    """Return a policy of tries for `timeout` seconds, for a server that was available before."""
    return Retrying(
        retry=retry_if_exception_type(LostConnectionError),
        stop=stop_after_delay(timeout),
        wait=wait_random_exponential(multiplier=0.25, max=_MAX_WAIT_SECONDS),
        before_sleep=_log,
        retry_error_callback=_give_up,
    )


def call_with_retry(
    timeout: float, connect: Callable[P, T], *arguments: P.args, **keywords: P.kwargs
) -> T:
    """Call `connect` for a server that was available before; retry for `timeout` seconds."""
    began = monotonic()
    retrying = reconnect_retry(timeout)
    result = retrying(connect, *arguments, **keywords)
    if retrying.statistics["attempt_number"] > 1:
        log_reconnected(began)
    return result


def log_reconnected(lost_at: float) -> None:
    """Log that a connection lost at `lost_at`, by the clock of `monotonic`, is restored."""
    LOG.warning("connected again after %.1f s", monotonic() - lost_at)


def _log(state: RetryCallState) -> None:
    error = state.outcome.exception() if state.outcome else None
    LOG.warning("try %d failed, trying again: %s", state.attempt_number, error)


def _give_up(state: RetryCallState) -> NoReturn:
    """Raise the final error: the connection has failed and is not just lost."""
    error = state.outcome.exception() if state.outcome else None
    message = error.message if isinstance(error, LostConnectionError) else "no connection"
    tries = state.attempt_number
    waited = f"{state.seconds_since_start or 0:.1f} s"
    # An error with a server's number (those of clients begin at 2000) includes its remedy.
    code = error.code if isinstance(error, LostConnectionError) else None
    is_there = code is not None and not 2000 <= code < 3000
    check = "" if is_there else "; check that the server runs, and the options host and port"
    raise ConnectionFailedError(
        f"{message}; gave up after {tries} {'try' if tries == 1 else 'tries'} in {waited}{check}",
        code=code,
    ) from None
