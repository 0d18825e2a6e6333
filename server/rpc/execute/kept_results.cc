#include "server/rpc/execute/kept_results.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "engine/base/status_macros.h"
#include "server/rpc/execute/known_result_bytes.h"
#include "server/sessions/session.h"

namespace tensord::server {
namespace {

// Returns the use of the claim whose memory this is, all of it.
std::optional<size_t> UseOf(const RunTensor& result, const HandleClaim& claim,
                            absl::Span<const std::shared_ptr<ResidentMemory>> memories) {
  for (size_t i = 0; i < memories.size(); ++i) {
    if (memories[i]->address() == result.buffer->address() && claim.TypeOf(i).num_bytes() == result.type.num_bytes() &&
        result.type.num_bytes() > 0) {
      return i;
    }
  }
  return std::nullopt;
}

// Lets the result read that memory instead of its own, which holds the same.
void ReadInstead(const std::shared_ptr<ResidentMemory>& memory, RunTensor* result) {
  const bool is_host_memory = result->bytes != nullptr && result->bytes.get() == result->buffer->address();
  result->buffer = ResidentMemory::Read(memory);
  if (is_host_memory) result->bytes = std::shared_ptr<const void>(result->buffer, result->buffer->address());
}

ResidentType TypeOf(const RunTensor& result, const CompiledProgram& program) {
  ResidentType type{.device = program.device(), .type = result.type, .order = Order::kColumnMajor};
  if (program.program().row_major) {
    type.order = Order::kRowMajor;
    std::reverse(type.type.shape.begin(), type.type.shape.end());
  }
  return type;
}

}  // namespace

absl::Status KeptResults::Charge(const CompiledProgram& program, absl::Span<const RunTensor> arguments,
                                 const HandleClaim& claim, absl::Span<const bool> writable) {
  ASSIGN_OR_RETURN(const int64_t needed, KnownResultBytes(program, results_, arguments, kHandleBytes));
  // Arguments that the run reads as a copy in another order live on, unread, until it is over.
  absl::flat_hash_set<const void*> read;
  for (const RunTensor& argument : arguments) {
    if (argument.buffer != nullptr && !argument.reversed) read.insert(argument.buffer->address());
  }
  int64_t given = 0;
  for (size_t i = 0; i < writable.size(); ++i) {
    if (!writable[i]) continue;
    ASSIGN_OR_RETURN(const std::shared_ptr<ResidentMemory> memory, claim.MemoryOf(i));
    if (read.contains(memory->address())) given += memory->charged_bytes();
  }
  const Session& session = *claim.session();
  ASSIGN_OR_RETURN(charge_,
                   session.ledger()->Charge(session.tenant(), program.device(), std::max(int64_t{0}, needed - given)));
  return absl::OkStatus();
}

absl::StatusOr<MemoryCharge> KeptResults::ChargeFor(int64_t bytes, const HandleClaim& claim,
                                                    const std::string& device) {
  MemoryCharge charge = charge_.Take(bytes);
  if (charge.bytes() < bytes) {
    const Session& session = *claim.session();
    ASSIGN_OR_RETURN(MemoryCharge rest, session.ledger()->Charge(session.tenant(), device, bytes - charge.bytes()));
    charge.Add(std::move(rest));
  }
  return charge;
}

absl::StatusOr<std::vector<HandleClaim::Kept>> KeptResults::Take(const CompiledProgram& program,
                                                                 const HandleClaim& claim,
                                                                 absl::Span<const bool> writable,
                                                                 std::vector<RunTensor>* results) {
  std::vector<std::shared_ptr<ResidentMemory>> memories;
  for (size_t i = 0; i < claim.num_uses(); ++i) {
    ASSIGN_OR_RETURN(memories.emplace_back(), claim.MemoryOf(i));
  }
  std::vector<std::optional<size_t>> use_of;
  std::vector<bool> is_kept(memories.size(), false);
  for (const size_t result : results_) {
    use_of.push_back(UseOf((*results)[result], claim, memories));
    if (use_of.back().has_value()) is_kept[*use_of.back()] = true;
  }
  // Donated arguments that are no result pay for the results.
  for (size_t i = 0; i < writable.size(); ++i) {
    if (writable[i] && !is_kept[i]) charge_.Add(memories[i]->TakeCharge());
  }
  std::vector<HandleClaim::Kept> kept;
  for (size_t k = 0; k < results_.size(); ++k) {
    RunTensor& result = (*results)[results_[k]];
    ResidentType type = TypeOf(result, program);
    if (use_of[k].has_value()) {
      // A donated argument leaves a handle for it.
      if (!claim.IsDonated(*use_of[k])) RETURN_IF_ERROR(memories[*use_of[k]]->CheckAnotherName());
      kept.push_back({.type = std::move(type), .memory = memories[*use_of[k]]});
    } else {
      ASSIGN_OR_RETURN(MemoryCharge charge, ChargeFor(ChargedBytes(result.type.num_bytes()), claim, program.device()));
      BufferPtr buffer = result.buffer;
      if (!result.sole) {
        ASSIGN_OR_RETURN(buffer, program.backend()->Copy(*result.buffer));
      }
      kept.push_back(
          {.type = std::move(type), .memory = std::make_shared<ResidentMemory>(std::move(buffer), std::move(charge))});
    }
    ReadInstead(kept.back().memory, &result);
  }
  charge_.Release();
  return kept;
}

}  // namespace tensord::server
