#ifndef TENSORD_BACKENDS_CUDA_KERNELS_KERNEL_H_
#define TENSORD_BACKENDS_CUDA_KERNELS_KERNEL_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "backends/cuda/abi/driver.h"
#include "backends/cuda/compile/kernel_compiler.h"
#include "backends/cuda/device/library_handles.h"
#include "backends/cuda/device/pace.h"
#include "backends/cuda/kernels/verdict.h"
#include "backends/cuda/libraries/libraries.h"
#include "engine/exec/backend/bound_instruction.h"

namespace tensord::cuda {

// The arguments of a kernel's run. Addresses are of the device; tensors have the alignment of an element only.
struct Launch {
  absl::Span<const CuAddress> operands;
  absl::Span<const CuAddress> results;
  CuAddress scratch = 0;              // scratch_bytes(), aligned to 256; 0 if the kernel asked for none
  CuAddress workspace = 0;            // workspace_bytes(), aligned to 256; the same memory for all kernels of a session
  CuAddress verdict = 0;              // of a kernel that judges: a word with kNoVerdict
  CuStream stream = nullptr;          // to enqueue on
  LibraryHandles* handles = nullptr;  // of the lane
  Pace* pace = nullptr;               // of the run; null: nothing waits

  // Asks the pace, as a kernel does before each part of its work.
  absl::Status BeforePart(int64_t part, int64_t parts) const {
    return pace == nullptr ? absl::OkStatus() : pace->BeforePart(part, parts);
  }
};

// One instruction on the device, with every size known. Immutable, so thread-safe: sessions on several lanes may
// enqueue it at once. Nothing of it may be on its way when it goes.
class Kernel {
 public:
  virtual ~Kernel() = default;
  // Enqueues the work on the stream, and does not wait but where the launch's pace does. The calling thread has entered
  // the context.
  virtual absl::Status Enqueue(const Launch& launch) const = 0;
  // Memory of this kernel's alone, from the beginning of its work to the end.
  virtual int64_t scratch_bytes() const { return 0; }
  // Memory that the kernels of a session use one after the other, for libraries.
  virtual int64_t workspace_bytes() const { return 0; }
  // Says in a few words how it computes, for Explain: "copied, 1 launch of 16 x 256 threads, 24 registers".
  virtual std::string Describe() const = 0;
  // Tells whether the numbers that it is given decide how long it takes: by more than a run should be ahead.
  virtual bool varies() const { return false; }
  // Tells whether a graph may replay a run of it at the same addresses: Enqueue calls nothing that a capture refuses,
  // once MakeHandles was called.
  virtual bool captures() const { return true; }
  // Makes those of a lane's handles that Enqueue takes, which no capture allows.
  virtual absl::Status MakeHandles(LibraryHandles*) const { return absl::OkStatus(); }
  // Tells whether it looks for faults in the numbers that it is given, and so takes a verdict.
  virtual bool judges() const { return false; }
  // Returns the refusal of a run in which it found a fault; OK if the run's results say it themselves.
  virtual absl::Status Refused(const Verdict&) const { return absl::OkStatus(); }
};

// There is nothing to compute: no result has elements.
class NothingToDo final : public Kernel {
 public:
  absl::Status Enqueue(const Launch&) const override { return absl::OkStatus(); }
  std::string Describe() const override { return "nothing to do"; }
};

// The means by which a kernel is made. The calling thread has entered the context.
struct KernelContext {
  KernelCompiler* compiler = nullptr;  // knows the device too: compiler->printing()
  Libraries* libraries = nullptr;
  // The steps of a thread that a launch has at most, of those that divide large matrices: about a second.
  int64_t most_division_steps = 10'000'000;
  // The multiply-adds of singles, for each processor, of a library's call at most: a fifth of a second or so.
  int64_t most_call_products = int64_t{1} << 35;
};

// Makes the kernel of an instruction. UNSUPPORTED_ON_DEVICE, naming the missing feature or library; OUT_OF_MEMORY.
using MakeKernel = absl::StatusOr<std::unique_ptr<Kernel>>(const BoundInstruction& instruction,
                                                           const KernelContext& context);

// The factory of kernels for an op of a family.
struct FamilyKernel {
  absl::string_view op;  // OpDef::name
  DTypeSet dtypes;       // of the first operand that it computes with
  MakeKernel* make;
};

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_KERNELS_KERNEL_H_
