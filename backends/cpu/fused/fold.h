#ifndef TENSORD_BACKENDS_CPU_FUSED_FOLD_H_
#define TENSORD_BACKENDS_CPU_FUSED_FOLD_H_

#include <cstdint>

#include "backends/cpu/reduce/cascade.h"
#include "backends/cpu/reduce/loops.h"
#include "engine/ops/core_ops.h"
#include "engine/tensor/dtype.h"

namespace tensord::cpu {

// A reduction that a fused kernel does tile by tile: the rows of a box, `width` elements each, are added up in a
// cascade, several rows side by side where they are short. F16 and BF16 are accumulated in F32 and rounded once; sums
// of complex numbers are sums of pairs of reals. BOOL: sum and max are or, product and min are and.
//
// Constant after construction; all state is in the task's memory.
class FusedFold {
 public:
  // AND and OR take BOOL only.
  FusedFold(ReduceKind kind, DType dtype);
  // Tells whether there are loops for it.
  bool is_supported() const { return loops_.accumulate != nullptr; }

  // Boxes are up to `width` wide, tiles have up to `tile_rows` rows, and `num_tiles` of them are added by one task.
  void Plan(int64_t width, int64_t tile_rows, int64_t num_tiles, int64_t num_parts);

  int64_t state_bytes() const { return levels_ * level_bytes_ + wide_bytes_; }  // aligned to 64
  int64_t partial_bytes() const { return level_bytes_; }

  // Tells whether it is one run in one tile, whose result is the state: neither started nor in a cascade.
  bool is_one_run() const { return is_one_run_; }
  DType dtype() const { return dtype_; }
  ReduceOp op() const { return op_; }
  Cascade Start(int64_t width, char* state) const;
  // Adds `rows` rows of a tile.
  void Add(const void* x, int64_t width, int64_t rows, char* state, Cascade& cascade) const;
  // Tells whether it can take products of two arrays. The function adds the products of `rows` elements each as Add
  // would, without memory in between. For rows of one element.
  bool takes_products() const { return loops_.sum_products != nullptr && !is_half_ && parts_ == 1; }
  void AddProducts(const void* x, const void* y, int64_t rows, char* state, Cascade& cascade) const;
  // Writes the sums for each element of a row; or, with Partial, the input of Join.
  void Finish(int64_t width, const char* state, Cascade& cascade, void* results) const;
  void Partial(int64_t width, Cascade& cascade, void* partial) const;
  // Joins `parts` partials that are `step_bytes` apart.
  void Join(int64_t width, const void* partials, int64_t step_bytes, int64_t parts, char* state, void* results) const;

 private:
  DType dtype_;
  ReduceOp op_;
  ReduceLoops loops_;
  int64_t accumulator_bytes_ = 0;  // of an element
  int64_t parts_ = 1;              // accumulators in one element: 2 where complex numbers are summed as reals
  bool is_half_ = false;
  bool is_exact_ = false;  // in any order

  bool folds_runs_ = false;  // a tile to one element at once
  bool is_one_run_ = false;  // of which there is but one
  int64_t lanes_ = 1;        // rows side by side
  int levels_ = 1;
  int64_t level_bytes_ = 0;
  int64_t wide_bytes_ = 0;  // of a tile in F32
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_FUSED_FOLD_H_
