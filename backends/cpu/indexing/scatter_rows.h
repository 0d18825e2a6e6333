#ifndef TENSORD_BACKENDS_CPU_INDEXING_SCATTER_ROWS_H_
#define TENSORD_BACKENDS_CPU_INDEXING_SCATTER_ROWS_H_

#include <cstdint>
#include <optional>

#include "backends/cpu/indexing/scatter_loops.h"
#include "backends/cpu/indexing/window_plan.h"

namespace tensord::cpu {

class ThreadPool;

// A Scatter of whole rows into a table, in one pass over the table: windows are sorted by the block of rows into which
// they fall, in index order within each; a block is copied to where the first-level cache keeps it, takes its updates
// there, and is written past the caches. Worth it where the result leaves the caches. The same bits as updates in index
// order, for any number of threads. Immutable, so thread-safe; nothing fails or allocates after construction.
class ScatterRows {
 public:
  // Returns nothing if windows are not consecutive rows that make up the table, or a row is too short or too long.
  static std::optional<ScatterRows> Create(const WindowPlan& plan, int64_t operand_elements, int64_t element_bytes,
                                           const ScatterLoops& loops);

  // The arguments of a call in any of the blocks.
  struct Call {
    const void* indices;
    const char* operand;
    const char* updates;
    char* result;  // not the operand
  };

  int64_t scratch_bytes() const;
  // False, and nothing is written: so many windows fall close together that threads would wait for one of them.
  bool Run(const Call& call, void* scratch, ThreadPool* pool) const;

 private:
  // A window and its row.
  struct Update {
    uint32_t window;
    uint32_t row;
  };

  // Rows sorted by block, within each block by index order.
  struct Sorted {
    const Update* updates;
    const uint32_t* ends;  // by block
    uint32_t begin_of(int64_t block) const { return block == 0 ? 0 : ends[block - 1]; }
  };

  ScatterRows() = default;
  template <typename Index>
  std::optional<Sorted> Sort(const Index* indices, void* scratch, ThreadPool* pool) const;
  bool IsEven(const Sorted& sorted, int threads) const;
  int64_t NumTasks() const;
  void RunTask(const Call& call, const Sorted& sorted, int64_t task) const;
  void RunBlock(const Call& call, const Sorted& sorted, int64_t block, char* rows) const;

  ScatterLoops loops_;
  DType index_dtype_ = DType::kI32;
  int64_t index_step_ = 1;
  int64_t num_windows_ = 0;
  int64_t num_rows_ = 0;
  int64_t row_elements_ = 0;
  int64_t row_bytes_ = 0;
  int64_t update_bytes_ = 0;  // from one row of updates to the next
  int row_bits_ = 0;          // of a row's number in its block
  int64_t num_blocks_ = 0;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_INDEXING_SCATTER_ROWS_H_
