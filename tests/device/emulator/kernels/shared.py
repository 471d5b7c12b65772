"""The classic tiled product in numba.cuda, 16x16 threads a block, as PTX data."""

from numba import cuda, float32
from numba.types import CPointer, int64, void

SIGNATURE = void(*(CPointer(float32),) * 3, int64, int64, int64)


def shared(x, w, out, m, n, k):
    """Multiply x (m, k) by w (k, n) into out (m, n), any sizes."""
    xs = cuda.shared.array((16, 16), float32)
    ws = cuda.shared.array((16, 16), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    row = cuda.blockIdx.y * 16 + ty
    col = cuda.blockIdx.x * 16 + tx
    total = float32(0)
    for tile in range((k + 15) // 16):
        at = tile * 16 + tx
        if row < m and at < k:
            xs[ty, tx] = x[row * k + at]
        else:
            xs[ty, tx] = float32(0)
        at = tile * 16 + ty
        if col < n and at < k:
            ws[ty, tx] = w[at * n + col]
        else:
            ws[ty, tx] = float32(0)
        cuda.syncthreads()
        for j in range(16):
            total += xs[ty, j] * ws[j, tx]
        cuda.syncthreads()
    if row < m and col < n:
        out[row * n + col] = total
