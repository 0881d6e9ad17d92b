"""Which twin runs: the compiled kernel, or the pure-Python implementation that it is compared with.

The environment variable MYSQLBINLOG_IMPL says ``c`` or ``python``; unset, the kernel runs where it
can be imported, and Python with a warning where it can't. Every process decides for itself at its
first question: Spark's executors hear of the variable by ``spark.executorEnv.MYSQLBINLOG_IMPL``,
the driver by its own environment. ``python -m pyspark_mysqlbinlog.decoder.kernel.implementation``
tells what it would be here.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from threading import Lock
from typing import Literal

from pyspark_mysqlbinlog.errors import KernelNotFoundError, OptionError

__all__ = ["KERNEL_MODULES", "VARIABLE", "Implementation", "described", "implementation", "using"]

Implementation = Literal["c", "python"]

VARIABLE = "MYSQLBINLOG_IMPL"
# All of them, or none: twins that are mixed would be tested by nobody. But for _documents, which is
# for tests: no process that decodes shall load it.
KERNEL_MODULES = tuple(
    f"pyspark_mysqlbinlog.decoder.kernel.{name}"
    for name in ("_build", "_scan", "_values", "_decode", "_result_rows")
)

_chosen: Implementation | None = None
# The driver asks from two threads.
_choosing = Lock()


def implementation() -> Implementation:
    """The implementation of this process; settled by the first call.

    OptionError when MYSQLBINLOG_IMPL is neither of the two, KernelNotFoundError when it asks for a
    kernel that can't be imported. A kernel that nobody asked for is missed with one warning.
    """
    global _chosen
    with _choosing:
        if _chosen is None:
            _chosen, missed = _choose(os.environ.get(VARIABLE, ""))
            if missed is not None:
                # To stderr, which is where Spark's logs take it from.
                warnings.warn(
                    f"pyspark-mysqlbinlog decodes in pure Python, many times slower: {missed}; to"
                    " get its kernel, install it from a wheel, or again where there is a C++17"
                    f" compiler; {VARIABLE}=python if this is meant to be",
                    RuntimeWarning,
                    stacklevel=2,
                )
        return _chosen


@contextmanager
def using(chosen: Implementation) -> Iterator[None]:
    """Another implementation inside the block, for whatever begins there; in all threads."""
    global _chosen  # noqa: PLW0603 - whatever begins in any thread must be of the same twin
    with _choosing:
        before = _chosen
        _chosen, _ = _choose(chosen)
    try:
        yield
    finally:
        with _choosing:
            _chosen = before


def described() -> str:
    """The implementation of this process and how it was made, for people."""
    if implementation() == "python":
        return "python"
    from pyspark_mysqlbinlog.decoder.kernel import _build  # noqa: PLC0415 - it may be missing

    sanitized = ", sanitized" if _build.sanitized() else ""
    return f"c ({_build.compiler()}{sanitized}: {_build.__file__})"


def _choose(asked: str) -> tuple[Implementation, str | None]:
    """What runs when this is asked for, and why the kernel does not where nothing is."""
    match asked:
        case "python":
            return "python", None
        case "c":
            missing = _missing()
            if missing is not None:
                raise KernelNotFoundError(
                    f"{VARIABLE}=c asks for the compiled kernel, and {missing}; install"
                    " pyspark-mysqlbinlog from a wheel, or again where there is a C++17 compiler"
                    " (MYSQLBINLOG_KERNEL=required shows what it says), or unset the variable"
                )
            return "c", None
        case "":
            missing = _missing()
            return ("c", None) if missing is None else ("python", missing)
        case _:
            raise OptionError(
                f"the environment variable {VARIABLE} is c or python, found {asked!r}; unset, the"
                " compiled kernel runs where there is one"
            )


def _missing() -> str | None:
    """Why the kernel can't be imported, as part of a sentence; None when it can."""
    for name in KERNEL_MODULES:
        try:
            import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                return f"{name} can't be imported: {error}"
            return f"this installation has no compiled {name}"
        except ImportError as error:
            # Made for another machine, another Python or another C++ library.
            return f"{name} can't be imported: {error}"
    return None


if __name__ == "__main__":
    sys.stdout.write(f"{described()}\n")
