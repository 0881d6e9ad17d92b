"""The compiled kernel's modules; whoever imports this is skipped where they are not compiled.

To be imported before all that needs them. So the list of our own modules in pyproject.toml leaves
this one out: it is then sorted in front of the package.
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
