#include "backends/cpu/linalg/lanes/loops.h"

#include <algorithm>

#include "backends/cpu/linalg/lanes/loop_tables.h"

namespace tensord::cpu {

SmallMatrixLoops GetSmallMatrixLoops(SmallMatrixOp op, DType dtype) {
  switch (op) {
    case SmallMatrixOp::kQr:
      return GetQrLoops(dtype);
    case SmallMatrixOp::kSvd:
      return GetSvdLoops(dtype);
    case SmallMatrixOp::kEigh:
      return GetEighLoops(dtype);
    default:
      return GetTriangularLoops(op, dtype);
  }
}

int64_t SmallMatrixScratchEntries(SmallMatrixOp op, const SmallMatrixBatch& batch) {
  const int64_t m = batch.rows, n = batch.columns, r = batch.right_sides;
  const int64_t k = std::min(m, n), tall = std::max(m, n);
  switch (op) {
    case SmallMatrixOp::kCholesky:
      return m * n;
    case SmallMatrixOp::kLu:
      return m * n + m + 1 + tall * k;  // A, rows, parity, a result
    case SmallMatrixOp::kSolve:
    case SmallMatrixOp::kTriangularSolve:
      return n * n + n * r;
    case SmallMatrixOp::kQr:
      return m * n + k + (batch.full ? m * std::max(m, n) : tall * k);  // A, factors, a result
    case SmallMatrixOp::kSvd: {
      const int64_t side = batch.full ? tall : k;
      // A^H, factors, pivots, values; the k·k rotated numbers; then the rotating matrix, its completion, results.
      const int64_t values = 2 * tall * k + 3 * k + k * k;
      return batch.only_values ? values : values + 3 * k * k + k + 2 * tall * side;
    }
    case SmallMatrixOp::kEigh:
      return 2 * n * n + n;
  }
  return 0;
}

}  // namespace tensord::cpu
