"""How this kernel was built: for the header of a test run, and for bug reports."""

cdef extern from *:
    """
    #if defined(__clang__)
    #define MYSQLBINLOG_COMPILER "clang " __clang_version__
    #elif defined(__GNUC__)
    #define MYSQLBINLOG_COMPILER "g++ " __VERSION__
    #else
    #define MYSQLBINLOG_COMPILER "another compiler"
    #endif
    #if defined(__SANITIZE_ADDRESS__)
    #define MYSQLBINLOG_SANITIZED 1
    #elif defined(__has_feature)
    #if __has_feature(address_sanitizer)
    #define MYSQLBINLOG_SANITIZED 1
    #endif
    #endif
    #ifndef MYSQLBINLOG_SANITIZED
    #define MYSQLBINLOG_SANITIZED 0
    #endif
    """
    const char* MYSQLBINLOG_COMPILER
    const int MYSQLBINLOG_SANITIZED
    const unsigned long CYTHON_HEX_VERSION


def compiler():
    """Return the compilers, as "g++ 12.2.0, Cython 3.1.0"."""
    version = [CYTHON_HEX_VERSION >> shift & 0xFF for shift in (24, 16, 8)]
    name = MYSQLBINLOG_COMPILER.decode().strip()
    return f"{name}, Cython {'.'.join(map(str, version))}"


def sanitized():
    """Whether it was built with AddressSanitizer."""
    return bool(MYSQLBINLOG_SANITIZED)
