// Angles. Sine and cosine take x * 2/pi in fixed point (Payne and Hanek, 1983): exact
// for any argument; the fraction is that of N. Juffa's trig_red_slowpath_f.
const uint TWO_OVER_PI[7] = uint[7](
    0x28be60dbu, 0x9391054au, 0x7f09d5f4u, 0x7d4d3770u, 0x36d8a566u, 0x4f10e410u,
    0x7f9458eau);
float reduced_angle(float x, out int quadrant) {
    uint bits = floatBitsToUint(x);
    uint mantissa = ((bits & 0x007fffffu) << 8) | 0x80000000u;
    int e = int((bits >> 23) & 0xffu) - 126, i = e >> 5;
    e &= 31;
    uint high = i > 0 ? TWO_OVER_PI[i - 1] : 0u;
    uint middle = TWO_OVER_PI[i], low = TWO_OVER_PI[i + 1];
    if (e > 0) {
        high = (high << e) | (middle >> (32 - e));
        middle = (middle << e) | (low >> (32 - e));
        low = (low << e) | (TWO_OVER_PI[i + 2] >> (32 - e));
    }
    uint carried, unused, h, l;
    umulExtended(mantissa, low, carried, unused);
    umulExtended(mantissa, middle, h, l);
    l += carried;
    h += (l < carried ? 1u : 0u) + mantissa * high;
    quadrant = int(h >> 30);
    h &= 0x3fffffffu;
    bool below = (h & 0x20000000u) != 0u;
    if (below) {
        quadrant += 1;
        h = 0x3fffffffu - h;
        l = ~l + 1u;
        h += l == 0u ? 1u : 0u;
    }
    int shift = 0;
    if (h == 0u) {
        h = l;
        l = 0u;
        shift = 32;
    }
    int lead = 31 - findMSB(h);
    if (lead > 0) h = (h << lead) | (l >> (32 - lead));
    shift += lead;
    float first = float(h & 0xffffff00u), rest = float(h & 0xffu);
    precise float r = first * 1.57079637050628662 +
                      (first * -4.37113900018624283e-8 + rest * 1.57079637050628662);
    r = r * uintBitsToFloat(uint(97 - shift) << 23);
    return is_negative(x) != below ? -r : r;
}
float sine(float x, int more) {
    if (!tw_isfinite(x)) return NAN;
    int quadrant = 0;
    precise float r = x;
    if (tw_absolute(x) >= 0.785398163) {
        r = reduced_angle(x, quadrant);
        if (is_negative(x)) quadrant = -quadrant;
    }
    quadrant += more;
    precise float z = r * r;
    precise float s = ((-1.9515295891e-4 * z + 8.3321608736e-3) * z - 1.6666654611e-1);
    s = s * z * r + r;
    precise float c = 2.443315711809948e-5 * z - 1.388731625493765e-3;
    c = (c * z + 4.166664568298827e-2) * z * z - 0.5 * z + 1.0;
    float y = (quadrant & 1) != 0 ? c : s;
    return (quadrant & 2) != 0 ? -y : y;
}
float tw_sin(float x) { return x == 0.0 ? x : sine(x, 0); }
float tw_cos(float x) { return sine(x, 1); }
float tw_arctan(float x) {
    if (x == 0.0 || tw_isnan(x)) return x;
    float a = tw_absolute(x);
    precise float r = a, y = 0.0, more = 0.0;
    if (a > 2.414213562373095) {
        r = -1.0 / a;
        y = 1.5707963267948966;
        more = -4.371139000186241e-8;
    } else if (a > 0.4142135623730950) {
        r = (a - 1.0) / (a + 1.0);
        y = 0.7853981633974483;
        more = -2.1855695000931204e-8;
    }
    precise float z = r * r;
    precise float p = 8.05374449538e-2 * z - 1.38776856032e-1;
    p = p * z + 1.99777106478e-1;
    p = p * z - 3.33329491539e-1;
    y = y + ((p * z * r + more) + r);
    return with_sign(y, x);
}
float tw_hypot(float x, float y) {
    float a = tw_absolute(x), b = tw_absolute(y);
    if (a == INF || b == INF) return INF;
    if (tw_isnan(a) || tw_isnan(b)) return NAN;
    if (a == 0.0 || b == 0.0) return a == 0.0 ? b : a;
    int n = int(floatBitsToUint(a > b ? a : b) >> 23) - 127;
    precise float c = scaled(a, -n), d = scaled(b, -n);
    return scaled(sqrt(c * c + d * d), n);
}
