"""The CPU engine: native objects made with numba, loaded by llvmlite."""
