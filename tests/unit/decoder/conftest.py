"""What the tests of the compiled decode share."""

from __future__ import annotations

import pytest

from pyspark_mysqlbinlog.protocol.events import Event


@pytest.fixture
def by_hand(monkeypatch: pytest.MonkeyPatch) -> list[Event]:
    """The events that the loop leaves to the Python decoder, as they come."""
    # It needs the kernel, which the tests of other modules do not.
    from helpers.parity.decode_parity import note_by_hand

    return note_by_hand(monkeypatch)
