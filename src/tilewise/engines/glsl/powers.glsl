// Division with remainder, as NumPy's npy_divmod: long division of the bits.
uint aligned(uint bits, out int e) {
    e = int(bits >> 23);
    if (e > 0) return (bits & 0x007fffffu) | 0x00800000u;
    int shift = 23 - findMSB(bits);
    e = 1 - shift;
    return bits << shift;
}
float modulo(float x, float y) {
    uint a = floatBitsToUint(tw_absolute(x)), b = floatBitsToUint(tw_absolute(y));
    if (b == 0u || b > 0x7f800000u || a >= 0x7f800000u) return NAN;
    if (a < b || b == 0x7f800000u) return x;
    int ea, eb;
    uint ma = aligned(a, ea), mb = aligned(b, eb);
    for (; ea > eb; --ea) {
        if (ma >= mb) ma -= mb;
        ma <<= 1;
    }
    if (ma >= mb) ma -= mb;
    if (ma == 0u) return with_sign(0.0, x);
    int lead = 23 - findMSB(ma);
    ma <<= lead;
    ea -= lead;
    uint bits = ea > 0 ? (ma & 0x007fffffu) | (uint(ea) << 23) : ma >> (1 - ea);
    return with_sign(uintBitsToFloat(bits), x);
}
float tw_remainder(float x, float y) {
    precise float r = modulo(x, y);
    if (tw_isnan(r)) return r;
    if (r == 0.0) return with_sign(r, y);
    return (r < 0.0) != (y < 0.0) ? r + y : r;
}
float tw_floor_divide(float x, float y) {
    precise float r = modulo(x, y);
    if (y == 0.0) return x / y;
    precise float d = (x - r) / y;
    if (r != 0.0 && (r < 0.0) != (y < 0.0)) d -= 1.0;
    if (d == 0.0) return with_sign(0.0, x / y);
    precise float f = tw_floor(d);
    return d - f > 0.5 ? f + 1.0 : f;
}

// |x|^y = 2^(y log2 |x|) with the logarithm in two parts, t1 + t2.
float log2_of(float ax, out float t2) {
    bool small = ax < 1.17549435e-38;
    uint bits = floatBitsToUint(small ? ax * 16777216.0 : ax);
    int n = int(bits >> 23) - (small ? 151 : 127);
    uint j = bits & 0x007fffffu;
    bits = j | 0x3f800000u;
    bool upper = j > 0x1cc471u && j < 0x5db3d7u;
    if (j >= 0x5db3d7u) {
        n += 1;
        bits -= 0x00800000u;
    }
    float a = uintBitsToFloat(bits), base = upper ? 1.5 : 1.0;
    precise float u = a - base, v = 1.0 / (a + base), s = u * v, s_h = high_bits(s);
    uint top = ((bits >> 1) & 0xfffff000u) | 0x20000000u;
    precise float t_h = uintBitsToFloat(top + 0x00400000u + (upper ? 1u << 21 : 0u));
    precise float t_l = a - (t_h - base);
    precise float s_l = v * ((u - s_h * t_h) - s_h * t_l), s2 = s * s;
    precise float r = 2.3066075146e-01 + s2 * 2.0697501302e-01;
    r = 2.7272811532e-01 + s2 * r;
    r = 3.3333334327e-01 + s2 * r;
    r = 4.2857143283e-01 + s2 * r;
    r = 6.0000002384e-01 + s2 * r;
    r = s2 * s2 * r;
    r = r + s_l * (s_h + s);
    s2 = s_h * s_h;
    t_h = high_bits(3.0 + s2 + r);
    t_l = r - ((t_h - 3.0) - s2);
    u = s_h * t_h;
    v = s_l * t_h + t_l * s;
    precise float p_h = high_bits(u + v), p_l = v - (p_h - u);
    precise float z_h = 9.6191406250e-01 * p_h;
    precise float z_l = -1.1736857402e-04 * p_h + p_l * 9.6179670095e-01;
    if (upper) z_l = z_l + 1.56322085e-06;
    precise float dp = upper ? 5.84960938e-01 : 0.0, t = float(n);
    precise float t1 = high_bits(((z_h + z_l) + dp) + t);
    precise float lower = z_l - (((t1 - t) - dp) - z_h);
    t2 = lower;
    return t1;
}
float exp2_of(float p_h, float p_l) {
    precise float z = p_l + p_h;
    if (z > 130.0) return INF;
    if (z < -152.0) return 0.0;
    precise float whole = roundEven(z), high = p_h - whole;
    precise float t = uintBitsToFloat(floatBitsToUint(p_l + high) & 0xffff8000u);
    precise float u = t * 6.93145752e-01;
    precise float v = (p_l - (t - high)) * 6.9314718246e-01 + t * 1.42860654e-06;
    z = u + v;
    precise float w = v - (z - u);
    precise float e = expm1_of(z);
    z = 1.0 + (e + (w + z * w));
    return scaled(z, int(whole));
}
float tw_power(float x, float y) {
    if (y == 0.0 || x == 1.0) return 1.0;
    if (tw_isnan(x) || tw_isnan(y)) return NAN;
    float ax = tw_absolute(x), ay = tw_absolute(y);
    if (ay == INF) return ax == 1.0 ? 1.0 : (ax > 1.0) == (y > 0.0) ? INF : 0.0;
    bool whole = ay >= 16777216.0 || floor(ay) == ay;
    bool odd = ay < 16777216.0 && whole && (int(ay) & 1) == 1;
    float sign = odd ? x : 1.0;
    if (ax == 0.0 || ax == INF)
        return with_sign((ax == 0.0) == (y > 0.0) ? 0.0 : INF, sign);
    if (x < 0.0 && !whole) return NAN;
    float t2, t1 = log2_of(ax, t2), y1 = high_bits(y);
    precise float p_l = (y - y1) * t1 + y * t2, p_h = y1 * t1;
    return with_sign(exp2_of(p_h, p_l), sign);
}
