"""The compiled kernel: the same work as the pure-Python twin, in C++."""
