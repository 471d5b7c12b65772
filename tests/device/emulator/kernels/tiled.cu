// A product in tiles of 64x64x16 with 4x4 results a thread, 16-byte loads and two
// stages of asynchronous copies. n and k are multiples of 4.
__device__ __forceinline__ void copy16(void* to, const void* from, bool inside) {
    unsigned target = (unsigned)__cvta_generic_to_shared(to);
    int bytes = inside ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 ::"r"(target), "l"(from), "r"(bytes));
}

extern "C" __global__ void __launch_bounds__(256)
tiled(const float* __restrict__ x, const float* __restrict__ w,
      float* __restrict__ out, int m, int n, int k) {
    __shared__ __align__(16) float xs[2][64][16];
    __shared__ __align__(16) float ws[2][16][64];
    int t = threadIdx.x, row0 = blockIdx.y * 64, col0 = blockIdx.x * 64;
    int xr = t / 4, xc = t % 4 * 4, wr = t / 16, wc = t % 16 * 4;
    int ty = t / 16 * 4, tx = t % 16 * 4;
    float acc[4][4] = {};
    int tiles = (k + 15) / 16;
    auto fetch = [&](int tile) {
        int s = tile & 1, xk = tile * 16 + xc, wk = tile * 16 + wr;
        bool xin = row0 + xr < m && xk < k, win = wk < k && col0 + wc < n;
        copy16(&xs[s][xr][xc], xin ? x + (long long)(row0 + xr) * k + xk : x, xin);
        copy16(&ws[s][wr][wc], win ? w + (long long)wk * n + col0 + wc : w, win);
        asm volatile("cp.async.commit_group;");
    };
    fetch(0);
    for (int tile = 0; tile < tiles; ++tile) {
        if (tile + 1 < tiles) {
            fetch(tile + 1);
            asm volatile("cp.async.wait_group 1;");
        } else {
            asm volatile("cp.async.wait_group 0;");
        }
        __syncthreads();
        int s = tile & 1;
#pragma unroll
        for (int j = 0; j < 16; ++j) {
            float a[4];
            for (int i = 0; i < 4; ++i) a[i] = xs[s][ty + i][j];
            float4 b = *(const float4*)&ws[s][j][tx];
            for (int i = 0; i < 4; ++i) {
                acc[i][0] += a[i] * b.x;
                acc[i][1] += a[i] * b.y;
                acc[i][2] += a[i] * b.z;
                acc[i][3] += a[i] * b.w;
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i)
        if (row0 + ty + i < m && col0 + tx < n)
            *(float4*)&out[(long long)(row0 + ty + i) * n + col0 + tx] =
                make_float4(acc[i][0], acc[i][1], acc[i][2], acc[i][3]);
}
