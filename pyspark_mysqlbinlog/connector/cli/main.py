"""``pyspark-mysqlbinlog``: the commands of the package, one module each."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from pyspark_mysqlbinlog.connector.cli.ingest import ingest
from pyspark_mysqlbinlog.connector.cli.verify import verify

__all__ = ["app"]

app = typer.Typer(
    help="Replicate MySQL tables to Delta Lake.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(is_asked: bool) -> None:
    if is_asked:
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


app.command()(ingest)
app.command()(verify)

if __name__ == "__main__":
    app()
