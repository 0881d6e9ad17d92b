"""Passwords and keys are in nothing that Spark or this package prints or stores."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from e2e.conftest import SECRET, Account
from helpers.servers import Server
from helpers.waiting import patience
from pyspark_mysqlbinlog import DeltaMirror
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.errors import MySQLBinlogError, OptionError

_SCRIPT = Path(__file__).parents[2] / "helpers" / "streams" / "shown_texts.py"
STORE_SECRET = "store-s3cret-4711"


def test_no_password_is_shown_or_stored(shop: Server, account: Account, tmp_path: Path) -> None:
    """The search covers plans, UI, event log, log lines, progress, errors and stored files."""
    shop.execute("REPLACE INTO shop.orders VALUES (4711, 'visible')")
    reads = account(shop, "ALL ON *.*")
    assert reads.options["password"] == SECRET
    options = {name: str(value) for name, value in reads.options.items() if name != "payload"}
    options |= {"tables": "shop.orders", "startingOffset": "earliest"}
    settings = tmp_path / "settings.json"
    settings.write_text(
        json.dumps(
            {
                "options": options,
                "folder": str(tmp_path),
                "storage_options": {"aws_secret_access_key": STORE_SECRET},
                "failing": {
                    "no grant": {"user": "nobody"},
                    "no file": {"startingOffset": "none.000001:4"},
                    "no server": {"port": "1"},
                },
            }
        )
    )
    run = subprocess.run(
        [sys.executable, str(_SCRIPT), str(settings)],
        capture_output=True,
        timeout=patience(300),
        check=False,
    )
    shown = run.stdout + run.stderr
    settings.unlink()
    assert run.returncode == 0, shown.decode(errors="replace")[-4000:]
    for word in (b"== Physical Plan ==", b"=== SQL/", b"Details for Query", b"AccessDeniedError"):
        assert word in shown
    assert b"SQL/execution/?id=3" in shown
    places = {"output": shown}
    places |= {str(path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert any(b"SparkListenerSQLExecutionStart" in content for content in places.values())
    assert sum("_delta_log" in name for name in places) >= 2
    found = [
        (name, line[max(line.find(secret) - 200, 0) :][:300])
        for secret in (SECRET.encode(), STORE_SECRET.encode())
        for name, content in places.items()
        for line in content.splitlines()
        if secret in line
    ]
    assert not found


@pytest.mark.parametrize(
    "host",
    [
        f"mysql://spark:{SECRET}@db.example:3306/shop",
        f"spark:{SECRET}@db.example",
        f"//spark:{SECRET}@db.example",
    ],
)
def test_url_as_host_is_rejected_without_showing_its_password(host: str) -> None:
    with pytest.raises(OptionError, match="option host: expected a host name") as caught:
        parse_options({"host": host, "user": "spark"})
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("name", ["target", "change_log"])
def test_a_path_with_a_password_is_rejected(name: str) -> None:
    uri = f"s3://key:{STORE_SECRET}@bucket/{{database}}/{{table}}"
    paths: dict[str, Any] = {"target": "/lake/{database}/{table}"} | {name: uri}
    options = {"host": "h", "user": "u", "tables": "shop.*"}
    with pytest.raises(OptionError, match=f"{name}: .* a password.*storage_options") as caught:
        DeltaMirror(checkpoint="/c", options=options, **paths)
    assert STORE_SECRET not in str(caught.value)


def test_errors_hide_the_passwords_of_urls() -> None:
    message = f"Generic S3 error: http://key:{STORE_SECRET}@127.0.0.1:1/bucket: refused"
    assert str(MySQLBinlogError(message)) == (
        "Generic S3 error: http://key:***@127.0.0.1:1/bucket: refused"
    )
