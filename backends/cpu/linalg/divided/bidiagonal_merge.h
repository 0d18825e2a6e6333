#ifndef TENSORD_BACKENDS_CPU_LINALG_DIVIDED_BIDIAGONAL_MERGE_H_
#define TENSORD_BACKENDS_CPU_LINALG_DIVIDED_BIDIAGONAL_MERGE_H_

#include <atomic>
#include <cstdint>

#include "backends/cpu/linalg/divided/merge_columns.h"
#include "backends/cpu/linalg/divided/split_columns.h"
#include "backends/cpu/machine/thread_pool.h"

namespace tensord::cpu {

// The numbers and the memory of one call of BidiagonalVectors, in which merges of other rows have other parts. Borrows
// all of it.
template <typename R>
struct BidiagonalWork {
  struct Matrix {
    R* numbers;
    int64_t leading;  // elements between columns
  };

  int64_t n;
  R *d, *e;     // values of the parts, and of the rows between them the two elements
  Matrix u, v;  // whose columns are vectors
  ThreadPool* pool;
  int32_t *order, *group, *secular;  // of n elements, as all up to here
  int8_t* types;                     // ColumnType
  R *line, *poles, *weights, *deflated;
  R *packed_u, *packed_v;  // n x n
  R *factor_u, *factor_v;  // n x FactorColumns(n)
  char* product;           // SplitColumns::ProductBytes, of large merges
  int64_t product_bytes;
  std::atomic<int64_t> failed{0};
};

// Rows [begin, middle) and (middle, end) of the matrix, parts that become one with row `middle` between them. There is
// a column more than rows but for the last part of a block.
struct PartsOfRows {
  int64_t begin, middle, end;
  bool has_more_columns;
};

// Joins the singular vectors of two parts into those of the whole. Between them stands an inner matrix: a first row of
// weights and a diagonal of poles. Columns without weight, or with the pole of another column, are vectors already
// (deflation). The rest are multiplied with the vectors of the inner matrix. Its first pole is 0 and belongs to column
// `top_`: in U the row taken out, in V the direction that no row of the parts reaches.
template <typename R>
class BidiagonalMerge {
 public:
  BidiagonalMerge(BidiagonalWork<R>* work, const PartsOfRows& parts);

  void Run();

 private:
  R* u(int64_t j) const { return u_.numbers + j * u_.leading; }
  R* v(int64_t j) const { return v_.numbers + j * v_.leading; }
  bool has_more_columns() const { return v_rows_ > n_; }
  void Scale();
  void Prepare(R above, R below);
  void Deflate();
  bool TakeTogether(int64_t former, int64_t column);
  void StartFirst();
  void Group();
  void PackFirst();
  bool Pack();
  bool FindRoots();
  bool RefineWeights();
  void MakeFactors(int64_t first, int64_t begin, int64_t end) const;
  void Multiply(const SplitColumns<R>& columns, const typename SplitColumns<R>::Product& product) const;
  bool MultiplyAll();
  bool PutBackDeflated();

  using Matrix = typename BidiagonalWork<R>::Matrix;

  BidiagonalWork<R>& work_;
  const int64_t n_, top_, v_rows_;
  const bool is_shared_;
  R* const d_;
  const Matrix u_, v_;
  MergeColumns<R> merged_;  // the first is kept first
  R* const z_;
  R *const packed_u_, *const packed_v_, *const factor_u_, *const factor_v_;
  const int64_t row_;
  int exponent_ = 0;
  R tolerance_ = 0, rho_ = 0;
  R first_ = 0, last_ = 0;     // weights of V's columns `top_` and, where there is one more, n_
  R cosine_ = 1, sine_ = 0;    // of the rotation that takes the second one's to the first
  int64_t first_place_ = 0;    // of the first one among V's packed columns
  SplitColumns<R> u_columns_;  // without the first
  SplitColumns<R> v_columns_;
};

extern template class BidiagonalMerge<float>;
extern template class BidiagonalMerge<double>;

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LINALG_DIVIDED_BIDIAGONAL_MERGE_H_
