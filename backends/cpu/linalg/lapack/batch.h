#ifndef TENSORD_BACKENDS_CPU_LINALG_LAPACK_BATCH_H_
#define TENSORD_BACKENDS_CPU_LINALG_LAPACK_BATCH_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "backends/cpu/kernel/kernel.h"
#include "backends/cpu/machine/blas.h"
#include "backends/cpu/machine/task_slots.h"
#include "engine/base/refusal.h"
#include "engine/base/stop_signal.h"
#include "engine/families/linalg/host_matrix.h"
#include "engine/families/linalg/matrix_refusal.h"

namespace tensord::cpu {

// The places of the parts of a routine's scratch, each aligned to a cache line.
class ScratchLayout {
 public:
  template <typename T>
  int64_t Add(int64_t count) {
    const int64_t at = bytes_;
    bytes_ += (count * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
    return at;
  }
  int64_t bytes() const { return bytes_; }

 private:
  int64_t bytes_ = 0;
};

// One matrix of a batch, for a routine.
struct MatrixCall {
  const void* operands[2];
  void* results[4];
  char* scratch;
  ThreadPool* pool;

  template <typename T>
  T* at(int64_t offset) const {
    return reinterpret_cast<T*>(scratch + offset);
  }
  template <typename T>
  const T* operand(size_t i) const {
    return static_cast<const T*>(operands[i]);
  }
  template <typename T>
  T* result(size_t i) const {
    return static_cast<T*>(results[i]);
  }
};

// A routine, matrix by matrix: tasks of fixed ranges of the batch, and scratch for as many as run at a time. A routine
// has
//   int64_t scratch_bytes() const;
//   int64_t Run(const MatrixCall&) const;     0, or LAPACK's info where it fails
//   static constexpr Refusal kRefusal;        why it can
template <typename Routine>
class MatrixKernel final : public Kernel {
 public:
  // The batch must not be empty.
  MatrixKernel(const BoundInstruction& instruction, Routine routine)
      : routine_(std::move(routine)),
        shape_(instruction.operands[0].shape),
        batch_(BatchSize(shape_)),
        copies_at_((routine_.scratch_bytes() + 63) / 64 * 64),
        slot_bytes_(copies_at_) {
    for (const ConcreteType& operand : instruction.operands) operand_bytes_.push_back(operand.num_bytes() / batch_);
    for (const ConcreteType& result : instruction.results) result_bytes_.push_back(result.num_bytes() / batch_);
    if (BlasRoundsByAddress() && batch_ > 1) {
      for (const int64_t bytes : operand_bytes_) slot_bytes_ += CopyBytes(bytes);
      for (const int64_t bytes : result_bytes_) slot_bytes_ += CopyBytes(bytes);
    }
    const int64_t tasks = std::min(batch_, kMaxTasks);
    block_ = (batch_ + tasks - 1) / tasks;
    tasks_ = (batch_ + block_ - 1) / block_;
    slots_ = TaskSlots(tasks_);
  }

  void Run(const KernelArgs& args) const override {
    Failure* const failures = static_cast<Failure*>(args.scratch);
    const auto run = [&](int64_t task, int64_t slot) { failures[task] = RunBlock(args, task, slot); };
    if (!RunInSlots(tasks_, slots_, *args.pool, run)) return;
    for (int64_t task = 0; task < tasks_; ++task) {
      if (failures[task].info == 0) continue;
      *args.failure = RefuseMatrix(Routine::kRefusal, shape_, failures[task].matrix, failures[task].info);
      return;
    }
  }

  int64_t scratch_bytes() const override { return FailureBytes() + slots_ * slot_bytes_; }

 private:
  static constexpr int64_t kMaxTasks = 64;  // each says which of its matrices failed, in scratch

  struct Failure {
    int64_t matrix;
    int64_t info;
  };

  int64_t FailureBytes() const { return (tasks_ * static_cast<int64_t>(sizeof(Failure)) + 63) / 64 * 64; }

  Failure RunBlock(const KernelArgs& args, int64_t task, int64_t slot) const {
    MatrixCall call{.operands = {},
                    .results = {},
                    .scratch = static_cast<char*>(args.scratch) + FailureBytes() + slot * slot_bytes_,
                    .pool = args.pool};
    for (int64_t b = task * block_; b < std::min(batch_, (task + 1) * block_); ++b) {
      if (StopRequested()) break;
      for (size_t i = 0; i < operand_bytes_.size(); ++i) {
        call.operands[i] = static_cast<const char*>(args.operands[i]) + b * operand_bytes_[i];
      }
      for (size_t i = 0; i < result_bytes_.size(); ++i) {
        call.results[i] = static_cast<char*>(args.results[i]) + b * result_bytes_[i];
      }
      const int64_t info = slot_bytes_ > copies_at_ ? RunInAlignedCopies(call) : routine_.Run(call);
      if (info != 0) return {.matrix = b, .info = info};
    }
    return {.matrix = 0, .info = 0};
  }

  // Returns the memory for a copy of a matrix: none where all of the batch lie on 16 bytes if the first one does.
  static int64_t CopyBytes(int64_t bytes) { return bytes % 16 == 0 ? 0 : (bytes + 63) / 64 * 64; }

  // Gives the routine copies of matrices that may lie beside 16 bytes, so that each has the bits that it has alone.
  int64_t RunInAlignedCopies(const MatrixCall& call) const {
    MatrixCall aligned = call;
    char* copy = call.scratch + copies_at_;
    for (size_t i = 0; i < operand_bytes_.size(); ++i) {
      const int64_t bytes = CopyBytes(operand_bytes_[i]);
      if (bytes > 0) aligned.operands[i] = std::memcpy(copy, call.operands[i], operand_bytes_[i]);
      copy += bytes;
    }
    for (size_t i = 0; i < result_bytes_.size(); ++i) {
      const int64_t bytes = CopyBytes(result_bytes_[i]);
      if (bytes > 0) aligned.results[i] = copy;
      copy += bytes;
    }
    const int64_t info = routine_.Run(aligned);
    for (size_t i = 0; i < result_bytes_.size(); ++i) {
      if (aligned.results[i] != call.results[i]) std::memcpy(call.results[i], aligned.results[i], result_bytes_[i]);
    }
    return info;
  }

  const Routine routine_;
  const Shape shape_;
  const int64_t batch_;
  const int64_t copies_at_;  // of a slot's scratch
  int64_t slot_bytes_;
  absl::InlinedVector<int64_t, 2> operand_bytes_;
  absl::InlinedVector<int64_t, 4> result_bytes_;
  int64_t block_ = 0;
  int64_t tasks_ = 0;
  int64_t slots_ = 0;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LINALG_LAPACK_BATCH_H_
