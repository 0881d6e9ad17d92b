"""Masked values and values of filtered rows are in nothing that a run writes or prints.

The secrets are in masked columns, masked keys, filtered rows and their keys, texts of statements,
defaults in DDL, and statements that stop a read. The same search finds the visible values, so it
would find a secret.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from pyarrow import parquet

from e2e.conftest import Account
from helpers.servers import Server
from helpers.values.masked_rows import SECRET as MASK_SECRET
from helpers.waiting import patience
from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory

_SCRIPT = Path(__file__).parents[2] / "helpers" / "streams" / "shown_texts.py"
COUNT = 1_000
# Neither a mask nor a hash contains this much of a secret.
PLANTED = b"S3CRET-"
PHONES = b"49170"
VISIBLE = b"visible-"


def secret(number: int) -> str:
    return f"S3CRET-{number:04d}@example.org"


def rows_to_begin_with(first: int) -> list[str]:
    """Return statements that insert rows with secrets, numbered from `first` on."""
    numbers = range(first, first + 100)
    return [
        "INSERT INTO shop.masked VALUES "
        + ", ".join(
            f"({n}, '{secret(n)}', {PHONES.decode()}{n:07d}, '{secret(n)}', 'visible-{n}')"
            for n in numbers
        ),
        "INSERT INTO shop.hashed VALUES "
        + ", ".join(f"('{secret(100 + n)}', 'visible-{n}')" for n in numbers),
        "INSERT INTO shop.filtered VALUES "
        + ", ".join(
            f"('{secret(200 + n)}', 'FR', 'S3CRET-name-{n}'), ('key-{n}', 'DE', 'visible-{n}')"
            for n in numbers
        ),
        "INSERT INTO shop.bag VALUES "
        + ", ".join(
            f"('{secret(300 + n)}', 'FR', 'visible-not-{n}'), ('{secret(400 + n)}', 'DE', 'x')"
            for n in numbers
        ),
    ]


CHANGES = [
    "UPDATE shop.masked SET email = CONCAT('S3CRET-new-', id), phone = phone + 1 WHERE id < 50",
    "UPDATE shop.masked SET email = NULL WHERE email = 'S3CRET-nobody'",
    "UPDATE shop.plain, shop.masked SET plain.v = 'visible-joined' WHERE email LIKE 'S3CRET-%'",
    "UPDATE shop.hashed SET id = CONCAT('S3CRET-key-', id) WHERE note < 'visible-2'",
    "UPDATE shop.filtered SET country = 'FR', name = 'S3CRET-left' WHERE id < 'key-3'",
    """
    UPDATE shop.filtered SET country = 'DE', id = CONCAT('now-', RIGHT(name, 4)),
      name = 'visible-in' WHERE name LIKE 'S3CRET-name-1%'""",
    "DELETE FROM shop.masked WHERE email = 'S3CRET-0070@example.org' OR id = 70",
    "ALTER TABLE shop.masked ADD token VARCHAR(40) NOT NULL DEFAULT 'S3CRET-default'",
    "ALTER TABLE shop.masked ALTER email SET DEFAULT 'S3CRET-default-2'",
    "ALTER TABLE shop.filtered ADD c CHAR(40) DEFAULT 'S3CRET-default-3' COMMENT 'S3CRET-comment'",
    'ALTER TABLE shop.filtered MODIFY name VARCHAR(70) DEFAULT "S3CRET-default-4"',
    "TRUNCATE /* S3CRET-comment */ TABLE shop.emptied",
    "CREATE TABLE shop.later (id INT PRIMARY KEY, email VARCHAR(40) DEFAULT 'S3CRET-default-5')",
    "INSERT INTO shop.later VALUES (1, 'S3CRET-later')",
    "DROP TABLE shop.emptied /* S3CRET-comment */",
]
UNREADABLE = [
    "SET SESSION binlog_format = 'STATEMENT'",
    "UPDATE broken.t SET v = 'S3CRET-statement' WHERE v = 'S3CRET-statement-2'",
]


def test_masked_and_filtered_values_appear_in_no_output_or_file(
    shop: Server, account: Account, tmp_path: Path
) -> None:
    shop.execute("DROP DATABASE shop", "CREATE DATABASE shop", "CREATE DATABASE broken")
    shop.reset_binlog()
    shop.execute(
        "SET GLOBAL binlog_rows_query_log_events = ON",
        "CREATE TABLE shop.masked (id INT PRIMARY KEY, email VARCHAR(40) DEFAULT 'S3CRET-default',"
        " phone BIGINT, name TEXT, note VARCHAR(40))",
        "CREATE TABLE shop.hashed (id VARCHAR(60) PRIMARY KEY, note VARCHAR(40))",
        "CREATE TABLE shop.filtered (id VARCHAR(40) PRIMARY KEY, country CHAR(2), name CHAR(40))",
        "CREATE TABLE shop.bag (email VARCHAR(40), country CHAR(2), note VARCHAR(40))",
        "CREATE TABLE shop.plain (id INT PRIMARY KEY, v VARCHAR(40))",
        "INSERT INTO shop.plain VALUES (1, 'visible-plain')",
        "CREATE TABLE shop.emptied (id INT PRIMARY KEY, email VARCHAR(40))",
        "INSERT INTO shop.emptied VALUES (1, 'S3CRET-emptied')",
        "CREATE TABLE broken.t (id INT PRIMARY KEY, v VARCHAR(40))",
        "INSERT INTO broken.t VALUES (1, 'S3CRET-statement-2')",
        *rows_to_begin_with(0),
    )
    reads = account(shop, "ALL ON *.*")
    options = {name: str(value) for name, value in reads.options.items() if name != "payload"}
    options |= {
        "tables": "shop.*",
        "startingOffset": "earliest",
        "operations": "insert,update,delete,truncate,ddl",
        "maskColumns": json.dumps(
            {
                "shop.masked.email": "hash",
                "shop.masked.phone": "keepLast(4)",
                "shop.masked.name": "truncate(3)",
                "*.*.token": "redact",
                "shop.*.c": "redact",
                "shop.hashed.id": "hash",
                "*.*.email": "hash",
            }
        ),
        "maskSecret": MASK_SECRET,
        "rowFilter": json.dumps({"shop.filtered": "country = 'DE'", "shop.bag": "country = 'DE'"}),
    }
    output = run_once(tmp_path, options, {})
    shop.execute(*rows_to_begin_with(500), *CHANGES)
    shop.execute(*UNREADABLE)
    of_broken = {"rowFilter": '{"broken.t": "id = 1"}', "maskColumns": '{"broken.t.v": "hash"}'}
    failing = {"statement": {"tables": "broken.*"} | of_broken}
    output += run_once(tmp_path, options, failing)
    assert b"StatementFormatError" in output
    assert b"== Physical Plan ==" in output

    places = {"output": output} | {str(path): text for path, text in texts_below(tmp_path)}
    assert not [(name, around(text, PLANTED)) for name, text in places.items() if PLANTED in text]
    assert not [(name, around(text, PHONES)) for name, text in places.items() if PHONES in text]
    key = MASK_SECRET.encode()
    assert not [(name, around(text, key)) for name, text in places.items() if key in text]
    # The same search finds the visible values.
    for part in ("output", "/lake/shop/masked/", "/lake/shop/filtered/", "/changes/shop/hashed/"):
        assert any(VISIBLE in text for name, text in places.items() if part in name), part
    for part in ("/events/", "/checkpoint/offsets/", "/mirror/offsets/"):
        assert any(part in name for name in places), part
    assert not any(b"visible-not-" in text for text in places.values())
    found = shop.execute("SELECT COUNT(*) FROM shop.masked WHERE email LIKE 'S3CRET-%'")
    assert found[0][0] > 100


def run_once(folder: Path, options: dict[str, str], failing: dict[str, dict[str, str]]) -> bytes:
    """Run a batch read, a stream and a mirror; return everything that they print."""
    settings = folder / "settings.json"
    (folder / "temporary").mkdir(exist_ok=True)
    given = {
        "options": options,
        "folder": str(folder),
        "storage_options": {"aws_region": "nowhere"},
        "failing": failing,
    }
    settings.write_text(json.dumps(given))
    run = subprocess.run(
        [sys.executable, str(_SCRIPT), str(settings)],
        capture_output=True,
        timeout=patience(300),
        check=False,
        env=os.environ | {"TMPDIR": str(folder / "temporary")},
    )
    settings.unlink()
    shown = run.stdout + run.stderr
    assert run.returncode == 0, shown.decode(errors="replace")[-4000:]
    return shown


def texts_below(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """Yield each file with its content, and with what it contains in compressed form."""
    for path in filter(Path.is_file, folder.rglob("*")):
        content = path.read_bytes()
        if path.suffix == ".parquet":
            content += repr(parquet.read_table(path, partitioning=None).to_pylist()).encode()
            content += repr(parquet.read_metadata(path).to_dict()).encode()
        elif path.parent.name == "offsets" and path.name.isdigit():
            for line in content.decode().splitlines():
                value = json.loads(line) if line.startswith("{") else {}
                if "snapshot" in value:
                    offset = Offset.from_dict(value)
                    history = SchemaHistory.unpack(offset.schemas)
                    versions = [history.versions(*name) for name in history.tables()]
                    content += repr((offset.snapshot_state, versions)).encode()
        yield path, content


def around(text: bytes, found: bytes) -> bytes:
    at = text.find(found)
    return text[max(at - 200, 0) : at + 100]
