"""Servers that a test needs: a missing kind skips the test, or fails it with CI=true."""

from __future__ import annotations

import os

import pytest

from helpers.servers import Server
from helpers.servers.mysql57 import MySQL57Server

__all__ = ["CI", "need"]

CI = os.environ.get("CI", "").lower() == "true"


def need(kind: type[Server]) -> None:
    """Skip or fail the test unless servers of this kind can run here."""
    reason = kind.missing()
    if reason is None:
        return
    # MySQL 5.7 is not installed in CI.
    if CI and kind is not MySQL57Server:
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)
