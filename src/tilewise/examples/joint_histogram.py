"""
The joint histogram of mutual-information feature selection, in six implementations.

    best = np.argsort(scores(features, target, bins=16))[::-1]

Which one is fastest depends on the number of samples, on the size of the histogram and
on where the arrays live; the kernel measures and remembers. numba is imported only by
the variants that use it, and keeps what it compiled: each tuning tries variants in new
worker processes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tilewise.api.decorator import tuned_kernel
from tilewise.api.raw import RawKernel
from tilewise.device.views import device_empty

__all__ = ["classes", "joint_histogram", "mutual_information", "scores"]


def make_inputs(n_samples: int, joint_size: int) -> tuple[Any, Any, int]:
    """Make classes that crowd towards 0, as binned counts and prices do."""
    random, bins = np.random.default_rng(0), max(1, round(joint_size**0.5))
    x, y = (random.random((2, n_samples)) ** 2 * bins).astype(np.int32)
    return x, y, bins


@tuned_kernel(
    axes={"n_samples": lambda x: x.size, "joint_size": lambda bins: bins * bins},
    make_inputs=make_inputs,
    sizes=[(500, 100), (20_000, 100), (20_000, 4096), (1_000_000, 100)],
)
def joint_histogram(x: Any, y: Any, bins: int) -> Any:
    """
    Count how often each pair of classes occurs: (n,), (n,) -> (bins, bins) int64.

    Classes are integers from 0 to bins - 1; the CUDA variants take int32.
    """
    pairs = x.astype(np.int64) * bins + y
    return np.bincount(pairs, minlength=bins * bins).reshape(bins, bins)


@cache
def serial() -> Callable[..., Any]:
    """Compile one loop over the samples."""
    from numba import njit

    @njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
    def count(x: Any, y: Any, bins: int) -> Any:
        counts = np.zeros((bins, bins), np.int64)
        for i in range(x.size):
            counts[x[i], y[i]] += 1
        return counts

    return count  # type: ignore[no-any-return]


@joint_histogram.variant(where="host")
def numba_serial(x: Any, y: Any, bins: int) -> Any:
    """Count in one loop."""
    return serial()(x, y, bins)


@cache
def parallel() -> Callable[..., Any]:
    """Compile a loop for each thread, which counts in a histogram of its own."""
    from numba import njit, prange

    @njit(parallel=True, nogil=True, cache=True)  # type: ignore[untyped-decorator]
    def count(x: Any, y: Any, bins: int, threads: int) -> Any:
        counts = np.zeros((threads, bins, bins), np.int64)
        for thread in prange(threads):
            first = x.size * thread // threads
            for i in range(first, x.size * (thread + 1) // threads):
                counts[thread, x[i], y[i]] += 1
        return counts.sum(axis=0)

    return count  # type: ignore[no-any-return]


@joint_histogram.variant(where="host", valid=lambda n_samples: n_samples >= 4096)
def numba_parallel(x: Any, y: Any, bins: int) -> Any:
    """Count in private histograms on all threads, then add them up."""
    from numba import get_num_threads

    return parallel()(x, y, bins, get_num_threads())


SOURCE = """
extern "C" {

__global__ void clear(unsigned long long* counts, int size) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size) counts[i] = 0;
}

// One histogram for all blocks, in global memory.
__global__ void count_global(const int* x, const int* y, long long n, int bins,
                             unsigned long long* counts) {
    long long stride = (long long)gridDim.x * blockDim.x;
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i < n; i += stride)
        atomicAdd(&counts[x[i] * bins + y[i]], 1ull);
}

// One histogram for each block, in shared memory, added up at its end.
__global__ void count_shared(const int* x, const int* y, long long n, int bins,
                             unsigned long long* counts) {
    extern __shared__ unsigned int part[];
    int size = bins * bins;
    for (int i = threadIdx.x; i < size; i += blockDim.x) part[i] = 0;
    __syncthreads();
    long long stride = (long long)gridDim.x * blockDim.x;
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i < n; i += stride) atomicAdd(&part[x[i] * bins + y[i]], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < size; i += blockDim.x)
        if (part[i]) atomicAdd(&counts[i], (unsigned long long)part[i]);
}

}
"""

CLEAR = RawKernel(SOURCE, "clear")
GLOBAL = RawKernel(SOURCE, "count_global")
SHARED = RawKernel(SOURCE, "count_shared")

BLOCKS = 1024
"""Blocks of a launch at most: some eight for each multiprocessor of a large GPU."""

SHARED_BYTES = 48 << 10
"""Shared memory that every block may have."""


def cleared(x: Any, y: Any, bins: int) -> Any:
    """Return a histogram of zeros where x lives; TypeError for other than int32."""
    for array in (x, y):
        if array.dtype != np.int32:
            raise TypeError(f"the CUDA variants take int32, not {array.dtype}")
    counts = device_empty(x, (bins, bins), np.int64)
    CLEAR[-(-bins * bins // 256), 256](counts, bins * bins)
    return counts


def blocks(n: int, block_size: int) -> int:
    """Return how many blocks count n samples."""
    return max(1, min(BLOCKS, -(-n // block_size)))


@joint_histogram.variant(
    block_size=[128, 256, 512],
    where="device",
    valid=lambda joint_size: 4 * joint_size <= SHARED_BYTES,
)
def cuda_shared(x: Any, y: Any, bins: int, *, block_size: int) -> Any:
    """Count in a histogram for each block, in shared memory."""
    counts, grid = cleared(x, y, bins), blocks(x.size, block_size)
    SHARED[grid, block_size, 4 * bins * bins](x, y, x.size, bins, counts)
    return counts


@joint_histogram.variant(block_size=[128, 256, 512], where="device")
def cuda_global(x: Any, y: Any, bins: int, *, block_size: int) -> Any:
    """Count in one histogram in global memory."""
    counts = cleared(x, y, bins)
    GLOBAL[blocks(x.size, block_size), block_size](x, y, x.size, bins, counts)
    return counts


@cache
def on_gpu() -> Any:
    """Compile the histogram in global memory with numba.cuda."""
    from numba import cuda

    @cuda.jit  # type: ignore[untyped-decorator]
    def count(x: Any, y: Any, counts: Any) -> None:
        for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
            cuda.atomic.add(counts, (x[i], y[i]), 1)

    return count


@joint_histogram.variant(block_size=[256], where="device")
def numba_cuda(x: Any, y: Any, bins: int, *, block_size: int) -> Any:
    """Count in one histogram in global memory, in Python."""
    counts = cleared(x, y, bins)
    on_gpu()[blocks(x.size, block_size), block_size](x, y, counts)
    return counts


def mutual_information(counts: Any) -> float:
    """
    Return the mutual information of two classifications in nats, from their histogram.

    Cover and Thomas, Elements of Information Theory, equation 2.28.
    """
    p = counts / counts.sum()
    independent = p.sum(axis=1, keepdims=True) * p.sum(axis=0, keepdims=True)
    seen = p > 0
    return float(np.sum(p[seen] * np.log(p[seen] / independent[seen])))


def classes(values: Any, bins: int) -> Any:
    """Return numbers as classes of about equal frequency: (n,) -> (n,) int32."""
    inner = np.quantile(values, np.linspace(0, 1, bins + 1)[1:-1])
    return np.searchsorted(inner, values, side="right").astype(np.int32)


def scores(features: Any, target: Any, bins: int) -> Any:
    """
    Return what each column of features tells of the target: (n, columns) -> (columns,).

    `target` holds classes from 0 to bins - 1.
    """
    y = np.ascontiguousarray(target, np.int32)
    columns = (classes(column, bins) for column in np.transpose(features))
    return np.array([mutual_information(joint_histogram(x, y, bins)) for x in columns])
