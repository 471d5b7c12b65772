// What epilogues call: NumPy's functions behind tw_, NaN as NumPy has it.
// GLSL promises few digits, leaves open what min, max and isnan do with NaN and lets a
// compiler reorder sums. So NaN is told by its bits, `precise` keeps the order, and the
// functions are those of tilewise.engines.cpu (exponentials.py, logarithms.py, angles.py:
// their comments name the sources) with power after FreeBSD's e_powf.c.

const float INF = uintBitsToFloat(0x7f800000u), NAN = uintBitsToFloat(0x7fc00000u);

bool tw_isnan(float x) { return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u; }
bool tw_isnan(int x) { return false; }
bool tw_isfinite(float x) { return (floatBitsToUint(x) & 0x7f800000u) != 0x7f800000u; }
bool tw_isfinite(int x) { return true; }
bool is_negative(float x) { return (floatBitsToUint(x) >> 31) != 0u; }
float with_sign(float x, float sign) {
    uint bits = floatBitsToUint(x) & 0x7fffffffu;
    return uintBitsToFloat(bits | (floatBitsToUint(sign) & 0x80000000u));
}
float high_bits(float x) { return uintBitsToFloat(floatBitsToUint(x) & 0xfffff000u); }

float tw_absolute(float x) { return with_sign(x, 1.0); }
int tw_absolute(int x) { return x < 0 ? -x : x; }
int tw_invert(int x) { return ~x; }
float tw_maximum(float x, float y) {
    return tw_isnan(x) ? x : tw_isnan(y) ? y : x >= y ? x : y;
}
float tw_minimum(float x, float y) {
    return tw_isnan(x) ? x : tw_isnan(y) ? y : x <= y ? x : y;
}
int tw_maximum(int x, int y) { return x >= y ? x : y; }
int tw_minimum(int x, int y) { return x <= y ? x : y; }
float tw_where(bool c, float x, float y) { return c ? x : y; }
int tw_where(bool c, int x, int y) { return c ? x : y; }
bool tw_where(bool c, bool x, bool y) { return c ? x : y; }
bool tw_logical_and(float x, float y) { return x != 0.0 && y != 0.0; }
bool tw_logical_and(int x, int y) { return x != 0 && y != 0; }
bool tw_logical_or(float x, float y) { return x != 0.0 || y != 0.0; }
bool tw_logical_or(int x, int y) { return x != 0 || y != 0; }
bool tw_logical_not(float x) { return x == 0.0; }
bool tw_logical_not(int x) { return x == 0; }
float tw_square(float x) { return x * x; }
int tw_square(int x) { return x * x; }
float tw_reciprocal(float x) { return 1.0 / x; }
float tw_floor(float x) { return tw_isfinite(x) ? floor(x) : x; }
int tw_floor(int x) { return x; }
float tw_rint(float x) { return tw_isfinite(x) ? roundEven(x) : x; }
float tw_sign(float x) { return tw_isnan(x) ? x : float(x > 0.0) - float(x < 0.0); }
int tw_sign(int x) { return int(x > 0) - int(x < 0); }
float tw_heaviside(float x, float y) {
    return tw_isnan(x) ? x : x == 0.0 ? y : float(x > 0.0);
}
float tw_sqrt(float x) {
    if (x > 0.0 && x < INF) return sqrt(x);
    return x < 0.0 ? NAN : x;
}

// Exponentials: y = n ln 2 + r, and n by adding 1.5 * 2^23.
float clamped(float x, float low, float high) {
    return tw_isnan(x) ? x : x < low ? low : x > high ? high : x;
}
float scaled(float v, int n) {
    int half_n = n >> 1;
    precise float first = v * uintBitsToFloat(uint(half_n + 127) << 23);
    return first * uintBitsToFloat(uint(n - half_n + 127) << 23);
}
float expm1_of(float r) {
    precise float p = 1.9875691500e-4;
    p = p * r + 1.3981999507e-3;
    p = p * r + 8.3334519073e-3;
    p = p * r + 4.1665795894e-2;
    p = p * r + 1.6666665459e-1;
    p = p * r + 5.0000001201e-1;
    p = p * (r * r) + r;
    return p;
}
float reduced(float y, out int n) {
    precise float shifted = y * 1.44269504088896341 + 12582912.0;
    precise float whole = shifted - 12582912.0;
    precise float r = y - whole * 0.693359375;
    r = r - whole * -2.12194440e-4;
    n = tw_isnan(y) ? 0 : int(whole);
    return expm1_of(r);
}
float tw_exp(float x) {
    int n;
    precise float v = reduced(clamped(x, -104.0, 89.0), n) + 1.0;
    return scaled(v, n);
}
float tw_exp2(float x) {
    precise float y = clamped(x, -151.0, 129.0);
    if (tw_isnan(y)) return y;
    precise float whole = roundEven(y);
    precise float v = expm1_of((y - whole) * 0.693147180559945309) + 1.0;
    return scaled(v, int(whole));
}
float tw_expm1(float x) {
    int n;
    precise float v = reduced(clamped(x, -80.0, 89.0), n);
    precise float a = uintBitsToFloat(uint(n + 126) << 23);
    precise float y = (a * v + (a - 0.5)) * 2.0;
    return tw_absolute(x) < 2.9802322387695312e-8 ? x : y;
}
float tw_tanh(float x) {
    float a = tw_absolute(x);
    if (a >= 0.625) {
        precise float far = 1.0 - 2.0 / (tw_exp(a + a) + 1.0);
        return with_sign(far, x);
    }
    precise float q = x * x;
    precise float p = -5.70498872745e-3;
    p = p * q + 2.06390887954e-2;
    p = p * q + -5.37397155531e-2;
    p = p * q + 1.33314422036e-1;
    p = p * q + -3.33332819422e-1;
    p = p * q * x + x;
    return q == 0.0 ? x : p;
}
float tw_expit(float x) {
    int n;
    precise float v = reduced(clamped(-tw_absolute(x), -104.0, 0.0), n);
    precise float e = v + 1.0;
    precise float lost = v - (e - 1.0);
    precise float down = 1.0 + scaled(e, n);
    precise float q = e / down;
    q = q + q * lost * (1.0 - v);
    return x >= 0.0 ? 1.0 / down : scaled(q, n);
}
float tw_erf(float x) {
    float a = tw_absolute(x);
    precise float s = x * x;
    if (a > 0.927734375) {
        precise float r = -1.72853470e-5 * a + 3.83197126e-4;
        precise float u = -3.88396438e-3 * a + 2.42546219e-2;
        r = r * s + u;
        r = r * a + -1.06777877e-1;
        r = r * a + -6.34846687e-1;
        r = r * a + -1.28717512e-1;
        precise float far = 1.0 - tw_exp(r * a - a);
        return with_sign(a > 4.0 ? 1.0 : far, x);
    }
    precise float p = -5.96761703e-4;
    p = p * s + 4.99119423e-3;
    p = p * s + -2.67681349e-2;
    p = p * s + 1.12819925e-1;
    p = p * s + -3.76125336e-1;
    p = p * s + 1.28379166e-1;
    p = p * x + x;
    return p;
}

// Logarithms: x = 2^k (1 + f), s = f / (2 + f).
float split(float x, out float k) {
    bool small = x < 1.17549435e-38;
    float y = small ? x * 33554432.0 : x;
    int bits = floatBitsToInt(y) + (0x3f800000 - 0x3f3504f3);
    k = float((bits >> 23) - (small ? 152 : 127));
    return intBitsToFloat((bits & 0x007fffff) + 0x3f3504f3) - 1.0;
}
float series(float f, out float half_f2) {
    precise float s = f / (2.0 + f);
    precise float z = s * s;
    precise float w = z * z;
    precise float odd = w * (0.40000972152 + w * 0.24279078841);
    precise float even = z * (0.66666662693 + w * 0.28498786688);
    precise float h = 0.5 * f * f;
    half_f2 = h;
    precise float tail = s * (h + (odd + even));
    return tail;
}
float log_of(float k, float f, float lost) {
    float half_f2;
    precise float tail = series(f, half_f2);
    precise float low = k * 9.0580006145e-06 + lost;
    precise float y = k * 6.9313812256e-01 - ((half_f2 - (tail + low)) - f);
    return y;
}
float edges(float x, float y) {
    if (tw_isnan(x) || x < 0.0) return NAN;
    return x == 0.0 ? -INF : x == INF ? INF : y;
}
float tw_log(float x) {
    float k;
    float f = split(x, k);
    return edges(x, log_of(k, f, 0.0));
}
float tw_log2(float x) {
    float k, half_f2;
    float f = split(x, k);
    precise float tail = series(f, half_f2);
    precise float y = f - (half_f2 - tail);
    precise float z = k + (y * 1.4426950216 + y * 1.9259630e-08);
    return edges(x, z);
}
float tw_log1p(float x) {
    if (tw_absolute(x) < 2.9802322387695312e-8) return x;
    if (x > -0.2929 && x < 0.4142) return log_of(0.0, x, 0.0);
    precise float u = 1.0 + x;
    float k;
    float f = split(u, k);
    precise float lost = k >= 2.0 ? 1.0 - (u - x) : x - (u - 1.0);
    return edges(u, log_of(k, f, lost / u));
}
float tw_logaddexp(float x, float y) {
    precise float d = x - y;
    if (x == y) return x + 0.693147180559945309417;
    if (tw_isnan(d)) return d;
    precise float far = (d > 0.0 ? x : y) + tw_log1p(tw_exp(-tw_absolute(d)));
    return far;
}
