#ifndef TENSORD_BACKENDS_CPU_TILED_GEMM_H_
#define TENSORD_BACKENDS_CPU_TILED_GEMM_H_

#include <array>
#include <cstdint>

#include "backends/cpu/dot_axes.h"
#include "backends/cpu/gemm_tiles.h"
#include "backends/cpu/thread_pool.h"
#include "engine/tensor/dtype.h"

namespace tensord::cpu {

// The products of matrices of a contraction in F32 or F64, by loops of ours. Rows, columns and summed axes may be any
// number of axes with any strides: what cannot be read as it lies, or is read often, is packed into panels, a box of
// the product at a time, by all threads for all threads. Products of a batch that are small are packed and made by one
// thread each. How the product is cut depends on sizes and strides only: same bits for any number of threads.
//
// Immutable after construction, so thread-safe. Run does not allocate and cannot fail.
class TiledGemm {
 public:
  // Whether the machine has the loops and they are the fastest way.
  static bool Suits(const DotSpace& space, DType dtype);

  TiledGemm() = default;
  // The space passed Suits.
  TiledGemm(const DotSpace& space, DType dtype);

  int64_t scratch_bytes() const { return scratch_bytes_; }
  // `scratch` is aligned to 64. `accumulates`: adds to the result.
  void Run(const char* lhs, const char* rhs, char* result, char* scratch, bool accumulates, ThreadPool& pool) const;

 private:
  // How one operand is read.
  struct Operand {
    DotAxisList lines;  // rows of lhs, columns of rhs
    DotAxisList terms;
    DotAxisList batch;
    int64_t width = 0;  // of a panel
    bool is_packed = true;
  };
  // Sizes of one role in parts, all but the last equal.
  struct Cut {
    int64_t size = 0;
    int64_t part = 0;
    int64_t parts() const { return part == 0 ? 0 : (size + part - 1) / part; }
    int64_t Length(int64_t index) const { return size - index * part < part ? size - index * part : part; }
  };
  struct Box;

  void PlanBoxes();
  int64_t PackedBytes(DotSide side, int64_t lines, int64_t terms) const;
  int64_t BatchOffset(DotSide side, int64_t index) const;
  void PackPanel(DotSide side, const char* matrix, int64_t first_line, int64_t lines, int64_t first_term, int64_t terms,
                 char* panel) const;
  void PackBox(DotSide side, const Box& box, int64_t panel) const;
  void Multiply(const Box& box, int64_t row, int64_t rows, int64_t column, int64_t columns) const;
  void RunBoxes(Box box, int64_t batch, ThreadPool& pool) const;
  void RunProduct(Box box) const;

  GemmTiles tiles_;
  int64_t element_bytes_ = 1;
  std::array<Operand, 2> operands_;
  DotAxisList result_batch_;
  int64_t c_column_step_ = 0;
  int64_t num_products_ = 0;
  Cut rows_, columns_, terms_;  // boxes
  int64_t task_rows_ = 0;       // of a box
  int64_t task_columns_ = 0;
  int64_t products_together_ = 0;  // each by one thread; 0: one after the other, each by all threads
  bool runs_on_caller_ = false;
  int64_t rhs_place_ = 0;  // in scratch
  int64_t scratch_of_product_ = 0;
  int64_t scratch_bytes_ = 0;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_TILED_GEMM_H_
