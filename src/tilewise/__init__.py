"""Fused, tuned and remembered kernels from NumPy expressions."""
