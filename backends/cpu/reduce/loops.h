#ifndef TENSORD_BACKENDS_CPU_REDUCE_LOOPS_H_
#define TENSORD_BACKENDS_CPU_REDUCE_LOOPS_H_

#include <cstdint>

#include "engine/tensor/dtype.h"

namespace tensord::cpu {

enum class ReduceOp { kSum, kProduct, kMax, kMin, kAnd, kOr };

// Sums of so many terms have sixteen in sequence, then a tree: longer runs go through a cascade.
inline constexpr int64_t kMaxRunBytes = int64_t{32} << 10;

// The inner loops of one reduction over accumulators of one dtype, for the machine's best instruction set.
struct ReduceLoops {
  // Sets `count` accumulators to the identity.
  void (*clear)(void* accumulators, int64_t count) = nullptr;
  // Combines, for each i < count, accumulators[i] with x[i], x[i + step], … (`rows` of them). The order in which one
  // accumulator takes its terms depends on `rows` alone, so the bits are the same on every instruction set.
  void (*accumulate)(const void* x, int64_t step, int64_t rows, int64_t count, void* accumulators) = nullptr;
  // results[r] = the reduction of the run x[r * step], …, x[r * step + length - 1], for each r < runs; in an order that
  // depends on `length` alone. For runs of up to kMaxRunBytes: longer ones would lose accuracy.
  void (*reduce_runs)(const void* x, int64_t length, int64_t step, int64_t runs, void* results) = nullptr;
  // *result = the result of reduce_runs for one run of the products a[i] * b[i], each rounded. Only for sums of F32 and
  // F64.
  void (*sum_products)(const void* a, const void* b, int64_t length, void* result) = nullptr;
  // True if reduce_runs is fast for runs of a few elements too.
  bool has_short_runs = false;
};

// Loops for accumulators of BOOL, an integer, F32, F64 or a complex dtype. BOOL knows kAnd and kOr, the others all but
// those two; complex numbers have no kSum of their own, being summed as pairs of reals. Other pairs have null pointers.
ReduceLoops GetReduceLoops(ReduceOp op, DType dtype);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_REDUCE_LOOPS_H_
