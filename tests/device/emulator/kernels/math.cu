// What compilers make of the math library, device functions, local arrays, constants,
// halves and structures: none of it is used by the products.
__constant__ float table[4] = {1, 2, 3, 4};

struct Pair {
    float first[3];
    int second;
};

__noinline__ __device__ float2 twice(float a, int* count) {
    count[0] += 1;
    return make_float2(a * 2, sqrtf(a));
}

extern "C" __global__ void math(const float* x, const double* z, float* out,
                                double* wide, int n, Pair pair) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float a = x[i];
    double b = z[i];
    float values[14] = {expf(a), tanhf(a), logf(a), sinf(a), cosf(a * 1000), powf(a, 0.3f),
                        erff(a), rsqrtf(a), fmodf(a, 0.7f), log1pf(a), expm1f(a), a / 3,
                        exp2f(a), cbrtf(a)};
    double more[6] = {exp(b), log(b), sin(b), b / 3, sqrt(b), tanh(b)};
    int counts[8];
    for (int j = 0; j < 8; ++j) counts[j] = i * j;
    float2 pairs = twice(a, counts + (i & 7));
    for (int j = 0; j < 14; ++j) out[i * 17 + j] = values[j];
    for (int j = 0; j < 6; ++j) wide[i * 6 + j] = more[j];
    out[i * 17 + 14] = pairs.x + pairs.y;
    out[i * 17 + 15] = counts[n & 7] + table[n & 3] + pair.first[i % pair.second];
    out[i * 17 + 16] = (i % 7) * 1000 + (i / 11) * 10 + __popc(i) + __clz(i) + __ffs(i);
}
