#ifndef TENSORD_BACKENDS_CPU_CONTRACTION_PANELS_H_
#define TENSORD_BACKENDS_CPU_CONTRACTION_PANELS_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "backends/cpu/contraction/operands/axes.h"
#include "backends/cpu/layout/strided_copy.h"
#include "backends/cpu/machine/thread_pool.h"
#include "engine/tensor/dtype.h"

namespace tensord::cpu {

// A box of a tensor beside its dense copy, as runs that are contiguous in both.
class DenseRuns {
 public:
  DenseRuns() = default;
  // The axes in the order of the copy; strides are the tensor's.
  DenseRuns(const DotAxisList& axes, DotSide side);

  int64_t num_elements() const { return num_elements_; }
  int64_t length() const { return length_; }  // of a run; 1 where there are none
  // Calls visit(offset in the tensor, offset in the copy, count) for the pieces of runs in [begin, end) of the copy.
  template <typename Visit>
  void Walk(int64_t begin, int64_t end, Visit visit) const;

 private:
  struct Loop {
    int64_t count = 0;
    int64_t stride = 0;
  };
  int64_t num_elements_ = 0;
  int64_t length_ = 1;
  absl::InlinedVector<Loop, 4> loops_;
};

// The dense layout of a box of an operand: in the computed dtype, conjugated if asked for, and with the axes of one
// role as one axis. A box is copied, converted and conjugated in as few passes as possible.
//
// Immutable after construction, so thread-safe. Fill does not allocate and cannot fail.
class DotPanel {
 public:
  DotPanel() = default;
  // Gives the operand's axes in `box` the panel's strides. `summed_first`: the summed axes get unit stride, else the
  // free ones. Matrices of the batch lie one after the other.
  DotPanel(DotSide side, bool summed_first, DType from, DType to, bool conjugates, DotSpace* box);

  int64_t panel_bytes() const { return runs_.num_elements() * SizeOf(to_); }
  // The same for a box that is only thought of; returns its elements.
  static int64_t Lay(DotSide side, bool summed_first, DotSpace* box);

  // Additional scratch for Fill.
  int64_t staging_bytes() const;
  // `box` is the first element of the box.
  void Fill(const char* box, char* panel, char* staging, ThreadPool& pool) const;

 private:
  // Converts contiguous elements; works in place if nothing is converted.
  void Change(const char* src, char* dst, int64_t count) const;
  bool changes() const { return from_ != to_ || conjugates_; }
  bool changes_runs() const;

  DType from_ = DType::kInvalid;
  DType to_ = DType::kInvalid;
  bool conjugates_ = false;
  DenseRuns runs_;
  StridedCopy copy_;
};

// Rounds a dense box of F32 into a result of 16-bit floats.
class RoundedBox {
 public:
  RoundedBox() = default;
  // Gives the result's axes in `box` the strides of the dense box.
  RoundedBox(DType half, DotSpace* box);

  int64_t dense_bytes() const { return runs_.num_elements() * SizeOf(DType::kF32); }
  void Store(const char* dense, char* result, ThreadPool& pool) const;

 private:
  DType half_ = DType::kInvalid;
  DenseRuns runs_;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_CONTRACTION_PANELS_H_
