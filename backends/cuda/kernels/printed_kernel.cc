#include "backends/cuda/kernels/printed_kernel.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/cuda/kernels/text_kernel.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/exec/backend/lone_elementwise.h"
#include "engine/ops/core_ops.h"

namespace tensord::cuda {
namespace {

MicroProgram IotaProgram(const BoundInstruction& instruction) {
  const ConcreteType& type = instruction.results[0];
  const size_t dimension = static_cast<size_t>(instruction.attrs->Int("dimension"));
  MicroInstruction counted{.kind = MicroKind::kIota, .dtype = type.dtype};
  MicroProgram program;
  for (size_t d = 0; d < type.shape.size(); ++d) {
    // Axes on one side of the counted one are one.
    if (d > 0 && d != dimension && d != dimension + 1) {
      program.axes.back().size *= type.shape[d];
      continue;
    }
    program.axes.push_back({.size = type.shape[d]});
    counted.access.strides.push_back(d == dimension ? 1 : 0);
  }
  program.instructions.push_back(std::move(counted));
  program.results.push_back({.value = 0});
  return program;
}

MicroProgram ReduceProgram(const BoundInstruction& instruction) {
  const ConcreteType& operand = instruction.operands[0];
  const std::vector<int64_t>& dimensions = instruction.attrs->Ints("dimensions");
  MicroInstruction loaded{.kind = MicroKind::kLoad, .dtype = operand.dtype, .tensor = 0};
  MicroProgram program;
  int64_t stride = 1;
  for (size_t d = 0; d < operand.shape.size(); ++d) {
    const int64_t size = operand.shape[d];
    const bool is_reduced = std::count(dimensions.begin(), dimensions.end(), static_cast<int64_t>(d)) > 0;
    if (size == 1) continue;
    if (!program.axes.empty() && program.axes.back().is_reduced == is_reduced) {
      program.axes.back().size *= size;
    } else {
      program.axes.push_back({.size = size, .is_reduced = is_reduced});
      loaded.access.strides.push_back(stride);
    }
    stride *= size;
  }
  program.tensors.push_back(operand.dtype);
  program.instructions.push_back(std::move(loaded));
  program.instructions.push_back({.kind = MicroKind::kReduce,
                                  .level = MicroLevel::kKept,
                                  .dtype = instruction.results[0].dtype,
                                  .reduce = static_cast<ReduceKind>(instruction.attrs->Int("kind")),
                                  .operands = {0, -1, -1},
                                  .stage = 1});
  program.results.push_back({.value = 1});
  return program;
}

// A scalar that is read where the whole is larger has a program too; other shapes have none.
absl::StatusOr<MicroProgram> PrintedProgram(const BoundInstruction& instruction) {
  if (instruction.micro != nullptr) return *instruction.micro;
  if (Is(*instruction.op, CoreOp::kIota)) return IotaProgram(instruction);
  if (Is(*instruction.op, CoreOp::kReduce)) return ReduceProgram(instruction);
  std::optional<MicroProgram> alone = ElementwiseProgram(instruction);
  if (alone.has_value()) return *std::move(alone);
  return Refuse(Refusal::kUnsupportedOnDevice,
                absl::StrCat("CUDA devices have no printed kernel of ", instruction.op->name));
}

constexpr int64_t kVectorAlignment = 16;

// A kernel whose threads move vectors, for pointers that are multiples of them, and one for all others: tensors may be
// views, and so have the alignment of an element only.
class AlignedKernel final : public Kernel {
 public:
  AlignedKernel(std::unique_ptr<Kernel> aligned, std::unique_ptr<Kernel> other)
      : aligned_(std::move(aligned)), other_(std::move(other)) {}

  absl::Status Enqueue(const Launch& launch) const override {
    CuAddress all = 0;
    for (const CuAddress address : launch.operands) all |= address;
    for (const CuAddress address : launch.results) all |= address;
    return (all % kVectorAlignment == 0 ? aligned_ : other_)->Enqueue(launch);
  }
  int64_t scratch_bytes() const override { return std::max(aligned_->scratch_bytes(), other_->scratch_bytes()); }
  std::string Describe() const override { return absl::StrCat(aligned_->Describe(), ", by vectors"); }

 private:
  const std::unique_ptr<Kernel> aligned_;
  const std::unique_ptr<Kernel> other_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakePrintedKernel(const BoundInstruction& instruction,
                                                          const KernelContext& context) {
  ASSIGN_OR_RETURN(const MicroProgram program, PrintedProgram(instruction));
  const KernelText text = PrintCuda(program, context.compiler->printing());
  CudaOptions aligned = context.compiler->printing();
  aligned.pointer_alignment_bytes = kVectorAlignment;
  const KernelText vectors = PrintCuda(program, aligned);
  ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, TextKernel::Make(text, "printed", context));
  if (vectors.source == text.source) return kernel;
  ASSIGN_OR_RETURN(std::unique_ptr<Kernel> by_vectors, TextKernel::Make(vectors, "printed", context));
  return std::make_unique<AlignedKernel>(std::move(by_vectors), std::move(kernel));
}

}  // namespace tensord::cuda
