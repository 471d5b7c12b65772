// A product with its epilogue, in two methods: `naive`, one result a thread, and
// `simt`, register-blocked tiles with two stages of shared memory.
//
// A factor's tile has an outer axis (rows of x, columns of w) and the axis k. With
// KUNIT it lies in shared memory as it does in global memory when k has the unit
// stride: rows of BK elements, padded by 16 bytes so that rows fall on other banks.
// Otherwise the outer axis is contiguous. Either way fragments are read by 16 bytes.
namespace tw {

template <typename T> struct alignas(16) Pack { T v[16 / sizeof(T)]; };

// Copies BYTES to shared memory, of which the first `bytes` are read, the rest zero.
template <int BYTES> TW_INLINE void copy(void* to, const void* from, int bytes) {
#if __CUDA_ARCH__ >= 800
    unsigned target = (unsigned)__cvta_generic_to_shared(to);
    if constexpr (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                     ::"r"(target), "l"(from), "r"(bytes) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;"
                     ::"r"(target), "l"(from), "r"(bytes), "n"(BYTES) : "memory");
#else
    unsigned words[BYTES / 4] = {};
    if (bytes == BYTES) {
        if constexpr (BYTES == 16)
            *(uint4*)words = *(const uint4*)from;
        else if constexpr (BYTES == 8)
            *(uint2*)words = *(const uint2*)from;
        else
            words[0] = *(const unsigned*)from;
    } else {
        for (int i = 0; i < BYTES / 4; ++i)
            if (4 * i < bytes) words[i] = ((const unsigned*)from)[i];
    }
    if constexpr (BYTES == 16)
        *(uint4*)to = *(uint4*)words;
    else if constexpr (BYTES == 8)
        *(uint2*)to = *(uint2*)words;
    else
        *(unsigned*)to = words[0];
#endif
}

TW_INLINE void commit() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

TW_INLINE void arrive() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group 0;" ::: "memory");
#endif
    __syncthreads();
}

TW_INLINE int clamped(i64 x, int most) { return x < 0 ? 0 : x > most ? most : (int)x; }

// One factor: fetches tiles of OUTER x BK, W elements at a time, and reads fragments
// of COUNT elements of the outer axis for each of PEERS threads along it.
template <typename T, int OUTER, int BK, int COUNT, bool KUNIT, int W, int THREADS>
struct Factor {
    static constexpr int V = 16 / sizeof(T), PEERS = OUTER / COUNT;
    static constexpr int STRIDE = KUNIT ? BK + V : OUTER;
    static constexpr int SIZE = KUNIT ? OUTER * STRIDE : BK * STRIDE;
    static constexpr int LINE = (KUNIT ? BK : OUTER) / W;  // copies of one line
    static constexpr int ROUNDS = OUTER * BK / W / THREADS;
    static constexpr int LINES = THREADS / LINE;  // lines of one round
    static_assert(ROUNDS * W * THREADS == OUTER * BK && LINES * LINE == THREADS, "");
    static_assert(COUNT % V == 0 && BK % V == 0, "");

    const T* from;
    i64 line_step, tile_step;
    int line, within, outer_left;

    // `first` of `size` elements of the outer axis is the tile's first.
    TW_INLINE Factor(const T* base, i64 outer, i64 step, i64 first, i64 size) {
        line = threadIdx.x / LINE;
        within = threadIdx.x % LINE * W;
        outer_left = clamped(size - first, OUTER);
        line_step = KUNIT ? outer : step;
        tile_step = step * BK;
        i64 o = KUNIT ? line : within, l = KUNIT ? within : line;
        from = base + (first + o) * outer + l * step;
    }

    // Starts the copies of the next tile, of which k_left elements are there.
    TW_INLINE void fetch(T* to, int k_left) {
        int lines_left = KUNIT ? outer_left : k_left;
        int inside = clamped((KUNIT ? k_left : outer_left) - within, W) * sizeof(T);
#pragma unroll
        for (int round = 0; round < ROUNDS; ++round) {
            int at = line + round * LINES;
            const T* source = from + round * LINES * line_step;
            copy<W * sizeof(T)>(to + at * STRIDE + within, source,
                                at < lines_left ? inside : 0);
        }
        from += tile_step;
    }

    // Which element of the tile's outer axis a thread's i-th one is.
    static TW_INLINE int place(int peer, int i) {
        return KUNIT ? peer + i * PEERS : i / V * PEERS * V + peer * V + i % V;
    }

    // Reads V steps of k from l on.
    static TW_INLINE void read(const T* tile, int peer, int l, T (&out)[COUNT][V]) {
#pragma unroll
        for (int i = 0; i < COUNT; i += KUNIT ? 1 : V) {
#pragma unroll
            for (int step = 0; step < (KUNIT ? 1 : V); ++step) {
                int o = place(peer, i);
                int at = KUNIT ? o * STRIDE + l : (l + step) * STRIDE + o;
                Pack<T> pack = *(const Pack<T>*)(tile + at);
#pragma unroll
                for (int e = 0; e < V; ++e)
                    (KUNIT ? out[i][e] : out[i + e][step]) = pack.v[e];
            }
        }
    }
};

// The block's tile: blocks go down groups of eight rows of tiles, so that those that
// run together share columns of w and rows of x in L2.
TW_INLINE void tile_of(i64 m, i64 n, int bm, int bn, i64& row, i64& column) {
    unsigned down = (unsigned)((m + bm - 1) / bm), across = (unsigned)((n + bn - 1) / bn);
    unsigned group = blockIdx.x / (8 * across), rest = blockIdx.x % (8 * across);
    unsigned rows = down - group * 8 < 8 ? down - group * 8 : 8;
    row = (i64)(group * 8 + rest % rows) * bm;
    column = (i64)(rest / rows) * bn;
}

// Writes COUNT results of a row, `apart` columns apart: at once where all are there.
template <int COUNT, bool PACKED, typename R>
TW_INLINE void store(R* out, const R (&values)[COUNT], i64 at, i64 to, i64 n, i64 outr,
                     i64 outc, int apart) {
    struct alignas(sizeof(R) * COUNT) Whole { R v[COUNT]; };
    if constexpr (PACKED && sizeof(Whole) == 16)
        if (to + COUNT <= n) {
            *(Whole*)(out + at * outr + to) = *(const Whole*)values;
            return;
        }
#pragma unroll
    for (int e = 0; e < COUNT; ++e)
        if (to + e * apart < n) out[at * outr + (to + e * apart) * outc] = values[e];
}

template <typename T, typename R, int BM, int BN, int BK, int TM, int TN, bool XK,
          bool WK, int XW, int WW, bool PACKED, typename Epilogue>
TW_INLINE void simt(const T* x, const T* w, R* out, i64 m, i64 n, i64 k, i64 xr, i64 xc,
                    i64 wr, i64 wc, i64 outr, i64 outc, const Epilogue& epilogue) {
    constexpr int V = 16 / sizeof(T), ACROSS = BN / TN, THREADS = BM / TM * ACROSS;
    using X = Factor<T, BM, BK, TM, XK, XW, THREADS>;
    using W = Factor<T, BN, BK, TN, WK, WW, THREADS>;
    extern __shared__ __align__(16) unsigned char memory[];
    T* tiles = (T*)memory;
    constexpr int STAGE = X::SIZE + W::SIZE;

    i64 row, column;
    tile_of(m, n, BM, BN, row, column);
    X left(x, xr, xc, row, m);
    W right(w, wc, wr, column, n);
    int down = threadIdx.x / ACROSS, across = threadIdx.x % ACROSS;
    T sums[TM][TN] = {};
    T* now = tiles;
    T* next = tiles + STAGE;
    if (k > 0) {
        int some = clamped(k, BK);
        left.fetch(now, some);
        right.fetch(now + X::SIZE, some);
        commit();
    }
    for (i64 rest = k; rest > 0; rest -= BK) {
        arrive();
        if (rest > BK) {
            int some = clamped(rest - BK, BK);
            left.fetch(next, some);
            right.fetch(next + X::SIZE, some);
            commit();
        }
#pragma unroll
        for (int l = 0; l < BK; l += V) {
            T a[TM][V], b[TN][V];
            X::read(now, down, l, a);
            W::read(now + X::SIZE, across, l, b);
#pragma unroll
            for (int e = 0; e < V; ++e)
#pragma unroll
                for (int i = 0; i < TM; ++i)
#pragma unroll
                    for (int j = 0; j < TN; ++j) sums[i][j] += a[i][e] * b[j][e];
        }
        T* swap = now;
        now = next;
        next = swap;
    }
    // One row of sums at a time, chosen by comparing, so that the epilogue stands TN
    // times in the code and not TM * TN times.
#pragma unroll 1
    for (int i = 0; i < TM; ++i) {
        i64 at = row + X::place(down, i);
        T chosen[TN];
#pragma unroll
        for (int r = 0; r < TM; ++r)
#pragma unroll
            for (int j = 0; j < TN; ++j)
                chosen[j] = r == 0 || r == i ? sums[r][j] : chosen[j];
        if (at >= m) continue;
#pragma unroll
        for (int j = 0; j < TN; j += V) {
            alignas(16) R values[V] = {};
#pragma unroll
            for (int e = 0; e < V; ++e) {
                i64 to = column + W::place(across, j + e);
                if (to < n) values[e] = epilogue(chosen[j + e], at, to);
            }
            store<V, PACKED && !WK>(out, values, at, column + W::place(across, j), n,
                                    outr, outc, WK ? W::PEERS : 1);
        }
    }
}

template <typename T, typename R, typename Epilogue>
TW_INLINE void naive(const T* x, const T* w, R* out, i64 m, i64 n, i64 k, i64 xr, i64 xc,
                     i64 wr, i64 wc, i64 outr, i64 outc, const Epilogue& epilogue) {
    i64 row, column;
    tile_of(m, n, 16, 16, row, column);
    row += threadIdx.y;
    column += threadIdx.x;
    if (row >= m || column >= n) return;
    T sum = 0;
    for (i64 l = 0; l < k; ++l) sum += x[row * xr + l * xc] * w[l * wr + column * wc];
    out[row * outr + column * outc] = epilogue(sum, row, column);
}

}  // namespace tw
