#ifndef TENSORD_BACKENDS_CPU_CONTRACTION_SEMIRING_STRIP_LOOPS_H_
#define TENSORD_BACKENDS_CPU_CONTRACTION_SEMIRING_STRIP_LOOPS_H_

#include <cstdint>

#include "engine/ir/graph.h"
#include "engine/tensor/dtype.h"

namespace tensord::cpu {

// A product of matrices that are read as they lie, with strides in elements:
//   c[row, column] = sum over the terms of a[row, term] · b[term, column].
struct SemiringStrip {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t terms = 0;
  int64_t a_row = 1;
  int64_t a_term = 1;
  int64_t b_term = 1;
  int64_t b_column = 1;
  int64_t c_row = 1;
  int64_t c_column = 1;
};

// The loops of an algebra over matrices as they lie, for the machine's best instruction set. They take any elements:
// what may make NaN is noticed as it goes by, and those rows are done again with care.
struct StripLoops {
  int64_t lanes = 0;  // elements of a vector
  int64_t rows = 0;   // of the largest tile along rows
  // Has a vector's lanes along the rows: a_row is 1, and there are at least so many rows.
  void (*along_rows)(const SemiringStrip& strip) = nullptr;
  // Has them along the terms: a_term and b_term are 1, and there are at least so many terms.
  void (*along_terms)(const SemiringStrip& strip) = nullptr;
};

// Returns the loops over elements of the dtype: BOOL, I32, I64, F32 or F64.
StripLoops GetStripLoops(Algebra algebra, DType dtype);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_CONTRACTION_SEMIRING_STRIP_LOOPS_H_
