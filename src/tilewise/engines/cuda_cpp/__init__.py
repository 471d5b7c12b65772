"""The CUDA C++ engine: one templated source, compiled by NVRTC without a GPU."""
