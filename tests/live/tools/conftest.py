"""Fixtures that the tests of one command share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from helpers.servers import Server
from helpers.tools.flashbacks import Flashbacks, every_server_fixture


@pytest.fixture(params=every_server_fixture())
def flashbacks(request: pytest.FixtureRequest) -> Iterator[Flashbacks]:
    server: Server = request.getfixturevalue(request.param)
    with Flashbacks.on(server, "flashback_live") as made:
        yield made
