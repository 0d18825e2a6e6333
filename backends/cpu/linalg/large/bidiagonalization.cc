#include "backends/cpu/linalg/large/bidiagonalization.h"

#include <algorithm>
#include <utility>

#include "backends/cpu/linalg/lapack/number_parts.h"
#include "backends/cpu/linalg/lapack/steps.h"
#include "backends/cpu/matmul/blas_products.h"
#include "engine/base/stop_signal.h"
#include "engine/tensor/dtype.h"

namespace tensord::cpu {
namespace {

template <typename T>
constexpr int64_t kBidiagonalPanelColumns = 32 / kNumberParts<T>;
constexpr int64_t kBidiagonalParts = 4;  // of a product with a vector, as tasks
// Elements of a matrix whose product with a vector is shared.
template <typename T>
constexpr int64_t kSharedBidiagonal = (int64_t{1} << 14) / kNumberParts<T> / kNumberParts<T>;

// y += A·x for m×k A.
template <typename T>
void AddProduct(int64_t m, int64_t k, const T* a, MatrixStrides strides, const T* x, int64_t x_step, T* y) {
  if (m == 0 || k == 0) return;
  BlasMatrixVector(kDTypeOf<T>, m, k, strides, /*conjugates=*/false, /*accumulates=*/true, a, x, x_step, y, 1);
}

// The part of the matrix that is left to reduce, with dense columns or dense rows, which begins `offset` elements
// before it.
template <typename T>
struct Rest {
  int64_t m, k;
  const T* a;
  int64_t offset;
  MatrixStrides strides;
};

// y = A·x. The parts that are tasks lie apart in memory: columns or rows, whichever are dense.
template <typename T>
void Product(const ReductionLoops<T>& loops, const Rest<T>& rest, const T* x, T* y, T* parts, ThreadPool& pool) {
  const bool rows_are_dense = rest.strides.row_stride != 1;
  const int64_t m = rest.m, leading = rows_are_dense ? rest.strides.row_stride : rest.strides.column_stride;
  const int64_t lines = rows_are_dense ? m : rest.k;
  const int64_t block = m * rest.k < kSharedBidiagonal<T> ? lines : (lines + kBidiagonalParts - 1) / kBidiagonalParts;
  const auto part = [&](int64_t begin, int64_t end) {
    const T* const a = rest.a + begin * leading;
    const int64_t offset = rest.offset + begin * leading;
    if (rows_are_dense) return loops.multiply_transposed(rest.k, end - begin, a, offset, leading, x, y + begin);
    T* const into = begin == 0 ? y : parts + begin / block * m;
    std::fill_n(into, m, T(0));
    loops.add_product(m, end - begin, a, offset, leading, x + begin, into);
  };
  if (block == lines) return part(0, lines);
  pool.ParallelForBlocks(lines, block, part);
  if (rows_are_dense) return;
  for (int64_t begin = block; begin < lines; begin += block) {
    const T* const more = parts + begin / block * m;
    for (int64_t i = 0; i < m; ++i) y[i] += more[i];
  }
}

// Returns the conjugates, written to `into`; real numbers are returned as they are.
template <typename T>
const T* Conjugates(const T* x, int64_t count, T* into) {
  if (!lapack::kIsComplex<T>) return x;
  std::transform(x, x + count, into, Conjugate<T>);
  return into;
}

}  // namespace

// The work of one panel. V and U are the columns of the reflectors from the left and from the right as they are stored;
// the matrix to come is A + V·(-Y)^T + (-X)·U^T. The products' columns alternate: from_left has v, -x, v, -x, …,
// from_right -y, u, -y, u, …. Nothing in these products is conjugated: complex reflectors of rows are stored as
// conjugates, 1 - tau·conj(u)·u^T, if m >= n; if the matrix is taken as its transpose, the reflectors of its columns
// are.
template <typename T>
struct Bidiagonalization<T>::Work {
  const T* matrix;
  T* from_left;
  T* from_right;
  int64_t rows;  // of from_left
  int64_t columns;
  T* line;
  T* conjugated;
  T* parts;
  T* projected;
  R* diagonal;
  R* beside;
  T* left_tau;
  T* right_tau;
};

template <typename T>
typename Bidiagonalization<T>::Panel Bidiagonalization<T>::MakePanel(int64_t first) const {
  constexpr int64_t kReals = kNumberParts<T>;
  Panel panel{.first = first, .columns = std::min(kBidiagonalPanelColumns<T>, columns_ - first)};
  const int64_t left = rows_ - first, right = columns_ - first;  // lengths of what is from there
  const int64_t rows = left - panel.columns, columns = right - panel.columns;
  if (columns == 0) return panel;
  // Complex factors are copied first, without the panel's own rows and columns.
  const int64_t a_length = is_upper_ ? left : right, b_length = is_upper_ ? right : left;
  const int64_t m = is_upper_ ? rows : columns, n = is_upper_ ? columns : rows;
  panel.update = PlainProduct(kDTypeOf<R>, {.m = kReals * m,
                                            .n = n,
                                            .k = 2 * panel.columns * kReals,
                                            .a = {.row_stride = 1, .column_stride = kReals == 1 ? a_length : 2 * m},
                                            .b = {.row_stride = kReals == 1 ? b_length : n, .column_stride = 1},
                                            .c_column_stride = kReals * (is_upper_ ? rows_ : columns_)});
  return panel;
}

template <typename T>
Bidiagonalization<T>::Bidiagonalization(int64_t m, int64_t n)
    : loops_(GetReductionLoops<T>()),
      is_upper_(m >= n),
      rows_(std::max(m, n)),
      columns_(std::min(m, n)),
      strides_(is_upper_ ? MatrixStrides{.row_stride = 1, .column_stride = m}
                         : MatrixStrides{.row_stride = m, .column_stride = 1}) {
  int64_t product_bytes = 0;
  for (int64_t first = 0; first < columns_; first += kBidiagonalPanelColumns<T>) {
    panels_.push_back(MakePanel(first));
    product_bytes = std::max(product_bytes, panels_.back().update.scratch_bytes());
  }
  from_left_ = layout_.Add<T>(rows_ * 2 * kBidiagonalPanelColumns<T>);
  from_right_ = layout_.Add<T>(columns_ * 2 * kBidiagonalPanelColumns<T>);
  line_ = layout_.Add<T>(rows_);
  parts_ = layout_.Add<T>(kBidiagonalParts * rows_);
  projected_ = layout_.Add<T>(2 * kBidiagonalPanelColumns<T>);
  products_ = layout_.Add<char>(product_bytes);
  if (!lapack::kIsComplex<T>) return;
  conjugated_ = layout_.Add<T>(rows_);
  with_i_ = layout_.Add<T>(m * 4 * kBidiagonalPanelColumns<T>);
  apart_ = layout_.Add<T>(n * 2 * kBidiagonalPanelColumns<T>);
}

template <typename T>
void Bidiagonalization<T>::ReduceColumn(const Panel& panel, int64_t i, T* a, const Work& work, ThreadPool& pool) const {
  const int64_t rows = work.rows - i, columns = work.columns - i - 1, known = 2 * i;
  const MatrixStrides left{.row_stride = 1, .column_stride = work.rows};
  const MatrixStrides left_transposed{.row_stride = work.rows, .column_stride = 1};
  const MatrixStrides right{.row_stride = 1, .column_stride = work.columns};
  T* const corner = a + i * (strides_.row_stride + strides_.column_stride);
  // Reflectors of the given matrix's rows are made of conjugates.
  const auto sort = [&](T x) { return is_upper_ ? x : Conjugate(x); };

  for (int64_t j = 0; j < rows; ++j) work.line[j] = corner[j * strides_.row_stride];
  AddProduct(rows, known, work.from_left + i, left, work.from_right + i, work.columns, work.line);
  T& tau = work.left_tau[panel.first + i];
  std::transform(work.line, work.line + rows, work.line, sort);
  lapack::Larfg(rows, work.line, work.line + 1, &tau);
  std::transform(work.line, work.line + rows, work.line, sort);
  for (int64_t j = 0; j < rows; ++j) corner[j * strides_.row_stride] = work.line[j];
  work.diagonal[panel.first + i] = std::real(work.line[0]);

  T* const v = work.from_left + known * work.rows;
  std::fill_n(v, i, T(0));
  v[i] = 1;
  std::copy_n(work.line + 1, rows - 1, v + i + 1);
  T* const y = work.from_right + known * work.columns + i + 1;
  if (columns == 0) return;
  const T* const conjugates = Conjugates(v + i, rows, work.conjugated);
  Product(loops_,
          {.m = columns,
           .k = rows,
           .a = corner + strides_.column_stride,
           .offset = corner + strides_.column_stride - work.matrix,
           .strides = {.row_stride = strides_.column_stride, .column_stride = strides_.row_stride}},
          conjugates, y, work.parts, pool);
  std::fill_n(work.projected, known, T(0));
  AddProduct(known, rows, work.from_left + i, left_transposed, conjugates, 1, work.projected);
  AddProduct(columns, known, work.from_right + i + 1, right, work.projected, 1, y);
  const T scale = -(is_upper_ ? Conjugate(tau) : tau);
  for (int64_t j = 0; j < columns; ++j) y[j] = Multiply(y[j], scale);
}

template <typename T>
void Bidiagonalization<T>::ReduceRow(const Panel& panel, int64_t i, T* a, const Work& work, ThreadPool& pool) const {
  const int64_t rows = work.rows - i - 1, columns = work.columns - i - 1, known = 2 * i + 1;
  const MatrixStrides left{.row_stride = 1, .column_stride = work.rows};
  const MatrixStrides right{.row_stride = 1, .column_stride = work.columns};
  const MatrixStrides right_transposed{.row_stride = work.columns, .column_stride = 1};
  T* const first = a + i * strides_.row_stride + (i + 1) * strides_.column_stride;
  const auto sort = [&](T x) { return is_upper_ ? Conjugate(x) : x; };

  for (int64_t j = 0; j < columns; ++j) work.line[j] = first[j * strides_.column_stride];
  AddProduct(columns, known, work.from_right + i + 1, right, work.from_left + i, work.rows, work.line);
  T& tau = work.right_tau[panel.first + i];
  std::transform(work.line, work.line + columns, work.line, sort);
  lapack::Larfg(columns, work.line, work.line + 1, &tau);
  std::transform(work.line, work.line + columns, work.line, sort);
  for (int64_t j = 0; j < columns; ++j) first[j * strides_.column_stride] = work.line[j];
  work.beside[panel.first + i] = std::real(work.line[0]);

  T* const u = work.from_right + known * work.columns;
  std::fill_n(u, i + 1, T(0));
  u[i + 1] = 1;
  std::copy_n(work.line + 1, columns - 1, u + i + 2);
  T* const x = work.from_left + known * work.rows + i + 1;
  const T* const conjugates = Conjugates(u + i + 1, columns, work.conjugated);
  Product(loops_,
          {.m = rows,
           .k = columns,
           .a = first + strides_.row_stride,
           .offset = first + strides_.row_stride - work.matrix,
           .strides = strides_},
          conjugates, x, work.parts, pool);
  std::fill_n(work.projected, known, T(0));
  AddProduct(known, columns, work.from_right + i + 1, right_transposed, conjugates, 1, work.projected);
  AddProduct(rows, known, work.from_left + i + 1, left, work.projected, 1, x);
  const T scale = -(is_upper_ ? tau : Conjugate(tau));
  for (int64_t j = 0; j < rows; ++j) x[j] = Multiply(x[j], scale);
}

template <typename T>
void Bidiagonalization<T>::Update(const Panel& panel, T* a, const Work& work, char* scratch, ThreadPool& pool) const {
  const T *const left = work.from_left + panel.columns, *const right = work.from_right + panel.columns;
  const T *lhs = is_upper_ ? left : right, *rhs = is_upper_ ? right : left;
  if constexpr (lapack::kIsComplex<T>) {
    const int64_t lhs_step = is_upper_ ? work.rows : work.columns, rhs_step = is_upper_ ? work.columns : work.rows;
    const int64_t m = lhs_step - panel.columns, n = rhs_step - panel.columns;
    T* const with_i = reinterpret_cast<T*>(scratch + with_i_);
    R* const apart = reinterpret_cast<R*>(scratch + apart_);
    pool.ParallelForBlocks(2 * panel.columns, 8, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        std::copy_n(lhs + k * lhs_step, m, with_i + 2 * k * m);
        AddColumnTimesI(with_i + 2 * k * m, m);
        for (int64_t j = 0; j < n; ++j) {
          apart[2 * k * n + j] = rhs[k * rhs_step + j].real();
          apart[(2 * k + 1) * n + j] = rhs[k * rhs_step + j].imag();
        }
      }
    });
    panel.update.Run(with_i, apart, a, scratch + products_, /*accumulates=*/true, pool);
  } else {
    panel.update.Run(lhs, rhs, a, scratch + products_, /*accumulates=*/true, pool);
  }
}

template <typename T>
void Bidiagonalization<T>::Run(T* a, R* diagonal, R* beside, T* column_tau, T* row_tau, char* scratch,
                               ThreadPool& pool) const {
  const auto at = [&](int64_t place) { return reinterpret_cast<T*>(scratch + place); };
  Work work{.matrix = a,
            .from_left = at(from_left_),
            .from_right = at(from_right_),
            .rows = 0,
            .columns = 0,
            .line = at(line_),
            .conjugated = at(conjugated_),
            .parts = at(parts_),
            .projected = at(projected_),
            .diagonal = diagonal,
            .beside = beside,
            .left_tau = is_upper_ ? column_tau : row_tau,
            .right_tau = is_upper_ ? row_tau : column_tau};
  for (const Panel& panel : panels_) {
    if (StopRequested()) return;
    work.rows = rows_ - panel.first;
    work.columns = columns_ - panel.first;
    const int64_t step = strides_.row_stride + strides_.column_stride;
    T* const corner = a + panel.first * step;
    for (int64_t i = 0; i < panel.columns; ++i) {
      ReduceColumn(panel, i, corner, work, pool);
      if (i + 1 < work.columns) ReduceRow(panel, i, corner, work, pool);
    }
    if (panel.columns < work.columns) Update(panel, corner + panel.columns * step, work, scratch, pool);
  }
  work.right_tau[columns_ - 1] = 0;  // no reflector from the right is left for the last column
}

template class Bidiagonalization<float>;
template class Bidiagonalization<double>;
template class Bidiagonalization<std::complex<float>>;
template class Bidiagonalization<std::complex<double>>;

}  // namespace tensord::cpu
