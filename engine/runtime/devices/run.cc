#include "engine/runtime/devices/run.h"

#include <chrono>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "engine/base/program_at_work.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/base/steady_time.h"
#include "engine/exec/memory/block_placement.h"

namespace tensord {

absl::Status CheckWanted(const RunRequest& request) {
  if (request.cancel != nullptr && request.cancel->cancelled()) {
    return Refuse(Refusal::kCancelled, "the client cancelled the run");
  }
  if (SteadyNow() >= request.deadline) {
    return Refuse(Refusal::kDeadlineExceeded, "the deadline passed before the run was over; allow more time");
  }
  return absl::OkStatus();
}

namespace {

// Returns true for a result of the size that a plan gives its memory, which may hold temporaries before.
bool IsMostOfItsMemory(const Buffer& result) {
  return result.memory().size_bytes() <= result.size_bytes() + result.size_bytes() / 8 + kBufferAlignment;
}

// `segments` becomes how many ran, where the program did.
absl::StatusOr<RunOutcome> RunUncounted(const RunRequest& request, absl::Duration queue_time,
                                        const MemoryRequest& memory, int64_t* segments) {
  const auto start = std::chrono::steady_clock::now();
  RETURN_IF_ERROR(CheckWanted(request));
  if (request.quarantine != nullptr) RETURN_IF_ERROR(request.quarantine->Check(request.program->fingerprint()));
  if (request.admit != nullptr) RETURN_IF_ERROR(request.admit());
  if (request.started != nullptr) request.started->Mark(start);
  const CompiledProgram& program = *request.program;
  std::vector<ConcreteType> types;
  types.reserve(request.arguments.size());
  for (const HostTensor& argument : request.arguments) types.push_back(argument.type);
  absl::InlinedVector<bool, 16> donated;
  std::vector<BufferPtr> arguments;
  arguments.reserve(request.arguments.size());
  for (const HostTensor& argument : request.arguments) {
    ASSIGN_OR_RETURN(BufferPtr buffer,
                     program.backend()->Import(argument.bytes.get(), argument.type.num_bytes(), argument.bytes));
    arguments.push_back(std::move(buffer));
    donated.push_back(argument.donated);
  }
  std::vector<BufferPtr> destinations;
  if (program.takes_destinations()) {
    for (const HostSpace& space : request.destinations) {
      destinations.push_back(space.bytes == nullptr
                                 ? nullptr
                                 : std::make_shared<const Buffer>(space.bytes.get(), space.size_bytes,
                                                                  [owner = space.bytes](void*, int64_t) {}));
    }
  }
  RunTimes times;
  const bool is_sampled = request.segment_times != nullptr && request.segment_times->TimesThisRun();
  ASSIGN_OR_RETURN(ProgramResults results,
                   program.Run(
                       types, arguments, [&request] { return CheckWanted(request); },
                       request.profile || is_sampled ? &times : nullptr, donated, destinations, memory));

  *segments = results.segments;
  if (is_sampled) request.segment_times->Add(program.device(), times);

  RunOutcome outcome{.queue_time = queue_time, .peak_bytes = results.peak_bytes};
  for (size_t i = 0; i < results.buffers.size(); ++i) {
    // Arguments, constants and other results that lie there would be owners too.
    const bool sole = Buffer::HasOnlyOwners(results.buffers[i], 1) && IsMostOfItsMemory(*results.buffers[i]);
    ASSIGN_OR_RETURN(std::shared_ptr<const void> bytes, program.backend()->Export(std::move(results.buffers[i])));
    outcome.results.push_back({.type = std::move(results.types[i]), .bytes = std::move(bytes), .sole = sole});
  }
  outcome.run_time = absl::FromChrono(std::chrono::steady_clock::now() - start);
  program.tally().Succeeded(request.tenant, outcome.run_time);
  if (request.profile) outcome.profile = MakeProfile(times, start);
  return outcome;
}

}  // namespace

absl::StatusOr<RunOutcome> RunProgram(const RunRequest& request, absl::Duration queue_time,
                                      const MemoryRequest& memory) {
  const ProgramAtWork at_work(request.program->fingerprint(), ProgramWork::kRun);
  int64_t segments = 0;
  if (request.events == nullptr) return RunUncounted(request, queue_time, memory, &segments);
  try {
    absl::StatusOr<RunOutcome> outcome = RunUncounted(request, queue_time, memory, &segments);
    request.events->RunEnded(outcome.status(), segments);
    return outcome;
  } catch (...) {  // a library ran out of memory; whoever called makes a refusal of it
    request.events->RunEnded(absl::InternalError(""), 0);
    throw;
  }
}

}  // namespace tensord
