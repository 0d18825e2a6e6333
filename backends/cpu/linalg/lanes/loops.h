#ifndef TENSORD_BACKENDS_CPU_LINALG_LANES_LOOPS_H_
#define TENSORD_BACKENDS_CPU_LINALG_LANES_LOOPS_H_

#include <cstdint>

#include "engine/tensor/dtype.h"

namespace tensord::cpu {

// The most rows, columns and right sides.
inline constexpr int64_t kMaxSmallMatrixSize = 32;

enum class SmallMatrixOp { kCholesky, kLu, kQr, kSvd, kEigh, kSolve, kTriangularSolve };

// Matrices of one size, column-major and one after the other. Operands and results as tensord.linalg.v1 has them;
// only_values, of kSvd and kEigh, leaves the places of the vectors null.
struct SmallMatrixBatch {
  int64_t rows = 0;  // of the first operand
  int64_t columns = 0;
  int64_t right_sides = 0;   // kSolve and kTriangularSolve: of the second operand, columns, or rows where not left_side
  bool full = false;         // kQr, kSvd
  bool only_values = false;  // kSvd, kEigh
  // kTriangularSolve
  bool left_side = true;
  bool lower = false;
  bool unit_diagonal = false;
  bool transposed = false;
  bool conjugated = false;

  int64_t count = 0;
  const void* operands[2] = {};
  void* results[4] = {};
};

// The first matrix of a batch that cannot be done, with LAPACK's info for it: the column of the first diagonal entry
// that is zero (kSolve) or not positive (kCholesky), or 1 if sweeps do not converge (kSvd, kEigh). All other matrices
// have their results.
struct SmallMatrixFailure {
  int64_t matrix = -1;  // none
  int64_t info = 0;
};

// The loops across the lanes of vectors for one op and dtype. The bits of a matrix's results do not depend on its place
// in the batch, on its neighbours, or on the cut of a batch into calls.
struct SmallMatrixLoops {
  SmallMatrixFailure (*run)(const SmallMatrixBatch& batch, void* scratch) = nullptr;  // null: not on this machine
  int64_t lanes = 0;                                                                  // matrices that are done at once
  int64_t entry_bytes = 0;  // of scratch for each of SmallMatrixScratchEntries
};

// F32, F64, C64, C128; for the machine's best instruction set.
SmallMatrixLoops GetSmallMatrixLoops(SmallMatrixOp op, DType dtype);

int64_t SmallMatrixScratchEntries(SmallMatrixOp op, const SmallMatrixBatch& batch);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LINALG_LANES_LOOPS_H_
