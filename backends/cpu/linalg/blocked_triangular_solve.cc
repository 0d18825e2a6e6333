#include "backends/cpu/linalg/blocked_triangular_solve.h"

#include <algorithm>
#include <tuple>

#include "engine/base/rounding.h"
#include "engine/base/stop_signal.h"

namespace tensord::cpu {
namespace {

// Rows of a diagonal block, and sides that it is solved for at a time, on the stack: 2 x 32 KiB of F64.
constexpr int64_t kDiagonalRows = 64;
constexpr int64_t kWidthMultiple = 16;  // of the loops
// Sides that are turned together if they lie apart: lines that fit the nearest cache even if all want one place of it.
constexpr int64_t kSidesTogether = 8;
constexpr int64_t kLeastSystemRows = 32;  // smaller systems, and fewer sides, are one call of BLAS

// Rows of some sides, where they lie.
template <typename T>
struct Sides {
  int64_t rows;
  int64_t sides;
  T* b;
  int64_t row_step;
  int64_t side_step;
};

// Calls f(place, row, side) for each number, of a few sides after the other where these lie apart: rows then lie side
// by side.
template <typename T, typename F>
void Transfer(const Sides<T>& x, const F& f) {
  if (x.side_step == 1) {
    for (int64_t i = 0; i < x.rows; ++i) {
      T* const row = x.b + i * x.row_step;
      for (int64_t s = 0; s < x.sides; ++s) f(row + s, i, s);
    }
    return;
  }
  for (int64_t begin = 0; begin < x.sides; begin += kSidesTogether) {
    const int64_t end = std::min(x.sides, begin + kSidesTogether);
    for (int64_t i = 0; i < x.rows; ++i) {
      T* const row = x.b + i * x.row_step;
      for (int64_t s = begin; s < end; ++s) f(row + s * x.side_step, i, s);
    }
  }
}

}  // namespace

// The memory of one run.
template <typename T>
struct BlockedTriangularSolve<T>::Call {
  const T* a;
  int64_t lda;
  int64_t sides;
  T* b;
  int64_t ldb;
};

template <typename T>
std::optional<BlockedTriangularSolve<T>> BlockedTriangularSolve<T>::Plan(const lapack::Triangle& triangle, int64_t n,
                                                                         int64_t sides) {
  if (n < kLeastSystemRows || sides < kWidthMultiple) return std::nullopt;
  return BlockedTriangularSolve(triangle, n);
}

template <typename T>
BlockedTriangularSolve<T>::BlockedTriangularSolve(const lapack::Triangle& triangle, int64_t n)
    : triangle_(triangle),
      n_(n),
      is_transposed_((triangle.transpose != CblasNoTrans) == triangle.left),
      is_lower_(triangle.lower != is_transposed_),
      loops_(GetFactorizationLoops<T>()) {}

template <typename T>
void BlockedTriangularSolve<T>::Run(const T* a, int64_t lda, int64_t sides, T* b, int64_t ldb) const {
  Solve({.a = a, .lda = lda, .sides = sides, .b = b, .ldb = ldb}, {0, n_});
}

template <typename T>
void BlockedTriangularSolve<T>::Solve(const Call& call, Range rows) const {
  if (StopRequested()) return;
  const int64_t count = rows.second - rows.first;
  if (count <= kDiagonalRows) return SolveDiagonal(call, rows);
  const int64_t split = rows.first + RoundUp(count / 2, kDiagonalRows);
  const Range above(rows.first, split), below(split, rows.second);
  const auto& [first, second] = is_lower_ ? std::tie(above, below) : std::tie(below, above);
  Solve(call, first);
  Subtract(call, first, second);
  Solve(call, second);
}

template <typename T>
void BlockedTriangularSolve<T>::Subtract(const Call& call, Range known, Range from) const {
  const auto& [k, k_end] = known;
  const auto& [row, row_end] = from;
  const T* const block = is_transposed_ ? call.a + row * call.lda + k : call.a + k * call.lda + row;
  if (triangle_.left) {
    lapack::SubtractProduct({.m = row_end - row,
                             .n = call.sides,
                             .k = k_end - k,
                             .transpose_a = is_transposed_ ? CblasTrans : CblasNoTrans},
                            block, call.lda, call.b + k, call.ldb, call.b + row, call.ldb);
  } else {
    lapack::SubtractProduct({.m = call.sides,
                             .n = row_end - row,
                             .k = k_end - k,
                             .transpose_b = is_transposed_ ? CblasNoTrans : CblasTrans},
                            call.b + k * call.ldb, call.ldb, block, call.lda, call.b + row * call.ldb, call.ldb);
  }
}

// Rows and columns stand in the order in which they are solved for, so the factor is lower triangular. What lies above
// is not read, nor is it set.
template <typename T>
void BlockedTriangularSolve<T>::PackDiagonal(const Call& call, Range rows, T* factor, T* inverses) const {
  const int64_t count = rows.second - rows.first;
  const int64_t row_step = (is_transposed_ ? call.lda : 1) * (is_lower_ ? 1 : -1);
  const int64_t column_step = (is_transposed_ ? 1 : call.lda) * (is_lower_ ? 1 : -1);
  const T* const first = call.a + RowOf(rows, 0) * (call.lda + 1);
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t j = 0; j < i; ++j) factor[i * count + j] = first[i * row_step + j * column_step];
    if (!triangle_.unit_diagonal) inverses[i] = T(1) / first[i * (row_step + column_step)];
  }
}

template <typename T>
void BlockedTriangularSolve<T>::SolveDiagonal(const Call& call, Range rows) const {
  alignas(64) T factor[kDiagonalRows * kDiagonalRows];
  alignas(64) T part[kDiagonalRows * kDiagonalRows];
  T inverses[kDiagonalRows];
  PackDiagonal(call, rows, factor, inverses);
  const int64_t count = rows.second - rows.first;
  const int64_t row_step = triangle_.left ? 1 : call.ldb, side_step = triangle_.left ? call.ldb : 1;
  const int64_t first = RowOf(rows, 0) * row_step, next = is_lower_ ? row_step : -row_step;
  for (int64_t side = 0; side < call.sides; side += kDiagonalRows) {
    const int64_t sides = std::min(kDiagonalRows, call.sides - side), width = RoundUp(sides, kWidthMultiple);
    T* const b = call.b + first + side * side_step;
    if (width > sides) std::fill_n(part, count * width, T(0));
    Transfer<T>({count, sides, b, next, side_step},
                [&](T* in_b, int64_t i, int64_t s) { part[i * width + s] = *in_b; });
    loops_.solve(count, factor, triangle_.unit_diagonal ? nullptr : inverses, width, part);
    Transfer<T>({count, sides, b, next, side_step},
                [&](T* in_b, int64_t i, int64_t s) { *in_b = part[i * width + s]; });
  }
}

template class BlockedTriangularSolve<float>;
template class BlockedTriangularSolve<double>;

}  // namespace tensord::cpu
