// Sum an array: shuffles within a warp, one value a warp in shared memory, shuffles
// again in the first warp. The pattern of "Faster Parallel Reductions on Kepler"
// (NVIDIA technical blog), with the _sync shuffles of CUDA 9.
__device__ float warp_sum(float value) {
    for (int offset = 16; offset > 0; offset /= 2)
        value += __shfl_down_sync(0xffffffffu, value, offset);
    return value;
}

extern "C" __global__ void reduction(const float* x, float* sums, int n) {
    __shared__ float partial[32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float total = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += blockDim.x * gridDim.x)
        total += x[i];
    total = warp_sum(total);
    if (lane == 0) partial[warp] = total;
    __syncthreads();
    total = threadIdx.x < blockDim.x / 32 ? partial[lane] : 0;
    if (warp == 0) total = warp_sum(total);
    if (threadIdx.x == 0) sums[blockIdx.x] = total;
}
