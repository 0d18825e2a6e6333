#include "server/rpc/execute/known_result_bytes.h"

#include <algorithm>
#include <vector>

#include "absl/algorithm/container.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/exec/binding/bound_program.h"
#include "server/rpc/execute/execute_response.h"

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

absl::StatusOr<int64_t> KnownSentBytes(const v1::ExecuteRequest& request, const CompiledProgram& program,
                                       const RunRequest& run) {
  std::vector<size_t> sent;
  for (size_t i = 0; i < program.program().outputs.size(); ++i) {
    const int index = static_cast<int>(i);
    const bool has_data =
        index >= request.results_size() || (IsSent(request.results(index)) && !request.results(index).has_shared());
    if (has_data) sent.push_back(i);
  }
  ASSIGN_OR_RETURN(const int64_t bytes, KnownResultBytes(program, sent, run.arguments));
  if (bytes <= kMaxResponseBytes) return bytes;
  return RefuseLimit("response_bytes", kMaxResponseBytes, bytes, "bytes of the response");
}

bool DecidesSizes(const CompiledProgram& program) {
  return absl::c_any_of(program.program().wire_outputs, [](const TensorType& type) {
    return absl::c_any_of(type.shape, [](const Dim& dim) { return dim.extent != Extent::kExact; });
  });
}

}  // namespace tensord::server
