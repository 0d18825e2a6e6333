#include "server/rpc/run_here.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"

namespace tensord::server {
namespace {

// Together some microseconds at most, whatever the core ops do with so few bytes.
constexpr size_t kMaxInstructions = 16;
constexpr int64_t kMaxBytes = 32 << 10;

int64_t SlotBytes(const ExecProgram& program) {
  int64_t bytes = 0;
  for (const TensorType& type : program.slot_types) {
    int64_t size = SizeOf(type.dtype);
    for (const Dim& dim : type.shape) {
      const int64_t extent = dim.size.constant();
      if (extent > kMaxBytes) return kMaxBytes + 1;
      size *= extent;
      if (size > kMaxBytes) return kMaxBytes + 1;
    }
    bytes += size;
  }
  return bytes;
}

}  // namespace

bool IsWorthNoThread(const CompiledProgram& program) {
  const ExecProgram& exec = program.program();
  if (exec.instructions.size() > kMaxInstructions || exec.slot_types.size() > 4 * kMaxInstructions) return false;
  for (const ExecInstruction& instruction : exec.instructions) {
    if (instruction.op->family != "core") return false;
  }
  return exec.is_static() && SlotBytes(exec) <= kMaxBytes;
}

absl::StatusOr<RunOutcome> RunHere(const CompiledProgram& program, absl::Span<const HostTensor> arguments) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<ConcreteType> types;
  std::vector<BufferPtr> buffers;
  types.reserve(arguments.size());
  buffers.reserve(arguments.size());
  for (const HostTensor& argument : arguments) types.push_back(argument.type);
  ASSIGN_OR_RETURN(const std::shared_ptr<const BoundProgram> bound, program.Bind(types));
  for (const HostTensor& argument : arguments) {
    ASSIGN_OR_RETURN(BufferPtr buffer,
                     program.backend()->Import(argument.bytes.get(), argument.type.num_bytes(), argument.bytes));
    buffers.push_back(std::move(buffer));
  }
  ASSIGN_OR_RETURN(std::vector<BufferPtr> results, bound->Run(buffers));

  RunOutcome outcome;
  outcome.peak_bytes = bound->peak_bytes();
  outcome.results.reserve(results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    ASSIGN_OR_RETURN(std::shared_ptr<const void> bytes, program.backend()->Export(std::move(results[i])));
    const Slot slot = program.program().outputs[i].slot;
    outcome.results.push_back({bound->slot_types()[static_cast<size_t>(slot)], std::move(bytes)});
  }
  outcome.run_time = absl::FromChrono(std::chrono::steady_clock::now() - start);
  return outcome;
}

}  // namespace tensord::server
