// A bf16 product with mma.m16n8k16: blocks of 64x64, four warps of 32x32 each, tiles
// of 16 along k. m and n are multiples of 64, k of 16.
typedef unsigned short bf16;

__device__ __forceinline__ unsigned shared_address(const void* p) {
    return (unsigned)__cvta_generic_to_shared(p);
}

extern "C" __global__ void __launch_bounds__(128)
mma(const bf16* __restrict__ x, const bf16* __restrict__ w, float* __restrict__ out,
    int m, int n, int k) {
    __shared__ __align__(16) bf16 xs[64][16];
    __shared__ __align__(16) bf16 ws[16][64];
    int t = threadIdx.x, lane = t % 32, warp = t / 32;
    int row0 = blockIdx.y * 64, col0 = blockIdx.x * 64;
    int wm = warp / 2 * 32, wn = warp % 2 * 32;
    float acc[2][4][4] = {};
    for (int k0 = 0; k0 < k; k0 += 16) {
        *(int4*)&xs[t / 2][t % 2 * 8] =
            *(const int4*)&x[(long long)(row0 + t / 2) * k + k0 + t % 2 * 8];
        *(int4*)&ws[t / 8][t % 8 * 8] =
            *(const int4*)&w[(long long)(k0 + t / 8) * n + col0 + t % 8 * 8];
        __syncthreads();
        unsigned a[2][4], b[4][2];
#pragma unroll
        for (int i = 0; i < 2; ++i)
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                         : "=r"(a[i][0]), "=r"(a[i][1]), "=r"(a[i][2]), "=r"(a[i][3])
                         : "r"(shared_address(
                             &xs[wm + 16 * i + lane % 16][lane / 16 * 8])));
#pragma unroll
        for (int j = 0; j < 4; ++j)
            asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                         : "=r"(b[j][0]), "=r"(b[j][1])
                         : "r"(shared_address(&ws[lane % 16][wn + 8 * j])));
#pragma unroll
        for (int i = 0; i < 2; ++i)
#pragma unroll
            for (int j = 0; j < 4; ++j)
                asm volatile(
                    "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                    "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                    : "+f"(acc[i][j][0]), "+f"(acc[i][j][1]), "+f"(acc[i][j][2]),
                      "+f"(acc[i][j][3])
                    : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]),
                      "r"(b[j][0]), "r"(b[j][1]));
        __syncthreads();
    }
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 4; ++j)
            for (int h = 0; h < 2; ++h) {
                long long row = row0 + wm + 16 * i + lane / 4 + 8 * h;
                int col = col0 + wn + 8 * j + lane % 4 * 2;
                *(float2*)&out[row * n + col] =
                    make_float2(acc[i][j][2 * h], acc[i][j][2 * h + 1]);
            }
}
