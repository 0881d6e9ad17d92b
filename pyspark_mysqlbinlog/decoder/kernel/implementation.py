"""Selects the compiled kernel or the Python reference implementation.

The environment variable MYSQLBINLOG_IMPL is ``c`` or ``python``. If unset, the kernel is used if it
can be imported, otherwise Python with a warning. Every process selects at its first call: Spark's
executors get the variable from ``spark.executorEnv.MYSQLBINLOG_IMPL``, the driver from its own
environment. ``python -m pyspark_mysqlbinlog.decoder.kernel.implementation`` prints the selection.
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
# All or none, because mixed implementations would not be tested. Without _documents, which is for
# tests: decoding processes must not load it.
KERNEL_MODULES = tuple(
    f"pyspark_mysqlbinlog.decoder.kernel.{name}"
    for name in ("_build", "_scan", "_values", "_decode", "_result_rows")
)

_chosen: Implementation | None = None
# The driver calls it from two threads.
_choosing = Lock()


def implementation() -> Implementation:
    """Return the implementation of this process; fixed by the first call.

    OptionError if MYSQLBINLOG_IMPL has another value, KernelNotFoundError if it requires a kernel
    that cannot be imported. If it is unset, a missing kernel gives one warning.
    """
    global _chosen
    with _choosing:
        if _chosen is None:
            _chosen, missed = _choose(os.environ.get(VARIABLE, ""))
            if missed is not None:
                # To stderr, from which Spark's logs include it.
                warnings.warn(
                    f"pyspark-mysqlbinlog decodes in pure Python, many times slower: {missed}; to"
                    " get the kernel, install a wheel, or install again with a C++17 compiler; if"
                    f" this is intended, set {VARIABLE}=python",
                    RuntimeWarning,
                    stacklevel=2,
                )
        return _chosen


@contextmanager
def using(chosen: Implementation) -> Iterator[None]:
    """Use another implementation, in all threads, for everything created in this block."""
    global _chosen  # noqa: PLW0603 (one implementation for all threads)
    with _choosing:
        before = _chosen
        _chosen, _ = _choose(chosen)
    try:
        yield
    finally:
        with _choosing:
            _chosen = before


def described() -> str:
    """Describe the implementation of this process and how it was built."""
    if implementation() == "python":
        return "python"
    from pyspark_mysqlbinlog.decoder.kernel import _build  # noqa: PLC0415 (it may be missing)

    sanitized = ", sanitized" if _build.sanitized() else ""
    return f"c ({_build.compiler()}{sanitized}: {_build.__file__})"


def _choose(value: str) -> tuple[Implementation, str | None]:
    """Return the implementation for a value of MYSQLBINLOG_IMPL, and why the kernel is missing.

    The reason is None unless the value is empty and the kernel cannot be imported.
    """
    match value:
        case "python":
            return "python", None
        case "c":
            missing = _missing()
            if missing is not None:
                raise KernelNotFoundError(
                    f"{VARIABLE}=c requires the compiled kernel, but {missing}; install a wheel of"
                    " pyspark-mysqlbinlog, or install again with a C++17 compiler"
                    " (MYSQLBINLOG_KERNEL=required shows its output), or unset the variable"
                )
            return "c", None
        case "":
            missing = _missing()
            return ("c", None) if missing is None else ("python", missing)
        case _:
            raise OptionError(
                f"the environment variable {VARIABLE} must be c or python, found {value!r}; if"
                " unset, the compiled kernel is used where there is one"
            )


def _missing() -> str | None:
    """Return why the kernel cannot be imported, as part of a sentence; None if it can."""
    for name in KERNEL_MODULES:
        try:
            import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                return f"{name} cannot be imported: {error}"
            return f"this installation has no compiled {name}"
        except ImportError as error:
            # Built for another machine, another Python or another C++ library.
            return f"{name} cannot be imported: {error}"
    return None


if __name__ == "__main__":
    sys.stdout.write(f"{described()}\n")
