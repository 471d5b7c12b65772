// What epilogues call: NumPy's functions by NumPy's names, NaN as NumPy has it.
// In a namespace, because CUDA's own remainder, for one, is another function.
typedef long long i64;

namespace tw {

#define TW_INLINE __device__ __forceinline__
#define TW_ONE(name, single, twice)                      \
    TW_INLINE float name(float x) { return single(x); } \
    TW_INLINE double name(double x) { return twice(x); }
#define TW_TWO(name, single, twice)                                  \
    TW_INLINE float name(float x, float y) { return single(x, y); } \
    TW_INLINE double name(double x, double y) { return twice(x, y); }

TW_ONE(exp, ::expf, ::exp)
TW_ONE(exp2, ::exp2f, ::exp2)
TW_ONE(expm1, ::expm1f, ::expm1)
TW_ONE(log, ::logf, ::log)
TW_ONE(log1p, ::log1pf, ::log1p)
TW_ONE(log2, ::log2f, ::log2)
TW_ONE(sqrt, ::sqrtf, ::sqrt)
TW_ONE(tanh, ::tanhf, ::tanh)
TW_ONE(sin, ::sinf, ::sin)
TW_ONE(cos, ::cosf, ::cos)
TW_ONE(arctan, ::atanf, ::atan)
TW_ONE(floor, ::floorf, ::floor)
TW_ONE(rint, ::rintf, ::rint)
TW_ONE(erf, ::erff, ::erf)
TW_ONE(absolute, ::fabsf, ::fabs)
TW_TWO(hypot, ::hypotf, ::hypot)
TW_TWO(power, ::powf, ::pow)
TW_TWO(modulo, ::fmodf, ::fmod)

TW_INLINE float inf_f() { return __int_as_float(0x7f800000); }
TW_INLINE float nan_f() { return __int_as_float(0x7fc00000); }
TW_INLINE double inf_d() { return __longlong_as_double(0x7ff0000000000000LL); }
TW_INLINE double nan_d() { return __longlong_as_double(0x7ff8000000000000LL); }

TW_INLINE int absolute(int x) { return x < 0 ? -x : x; }
TW_INLINE i64 absolute(i64 x) { return x < 0 ? -x : x; }
TW_INLINE bool absolute(bool x) { return x; }
TW_INLINE bool invert(bool x) { return !x; }
TW_INLINE int invert(int x) { return ~x; }
TW_INLINE i64 invert(i64 x) { return ~x; }

template <typename T> TW_INLINE bool isnan(T x) { return x != x; }
template <typename T> TW_INLINE bool isfinite(T x) { return x - x == x - x; }
template <typename T> TW_INLINE T maximum(T x, T y) { return x > y || x != x ? x : y; }
template <typename T> TW_INLINE T minimum(T x, T y) { return x < y || x != x ? x : y; }
template <typename T> TW_INLINE T square(T x) { return x * x; }
template <typename T> TW_INLINE T reciprocal(T x) { return T(1) / x; }
template <typename T> TW_INLINE T sign(T x) {
    return x != x ? x : T(x > T(0)) - T(x < T(0));
}
template <typename T> TW_INLINE T heaviside(T x, T y) {
    return x != x ? x : x < T(0) ? T(0) : x > T(0) ? T(1) : y;
}
template <typename T> TW_INLINE T where(bool condition, T x, T y) {
    return condition ? x : y;
}
template <typename T> TW_INLINE bool logical_and(T x, T y) { return x && y; }
template <typename T> TW_INLINE bool logical_or(T x, T y) { return x || y; }
template <typename T> TW_INLINE bool logical_not(T x) { return !x; }
template <typename T> TW_INLINE T remainder(T x, T y) {
    T r = modulo(x, y);
    return r != T(0) && (y < T(0)) != (r < T(0)) ? r + y : r;
}
template <typename T> TW_INLINE T floor_divide(T x, T y) {  // npy_divmod
    T r = modulo(x, y), d = (x - r) / y;
    if (r != T(0) && (y < T(0)) != (r < T(0))) d -= T(1);
    T f = floor(d);
    if (d - f > T(0.5)) f += T(1);
    return y == T(0) ? x / y : f;
}
template <typename T> TW_INLINE T logaddexp(T x, T y) {
    if (x == y) return x + log(T(2));
    T d = x - y;
    return d != d ? d : (d > T(0) ? x : y) + log1p(exp(-absolute(d)));
}
template <typename T> TW_INLINE T expit(T x) {
    T e = exp(-absolute(x));
    return (x >= T(0) ? T(1) : e) / (T(1) + e);
}

}  // namespace tw
