#ifndef TENSORD_BACKENDS_CPU_REDUCE_REDUCE_H_
#define TENSORD_BACKENDS_CPU_REDUCE_REDUCE_H_

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "backends/cpu/layout/strided_copy.h"
#include "backends/cpu/machine/thread_pool.h"
#include "backends/cpu/reduce/loops.h"
#include "engine/tensor/dtype.h"

namespace tensord::cpu {

class Cascade;

// A planned reduction of a dense column-major tensor over some of its axes. F16 and BF16 are accumulated in F32 and
// rounded once; integers wrap. BOOL: sum and max are or, product and min are and. Over no element the result is the
// operation's identity.
//
// Memory is streamed in its order: rows of the results' axis are added up in L1, many at a time, in a cascade of fixed
// radix. The tree depends on the shape alone, so the bits are the same for any number of threads, and the error of a
// sum grows with the logarithm of its length.
//
// Immutable after construction, so thread-safe. Run does not allocate and cannot fail.
class Reduction {
 public:
  // `axes` are distinct and within the rank; AND and OR take BOOL only.
  Reduction(ReduceOp op, DType dtype, absl::Span<const int64_t> shape, absl::Span<const int64_t> axes);

  int64_t scratch_bytes() const { return permuted_bytes_ + partial_bytes_; }
  // `scratch` has scratch_bytes() bytes, aligned to 64.
  void Run(const void* src, void* dst, void* scratch, ThreadPool& pool) const;

 private:
  // Axes left after merging neighbours of one kind; strides in elements of the source.
  struct Axis {
    int64_t size = 1;
    int64_t stride = 1;
    bool is_reduced = false;
  };
  using Axes = absl::InlinedVector<Axis, 6>;
  struct CascadeStorage;

  static Axes MergeAxes(absl::Span<const int64_t> shape, absl::Span<const int64_t> reduced);
  bool WantsPermutation(const Axes& axes) const;
  Axes PlanPermutation(const Axes& axes);
  void PlanForm(const Axes& axes);
  void PlanLoops(const Axes& axes, size_t next);
  void PlanTasks();
  Cascade MakeCascade(int64_t count, CascadeStorage& storage) const;
  void AddToCascade(const char* x, int64_t step, int64_t rows, int64_t count, Cascade& cascade) const;
  void AddUnit(const char* block, int64_t unit, int64_t count, Cascade& cascade) const;
  const char* BlockStart(const char* src, int64_t block) const;
  int64_t BlockCount(int64_t block) const;
  void StoreResult(int64_t block, Cascade& cascade, char* dst) const;
  void ReduceBlock(int64_t block, const char* src, char* dst) const;
  void ReducePart(int64_t block, int64_t split, const char* src, char* partial) const;
  void JoinParts(int64_t block, const char* partials, char* dst) const;

  // Constant after construction.
  DType dtype_;
  ReduceLoops loops_;
  int64_t element_bytes_ = 0;      // of the operand and the result
  int64_t accumulator_bytes_ = 0;  // per element
  int64_t parts_ = 1;              // accumulators in one element: 2 where complex numbers are summed as reals
  int64_t num_results_ = 0;
  int64_t num_reduced_ = 0;  // elements that go into one result

  StridedCopy permutation_;  // into scratch, kept axes first; copies nothing where the source is streamed as it is
  int64_t permuted_bytes_ = 0;

  // A block is up to `block_elements_` results along the first kept axis, of `row_elements_`. Its source is rows of
  // that many elements, `num_rows_` of them `row_step_` apart, once for each index of `reduced_loops_`.
  int64_t row_elements_ = 1;
  int64_t block_elements_ = 1;
  int64_t block_src_step_ = 1;  // elements of the source from one block to the next
  int64_t num_rows_ = 1;
  int64_t row_step_ = 1;
  // Short rows are taken `lanes_` at a time as one; the rest is a shorter one. The lanes are folded at the end.
  int64_t lanes_ = 1;
  int64_t leftover_elements_ = 0;
  // True if the first axis is reduced and short: tiles of it are transposed, and num_rows_ is its size.
  bool transposes_ = false;
  std::vector<int64_t> tile_src_offsets_;
  std::vector<int64_t> tile_dst_offsets_;
  TransposeTileFunction transpose_ = nullptr;

  // The size of the first axis if it is reduced and no longer than runs may be, else 0. A block is then a run a result,
  // and its runs make one row.
  int64_t run_elements_ = 0;
  bool stores_runs_ = false;  // what a run comes to is a result already

  Axes kept_loops_;
  Axes reduced_loops_;
  int64_t blocks_per_row_ = 1;
  int64_t num_blocks_ = 0;
  int64_t chunks_ = 1;     // of kUnitRows rows
  int64_t num_units_ = 0;  // chunks times the indices of reduced_loops_
  int64_t num_tasks_ = 0;
  int64_t num_splits_ = 1;  // parts of the units of one block that are reduced apart
  int64_t partial_bytes_ = 0;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_REDUCE_REDUCE_H_
