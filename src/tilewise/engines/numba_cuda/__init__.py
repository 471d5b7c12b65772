"""The numba.cuda engine: generated Python kernels, compiled without a GPU."""
