"""``pyspark-mysqlbinlog``: the program, whose commands are modules of this package."""

from __future__ import annotations

from typing import Annotated

import typer

from pyspark_mysqlbinlog.connector.cli.commands import Commands

__all__ = ["app"]

app = typer.Typer(
    cls=Commands,
    help="Replicate MySQL tables to Delta Lake, and look at MySQL's binary log.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"max_content_width": 100},
)


def _print_version(requested: bool) -> None:
    if requested:
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
    pass


if __name__ == "__main__":
    app()
