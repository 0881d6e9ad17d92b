"""The compiled kernel's modules; a test module that imports this is skipped without them.

Import it before all modules that need the kernel: sorted imports do so, because `helpers` comes
before the package.
"""

from __future__ import annotations

from typing import Any

import pytest

from pyspark_mysqlbinlog.decoder.kernel.implementation import KERNEL_MODULES

__all__ = ["documents", "scan", "values"]


def _module(name: str) -> Any:
    return pytest.importorskip(name, reason=f"the kernel is not compiled: no {name}")


_modules = {name.rpartition(".")[2]: _module(name) for name in KERNEL_MODULES}
scan, values = _modules["_scan"], _modules["_values"]
documents = _module("pyspark_mysqlbinlog.decoder.kernel._documents")
