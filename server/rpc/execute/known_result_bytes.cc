#include "server/rpc/execute/known_result_bytes.h"

#include <algorithm>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/exec/binding/bound_program.h"

namespace tensord::server {
namespace {

constexpr int64_t kBeyondAnyMemory = int64_t{1} << 60;

}  // namespace

absl::StatusOr<int64_t> KnownResultBytes(const CompiledProgram& program, absl::Span<const size_t> results,
                                         absl::Span<const RunTensor> arguments, int64_t least_bytes) {
  std::vector<ConcreteType> types;
  for (const RunTensor& argument : arguments) types.push_back(argument.type);
  ASSIGN_OR_RETURN(const SizeBinding sizes, BindSizes(program.program(), types));
  int64_t bytes = 0;
  for (const size_t result : results) {
    const TensorType& type = program.program().wire_outputs[result];
    const bool exact =
        std::all_of(type.shape.begin(), type.shape.end(), [](const Dim& dim) { return dim.extent == Extent::kExact; });
    if (!exact) continue;
    ASSIGN_OR_RETURN(const ConcreteType concrete, sizes.Resolve(type));
    // No sum of sizes that fit into memory is near this.
    const int64_t counted = std::max(concrete.num_bytes(), least_bytes);
    bytes = std::min(bytes + std::min(counted, kBeyondAnyMemory), kBeyondAnyMemory);
  }
  return bytes;
}

}  // namespace tensord::server
