"""Measurements of this project and its peers: `python -m benchmarks` in the checkout.

`run` and `snapshot_suite` are the entry points. What is measured is the installed package: that in
the checkout has no compiled kernel.
"""

from __future__ import annotations

import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent

# Python puts the folder that it is started in first.
if sys.path and sys.path[0] in ("", str(_ROOT)):
    del sys.path[0]
# The servers for tests are the benchmark's, too.
sys.path.append(str(_ROOT / "tests"))
