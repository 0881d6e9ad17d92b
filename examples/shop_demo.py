"""A shop on a real MySQL, replicated to Delta tables by `pyspark-mysqlbinlog ingest`: `make demo`.

The shop already has rows, and its customers continue to buy while the command copies them and
follows the binlog. Meanwhile a table is altered, and the command is killed with kill -9 and
restarted. At the end each Delta table is compared with its MySQL table; the exit code is 1 if they
differ.
"""

from __future__ import annotations

import argparse
import secrets
import shlex
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.rule import Rule

from shop_compare import compare
from shop_ingest import Ingest, IngestError
from shop_server import NoServerError, Server, find_server
from shop_workload import COUPONS, DATABASE, READER, SETUP, TABLES, TEARDOWN, Shop


def run(console: Console, server: Server, folder: Path, seconds: float, seed: int) -> bool:
    """Run the demo on a running server; return whether Delta has the rows of the server."""
    shop = Shop(
        lambda: server.connect(autocommit=False, init_command="SET time_zone = '+00:00'"),
        seed=seed,
        pause=0.02,
    )
    password = secrets.token_urlsafe(12)
    with server.connect() as connection, connection.cursor() as cursor:
        for statement in SETUP:
            cursor.execute(statement, (password,) if "%s" in statement else None)
    try:
        shop.stock()
        arguments = [
            *("--host", server.host, "--port", str(server.port)),
            *("--user", READER, "--password-file", str(folder / "password")),
            *("--tables", f"{DATABASE}.*"),
            *("--target", f"{folder}/lake/{{database}}/{{table}}"),
            *("--checkpoint", str(folder / "checkpoint")),
        ]
        (folder / "password").write_text(password, encoding="utf-8")
        title = f"MySQL {server.version()} ({server.name}) has a shop with {_rows(server):,} rows"
        command = shlex.join(["pyspark-mysqlbinlog", "ingest", *arguments])
        console.print(Panel(escape(command), title=title))
        local = ["--conf", "spark.master=local[2]", "--conf", f"spark.local.dir={folder}"]
        ingest = Ingest(arguments + local, folder / "log", lambda batch: _tell(console, batch))
        try:
            _story(console, server, shop, ingest, seconds)
        finally:
            ingest.stop()
            shop.close()
        return compare(console, server, folder / "lake")
    finally:
        # An external server keeps nothing of the shop.
        server.execute(*TEARDOWN)


def _story(console: Console, server: Server, shop: Shop, ingest: Ingest, seconds: float) -> None:
    """Run the shop and the command through all events of the demo."""
    _say(console, "the shop opens: about 40 transactions per second, while its rows are copied")
    shop.open()
    ingest.start()
    ingest.wait_for(
        lambda batches: batches[-1]["tables_in_snapshot"] == 0, "the snapshot is complete"
    )
    _say(console, "now the changes of the binlog are applied")
    _pause(shop, ingest, seconds / 3)
    _say(console, COUPONS)
    shop.take_coupons()
    _pause(shop, ingest, seconds / 3)

    _say(console, "kill -9 ends the command, and customers continue to buy")
    ingest.kill()
    time.sleep(1)
    _say(console, "the same command is started again")
    ingest.start()
    before = server.position()
    ingest.wait_for(lambda batches: _place(batches[-1]) > before, "the command resumes")
    _pause(shop, ingest, seconds / 3)

    _say(console, "the shop closes")
    shop.close()
    _assert_no_error(shop)
    end = server.position()
    shop.sell_the_last()
    ingest.wait_for(lambda batches: _place(batches[-1]) > end, "the last order arrives")
    console.print(
        f"{shop.transactions:,} transactions were committed and {shop.rolled_back:,} rolled back."
    )


def _pause(shop: Shop, ingest: Ingest, seconds: float) -> None:
    """Wait while both run; an error of either ends the demo."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(0.1)
        ingest.assert_running()
        _assert_no_error(shop)


def _assert_no_error(shop: Shop) -> None:
    if shop.error is not None:
        raise shop.error


def _place(batch: dict[str, Any]) -> tuple[str, int]:
    # The numbers of a new server's files have one length, so that their text order is their order.
    return batch["file"], batch["pos"]


def _rows(server: Server) -> int:
    counts = (server.execute(f"SELECT COUNT(*) FROM {DATABASE}.{table}") for table in TABLES)
    return sum(int(rows[0][0]) for rows in counts)


def _say(console: Console, what: str) -> None:
    console.print(Rule(escape(what), style="magenta", align="left"))


def _tell(console: Console, batch: dict[str, Any]) -> None:
    tables = [f"{name.split('.')[1]} {part['rows']:,}" for name, part in batch["tables"].items()]
    lag = "" if batch["lag_seconds"] is None else f"lag {batch['lag_seconds']:.1f} s"
    console.print(
        f"[dim]batch {batch['batch']:>3}[/] {batch['rows']:>7,} rows"
        f" in {batch['duration_seconds']:4.1f} s  [cyan]{lag:11}[/] [dim]{', '.join(tables)}[/]"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="A shop on MySQL, replicated to Delta tables.")
    parser.add_argument("--seconds", type=float, default=18.0, help="how long the shop is open")
    parser.add_argument("--seed", type=int, default=1, help="seed of the customers' random choices")
    arguments = parser.parse_args()
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=120)
    # SIGTERM must also end the processes and remove the folder.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = Path(tempfile.mkdtemp(prefix="shop-demo-"))
    began = time.monotonic()
    try:
        server = find_server()
        with console.status(f"starting {server.name}"):
            server.start()
        with server:
            equal = run(console, server, folder, arguments.seconds, arguments.seed)
    except KeyboardInterrupt:
        console.print("\n[magenta]ended early; all processes and files are removed[/]")
        return 130
    except (NoServerError, IngestError) as error:
        console.print(f"[bold red]the demo failed:[/] {escape(str(error))}")
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if not equal:
        console.print("[bold red]Delta and MySQL differ.[/]")
        return 1
    console.print(
        "[bold green]Delta has exactly the rows of MySQL[/]"
        f" [dim]({time.monotonic() - began:.0f} s)[/]"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
