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

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakePrintedKernel(const BoundInstruction& instruction,
                                                          const KernelContext& context) {
  ASSIGN_OR_RETURN(const MicroProgram program, PrintedProgram(instruction));
  return TextKernel::Make(PrintCuda(program, context.compiler->printing()), "printed", context);
}

}  // namespace tensord::cuda
