"""``python benchmarks``: see `run`."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    # The servers for tests are the benchmark's, too.
    sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

    from run import main

    main()
