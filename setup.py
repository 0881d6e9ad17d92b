"""The compiled kernel; everything else is in pyproject.toml.

Without a C++ compiler the package installs all the same and runs its pure-Python twin, with a
warning. MYSQLBINLOG_KERNEL=required makes a build fail that can't compile it; =none leaves it out.
MYSQLBINLOG_CXXFLAGS and MYSQLBINLOG_LDFLAGS are added to the compiler's own.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

KERNEL = Path("pyspark_mysqlbinlog/decoder/kernel")
HEADERS = KERNEL / "cpp"
WANTED = os.environ.get("MYSQLBINLOG_KERNEL", "optional")
if WANTED not in ("required", "optional", "none"):
    raise SystemExit(f"MYSQLBINLOG_KERNEL={WANTED}: expected required, optional or none")

flags = (
    ["/std:c++17", "/O2"]
    if sys.platform == "win32"
    else ["-std=c++17", "-O3", "-g0", "-fvisibility=hidden"]
)
flags += os.environ.get("MYSQLBINLOG_CXXFLAGS", "").split()


def extension(name: str) -> Extension:
    return Extension(
        f"pyspark_mysqlbinlog.decoder.kernel.{name}",
        [str(KERNEL / f"{name}.pyx")],
        depends=sorted(str(header) for header in HEADERS.rglob("*.hpp")),
        include_dirs=[str(HEADERS)],
        language="c++",
        extra_compile_args=flags,
        extra_link_args=os.environ.get("MYSQLBINLOG_LDFLAGS", "").split(),
    )


names = sorted(path.stem for path in KERNEL.glob("_[a-z]*.pyx")) if WANTED != "none" else []
extensions = cythonize(
    [extension(name) for name in names],
    build_dir="build/cython",
    language_level=3,
    compiler_directives={"boundscheck": True, "wraparound": False, "embedsignature": False},
)
for made in extensions:
    # cythonize makes extensions of its own, which know nothing of it.
    made.optional = WANTED == "optional"

setup(ext_modules=extensions, options={"build_ext": {"parallel": os.cpu_count()}})
