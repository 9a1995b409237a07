// The matrix product of the CPU kernels. Only cpu_kernels.cc includes this file, once for each kind
// of CPU; kRows comes from there.
//
// The right matrix is copied in panels of 32 columns. The left one is read where it lies, a number
// at a time, and multiplied with whole vectors. A tile of the result stays in registers until its
// sum is complete. Each number is summed in one order, however the work is divided between threads.
#pragma once

namespace example::gpt {
namespace {

// Sixteen numbers: one register of AVX-512, two of AVX2, four of SSE2.
typedef float Vector __attribute__((vector_size(64), may_alias));
typedef float Unaligned __attribute__((vector_size(64), aligned(4), may_alias));

constexpr long kLanes = 16;
constexpr long kPanel = kVectors * kLanes;  // columns of a tile
constexpr long kDepth = 256;                // of the sum: then a panel fits into the L1 cache

// A part of the product that one thread computes.
struct Part {
    long row = 0, rows = 0, column = 0, columns = 0;
};

#ifdef __AVX512F__
typedef int Lanes __attribute__((vector_size(64)));

// Of two rows that are kStep apart in a square of kLanes × kLanes: swaps the upper one's right part
// of each 2 kStep numbers with the lower one's left part.
template <int kStep>
inline void swap_parts(Vector* rows) {
    Lanes upper = {}, lower = {};
    for (int lane = 0; lane < kLanes; ++lane) {
        const bool right = lane & kStep;
        upper[lane] = right ? kLanes + lane - kStep : lane;
        lower[lane] = right ? kLanes + lane : lane + kStep;
    }
#pragma GCC unroll 16
    for (int row = 0; row < kLanes; ++row) {
        if (row & kStep) continue;
        const Vector a = rows[row], b = rows[row + kStep];
        rows[row] = __builtin_shuffle(a, b, upper);
        rows[row + kStep] = __builtin_shuffle(a, b, lower);
    }
}

// Copies a square of kLanes × kLanes numbers so that its rows become columns.
inline void transpose_square(const float* from, long row, float* to) {
    Vector rows[kLanes];
    for (int i = 0; i < kLanes; ++i)
        rows[i] = reinterpret_cast<const Unaligned*>(from + i * row)[0];
    swap_parts<8>(rows);
    swap_parts<4>(rows);
    swap_parts<2>(rows);
    swap_parts<1>(rows);
    for (int i = 0; i < kLanes; ++i) *reinterpret_cast<Vector*>(to + i * kPanel) = rows[i];
}
#endif

// Copies a matrix of columns × depth so that its rows become columns of a panel.
void copy_transposed(const float* from, long row, long columns, long depth, float* to) {
    long done = 0;  // columns
#ifdef __AVX512F__
    const long squares = depth / kLanes * kLanes;
    for (; done + kLanes <= columns; done += kLanes) {
        for (long k = 0; k < squares; k += kLanes)
            transpose_square(from + done * row + k, row, to + k * kPanel + done);
        for (long j = done; j < done + kLanes; ++j)
            for (long k = squares; k < depth; ++k) to[k * kPanel + j] = from[j * row + k];
    }
#endif
    for (long j = done; j < columns; ++j)
        for (long k = 0; k < depth; ++k) to[k * kPanel + j] = from[j * row + k];
}

// Copies columns of `right` into panels: for each row of it kPanel numbers. What lies outside is 0.
void copy_panel(const Matrix& right, long k0, long depth, long column, long columns, float* to) {
    if (columns < kPanel)
        for (long i = 0; i < depth * kPanel; ++i) to[i] = 0;
    const float* from = right.data + k0 * right.row + column * right.column;
    if (right.column == 1 && columns == kPanel) {
        for (long k = 0; k < depth; ++k)
            for (int v = 0; v < kVectors; ++v)
                *reinterpret_cast<Vector*>(to + k * kPanel + v * kLanes) =
                    reinterpret_cast<const Unaligned*>(from + k * right.row + v * kLanes)[0];
    } else if (right.column == 1) {
        for (long k = 0; k < depth; ++k)
            for (long j = 0; j < columns; ++j) to[k * kPanel + j] = from[k * right.row + j];
    } else {
        copy_transposed(from, right.column, columns, depth, to);
    }
}

// What happens to a finished tile.
struct Target {
    float* data;
    long row;           // numbers from one row to the next
    const float* bias;  // null: none
    float scale;
    bool add;  // to what is there
};

// `Across`: the numbers of one column of `left` are neighbours, else those of one row.
template <int Rows, bool Across>
inline void tile(const float* left, long stride, const float* panel, long depth,
                 const Target& target, long columns) {
    Vector sum[Rows][kVectors] = {};
    const Vector* right = reinterpret_cast<const Vector*>(panel);
    for (long k = 0; k < depth; ++k) {
        // The rows of the next tile: each is too short for the CPU to foresee it.
        if (!Across && k % kLanes == 0)
            for (int r = 0; r < Rows; ++r) __builtin_prefetch(left + (Rows + r) * stride + k);
#pragma GCC unroll 16
        for (int r = 0; r < Rows; ++r) {
            const float value = Across ? left[k * stride + r] : left[r * stride + k];
#pragma GCC unroll 4
            for (int v = 0; v < kVectors; ++v) sum[r][v] += value * right[k * kVectors + v];
        }
    }
    // With fixed numbers the sums need no place in memory, also before the loop.
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
        float* to = target.data + r * target.row;
        if (columns == kPanel) {
#pragma GCC unroll 4
            for (int v = 0; v < kVectors; ++v) {
                Vector value = sum[r][v] * target.scale;
                if (target.bias)
                    value += reinterpret_cast<const Unaligned*>(target.bias + v * kLanes)[0];
                Unaligned* at = reinterpret_cast<Unaligned*>(to + v * kLanes);
                *at = target.add ? *at + value : value;
            }
        } else {
            alignas(64) float values[kPanel];
#pragma GCC unroll 4
            for (int v = 0; v < kVectors; ++v)
                *reinterpret_cast<Vector*>(values + v * kLanes) = sum[r][v];
            for (long j = 0; j < columns; ++j) {
                const float value =
                    values[j] * target.scale + (target.bias ? target.bias[j] : 0.0f);
                to[j] = target.add ? to[j] + value : value;
            }
        }
    }
}

template <bool Across>
void rows_of_panel(const Product& p, const Part& part, long k0, long depth, long columns,
                   const float* panel, Target target) {
    // From one row of `left` to the next; and the stride that tile() needs.
    const long next = Across ? 1 : p.left.row;
    const long stride = Across ? p.left.column : p.left.row;
    const float* left = p.left.data + k0 * (Across ? stride : 1);
    float* const data = target.data;
    long row = part.row;
    const long end = part.row + part.rows;
    auto go = [&](auto rows) {
        constexpr int kHere = decltype(rows)::value;
        for (; row + kHere <= end; row += kHere) {
            target.data = data + row * target.row;
            tile<kHere, Across>(left + row * next, stride, panel, depth, target, columns);
        }
    };
    go(Number<kRows>());
    if constexpr (kRows > 4) go(Number<4>());
    go(Number<1>());
}

// A panel is used for all rows as soon as it is copied, so it stays in the L1 cache.
void multiply_part(const Product& p, const Part& part) {
    alignas(64) float panel[kDepth * kPanel];
    const long end = part.column + part.columns;
    for (long k0 = 0; k0 < p.depth; k0 += kDepth) {
        const long depth = least(kDepth, p.depth - k0);
        for (long column = part.column; column < end; column += kPanel) {
            const long columns = least(kPanel, end - column);
            copy_panel(p.right, k0, depth, column, columns, panel);
            const float* bias = k0 == 0 && p.bias ? p.bias + column : nullptr;
            const Target target{p.out + column, p.out_row, bias, p.scale, p.add || k0 > 0};
            if (p.left.column == 1)
                rows_of_panel<false>(p, part, k0, depth, columns, panel, target);
            else
                rows_of_panel<true>(p, part, k0, depth, columns, panel, target);
        }
    }
}

// In the calling thread.
void multiply_all(const Product& p) { multiply_part(p, {0, p.rows, 0, p.columns}); }

// By all threads: each takes rows of the result, or columns where there are more of them.
void multiply(const Product& p) {
#pragma omp parallel
    {
        const long thread = omp_get_thread_num(), threads = omp_get_num_threads();
        if (p.rows >= p.columns) {
            const Range rows = part_of(p.rows, kRows, thread, threads);
            multiply_part(p, {rows.begin, rows.end - rows.begin, 0, p.columns});
        } else {
            const Range columns = part_of(p.columns, kPanel, thread, threads);
            multiply_part(p, {0, p.rows, columns.begin, columns.end - columns.begin});
        }
    }
}

}  // namespace
}  // namespace example::gpt
