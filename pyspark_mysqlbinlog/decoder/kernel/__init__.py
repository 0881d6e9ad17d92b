"""The compiled kernel: the work of the Python reference implementation, in C++."""
