"""Kinds of servers that a test needs: a missing one is a skip, and a failure where CI=true."""

from __future__ import annotations

import os

import pytest

from helpers.servers import Server
from helpers.servers.mysql57 import MySQL57Server

__all__ = ["CI", "need"]

CI = os.environ.get("CI", "").lower() == "true"


def need(kind: type[Server]) -> None:
    """End the test unless servers of a kind can be run here."""
    reason = kind.missing()
    if reason is None:
        return
    # Nothing installs MySQL 5.7.
    if CI and kind is not MySQL57Server:
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)
