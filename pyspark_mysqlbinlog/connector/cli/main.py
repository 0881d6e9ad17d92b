"""``pyspark-mysqlbinlog``: the commands of the package, one module each."""

from __future__ import annotations

from typing import Annotated

import typer

from pyspark_mysqlbinlog.connector.cli.doctor import doctor
from pyspark_mysqlbinlog.connector.cli.flashback import flashback
from pyspark_mysqlbinlog.connector.cli.ingest import ingest
from pyspark_mysqlbinlog.connector.cli.inspect import inspect
from pyspark_mysqlbinlog.connector.cli.tail import tail
from pyspark_mysqlbinlog.connector.cli.verify import verify

__all__ = ["app"]

app = typer.Typer(
    help="Replicate MySQL tables to Delta Lake, and look at MySQL's binary log.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        from importlib.metadata import version

        typer.echo(f"pyspark-mysqlbinlog {version('pyspark-mysqlbinlog')}")
        raise typer.Exit


@app.callback()
def _app(
    *,
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    # With a callback, `ingest` is a named command, and other commands can be added.
    pass


app.command()(doctor)
app.command()(flashback)
app.command()(ingest)
app.command()(inspect)
app.command()(tail)
app.command()(verify)

if __name__ == "__main__":
    app()
