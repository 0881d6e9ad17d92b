"""Fixtures of the tests of the compiled decode loop."""

from __future__ import annotations

import pytest

from pyspark_mysqlbinlog.protocol.events import Event


@pytest.fixture
def by_hand(monkeypatch: pytest.MonkeyPatch) -> list[Event]:
    """Return a list to which events that the loop leaves to the Python decoder are added."""
    # Imported here because it needs the kernel, unlike other tests of this package.
    from helpers.parity.decode_parity import note_by_hand

    return note_by_hand(monkeypatch)
