#ifndef TENSORD_BACKENDS_CPU_KERNEL_KERNEL_H_
#define TENSORD_BACKENDS_CPU_KERNEL_KERNEL_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/exec/backend/bound_instruction.h"

namespace tensord::cpu {

class ThreadPool;

// More than the panels of any kernel take (6 MiB of 16-bit floats): a session's memory must not grow with its graph.
inline constexpr int64_t kMaxWorkspaceBytes = int64_t{8} << 20;

// The memory of one run of one kernel. Addresses are dense column-major tensors, aligned to at least their element,
// with no slack after the last element. A result never overlaps an operand, with one exception: it may be an operand of
// the same byte size that engine/exec/backend/overwrites.h names.
struct KernelArgs {
  absl::Span<const void* const> operands;
  absl::Span<void* const> results;
  void* scratch;  // scratch_bytes(), aligned to 64; null where that is 0
  ThreadPool* pool;
  // The place for the status of a family's kernel that could not compute: its results are undefined then, and the run
  // ends with this status. Set from the thread that called Run. Never null for such a kernel; kernels of core ops do
  // not fail.
  absl::Status* failure = nullptr;
  void* workspace = nullptr;  // workspace_bytes(), aligned to 64
  // The first point of a part, for a fused kernel made for a part of its space: its index along each axis of the micro
  // program, from which integers are counted; empty: 0. Its addresses are those of the part.
  absl::Span<const int64_t> origin = {};
};

// The routine for one instruction, bound to its sizes. Made once when a program is prepared, run many times, from one
// thread at a time or several: const and free of state. Run neither allocates nor locks, and leaves its thread only
// through the pool. Same bits for every size of the pool.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void Run(const KernelArgs& args) const = 0;
  // Returns the memory whose size follows from the sizes of the operands; placed by the plan.
  virtual int64_t scratch_bytes() const { return 0; }
  // Returns the memory for data that stays in the caches while the kernel runs, such as panels of an operand: at most
  // kMaxWorkspaceBytes, however large the operands are. A session has one for all its kernels.
  virtual int64_t workspace_bytes() const { return 0; }
  // Names the way in which it computes, for Explain; empty if there is only one.
  virtual std::string Describe() const { return ""; }
};

// The kernel of an instruction whose results have no elements.
class NothingToDo final : public Kernel {
 public:
  void Run(const KernelArgs&) const override {}
};

// Makes a kernel. UNSUPPORTED_ON_DEVICE, naming the missing feature, if the instruction cannot be run here.
using MakeKernel = absl::StatusOr<std::unique_ptr<Kernel>>(const BoundInstruction& instruction);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_KERNEL_KERNEL_H_
