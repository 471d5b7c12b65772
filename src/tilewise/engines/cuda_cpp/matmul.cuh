// A product with its epilogue, in two methods: `naive`, one result a thread, and
// `simt`, register-blocked tiles with two stages of shared memory.
//
// A factor's tile has an outer axis (rows of x, columns of w) and the axis k. With
// KUNIT it lies in shared memory as it does in global memory when k has the unit
// stride: rows of BK elements, padded by 16 bytes so that rows fall on other banks.
// Otherwise the outer axis is contiguous. Either way fragments are read by 16 bytes.
namespace tw {

template <typename T> struct alignas(16) Pack { T v[16 / sizeof(T)]; };

// Copies BYTES to shared memory, or zeros where they are not there.
template <int BYTES> TW_INLINE void copy(void* to, const void* from, bool there) {
#if __CUDA_ARCH__ >= 800
    unsigned target = (unsigned)__cvta_generic_to_shared(to);
    int bytes = there ? BYTES : 0;
    if constexpr (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                     ::"r"(target), "l"(from), "r"(bytes) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;"
                     ::"r"(target), "l"(from), "r"(bytes), "n"(BYTES) : "memory");
#else
    struct alignas(BYTES) Words { unsigned v[BYTES / 4]; };
    *(Words*)to = there ? *(const Words*)from : Words{};
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
        outer_left = size - first < OUTER ? (int)(size - first) : OUTER;
        asm volatile("" : "+r"(outer_left));  // or it is computed again for each tile
        line_step = LINES * (KUNIT ? outer : step);
        tile_step = step * BK;
        i64 o = KUNIT ? line : within, l = KUNIT ? within : line;
        from = base + (first + o) * outer + l * step;
    }

    // Starts the copies of the next tile, of which k_left elements are there. W of
    // them are there or not: where W > 1, the sizes are multiples of it.
    TW_INLINE void fetch(T* to, int k_left) {
        int lines_left = KUNIT ? outer_left : k_left;
        bool inside = within < (KUNIT ? k_left : outer_left);
        T* target = to + line * STRIDE + within;
        const T* source = from;
#pragma unroll
        for (int round = 0; round < ROUNDS; ++round) {
            copy<W * sizeof(T)>(target + round * LINES * STRIDE, source,
                                inside && line + round * LINES < lines_left);
            source += line_step;
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
          bool WK, int XW, int WW, bool PACKED, bool ROLLED, typename Epilogue>
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
    int count = (int)((k + BK - 1) / BK), last = (int)(k - (i64)(count - 1) * BK);
    int stage = 0;  // where the current tile is
    if (count > 0) {
        int there = count > 1 ? BK : last;
        left.fetch(tiles, there);
        right.fetch(tiles + X::SIZE, there);
        commit();
    }
    for (int tile = 1; tile <= count; ++tile) {
        arrive();
        const T* now = tiles + stage;
        stage = STAGE - stage;
        if (tile < count) {
            int there = tile + 1 < count ? BK : last;
            left.fetch(tiles + stage, there);
            right.fetch(tiles + stage + X::SIZE, there);
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
    }
    auto finish = [&](int i, const T (&row_sums)[TN]) {
        i64 at = row + X::place(down, i);
        if (at >= m) return;
#pragma unroll
        for (int j = 0; j < TN; j += V) {
            alignas(16) R values[V] = {};
#pragma unroll
            for (int e = 0; e < V; ++e) {
                i64 to = column + W::place(across, j + e);
                if (to < n) values[e] = epilogue(row_sums[j + e], at, to);
            }
            store<V, PACKED && !WK>(out, values, at, column + W::place(across, j), n,
                                    outr, outc, WK ? W::PEERS : 1);
        }
    };
    if constexpr (ROLLED) {
        // One row of sums at a time, chosen by comparing, so that a long epilogue
        // stands TN times in the code and not TM * TN times.
#pragma unroll 1
        for (int i = 0; i < TM; ++i) {
            T chosen[TN];
#pragma unroll
            for (int r = 0; r < TM; ++r)
#pragma unroll
                for (int j = 0; j < TN; ++j)
                    chosen[j] = r == 0 || r == i ? sums[r][j] : chosen[j];
            finish(i, chosen);
        }
    } else {
#pragma unroll
        for (int i = 0; i < TM; ++i) finish(i, sums[i]);
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
