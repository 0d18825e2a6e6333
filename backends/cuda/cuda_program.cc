#include "backends/cuda/cuda_program.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/base/stop_signal.h"
#include "engine/exec/backend/lone_elementwise.h"

namespace tensord::cuda {
namespace {

// A scalar that is read where the whole is larger has a kernel too; other shapes have none.
absl::StatusOr<MicroProgram> MicroOf(const BoundInstruction& bound) {
  if (bound.micro != nullptr) return *bound.micro;
  std::optional<MicroProgram> alone = ElementwiseProgram(bound);
  if (alone.has_value()) return *std::move(alone);
  return Refuse(Refusal::kUnsupportedOnDevice, absl::StrCat("CUDA devices have no kernel of ", bound.op->name, " yet"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaProgram>> CudaProgram::Create(absl::Span<const SegmentInstruction> segments,
                                                                 KernelCompiler* compiler) {
  auto program = std::make_unique<CudaProgram>();
  for (const SegmentInstruction& segment : segments) {
    RETURN_IF_ERROR(CheckStopped());
    const absl::Status appended = program->Append(segment, compiler);
    if (!appended.ok()) {
      return WithNode(appended, std::string(segment.node),
                      segment.written == nullptr ? segment.bound.op->name : segment.written->name);
    }
  }
  return program;
}

absl::Status CudaProgram::Append(const SegmentInstruction& segment, KernelCompiler* compiler) {
  ASSIGN_OR_RETURN(const MicroProgram micro, MicroOf(segment.bound));
  const CudaKernel printed = PrintCuda(micro, compiler->printing());
  Step step{.scratch_bytes = printed.scratch_bytes};
  step.slots.assign(segment.operands.begin(), segment.operands.end());
  step.slots.insert(step.slots.end(), segment.results.begin(), segment.results.end());
  if (!printed.launches.empty()) {
    ASSIGN_OR_RETURN(step.kernel, compiler->Compile(printed));
  }
  steps_.push_back(std::move(step));
  return absl::OkStatus();
}

absl::Status CudaProgram::Enqueue(size_t position, absl::Span<void* const> slots, absl::Span<void* const> scratch,
                                  CuStream stream) const {
  const Step& step = steps_[position];
  if (step.kernel == nullptr) return absl::OkStatus();
  absl::InlinedVector<CuAddress, 16> pointers;
  for (const Slot slot : step.slots) {
    pointers.push_back(reinterpret_cast<CuAddress>(slots[static_cast<size_t>(slot)]));
  }
  if (step.scratch_bytes > 0) pointers.push_back(reinterpret_cast<CuAddress>(scratch[position]));
  return step.kernel->Enqueue(stream, pointers);
}

std::string CudaProgram::DescribeKernel(size_t position) const {
  const Step& step = steps_[position];
  const size_t launches = step.kernel == nullptr ? 0 : step.kernel->num_launches();
  return absl::StrCat("printed, ", launches, launches == 1 ? " launch" : " launches");
}

}  // namespace tensord::cuda
