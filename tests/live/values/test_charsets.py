"""Every code of every character set: the decoders give what the servers convert it to."""

from __future__ import annotations

import pytest

from helpers.servers import Server
from helpers.servers.available import every_server
from helpers.values.charset_sweep import SWEPT, swept_codes
from pyspark_mysqlbinlog.decoder.values.charsets import text_decoder
from pyspark_mysqlbinlog.errors import MalformedEventError


def _is_text(raw: bytes) -> bool:
    try:
        return raw.decode("utf-8") != ""
    except UnicodeDecodeError:
        return False


@pytest.mark.sample(6)
@pytest.mark.parametrize("server_name", every_server())
@pytest.mark.parametrize("charset", SWEPT)
def test_every_character_code_decodes_as_in_select(
    server_name: str, charset: str, request: pytest.FixtureRequest
) -> None:
    server: Server = request.getfixturevalue(server_name)
    decode = text_decoder("c", charset)
    shown = swept_codes(server, charset)
    # 9.x stores no byte from 0x80 on as ascii.
    assert len(shown) > (127 if charset == "ascii" and server.is_mysql9() else 200)
    differing = {}
    for code, expected in shown.items():
        try:
            found: str | None = decode(code)
        except MalformedEventError:
            found = None
        # ucs2 and utf32 store surrogates, for which SELECT shows bytes that are not UTF-8.
        # CONVERT on 9.7 makes them an empty text.
        if found != (expected.decode("utf-8") if _is_text(expected) else None):
            differing[code.hex()] = (found, expected)
    assert not differing, f"{len(differing)} differ: {list(differing.items())[:10]}"

    # A text of all codes, so that each code has neighbors that could be mistaken for parts of it.
    text = {code: raw for code, raw in shown.items() if _is_text(raw)}
    assert decode(b"".join(text)) == b"".join(text.values()).decode("utf-8")
