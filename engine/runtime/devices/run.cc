#include "engine/runtime/devices/run.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "engine/base/program_at_work.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/base/steady_time.h"
#include "engine/base/stop_signal.h"
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

// Returns the argument as a buffer of the device. A donated one comes in a buffer that only the run has, as a run needs
// it that writes there (Buffer::HasOnlyOwners).
absl::StatusOr<BufferPtr> BufferOf(const RunTensor& argument, const CompiledProgram& program, const RunCheck& check) {
  if (argument.buffer == nullptr) {
    return program.backend()->Import(argument.bytes.get(), argument.type.num_bytes(), argument.bytes);
  }
  // Not its address either, which may be another's by now.
  if (argument.buffer->is_lost()) {
    return Refuse(Refusal::kDeviceLost,
                  "the device has failed since this tensor was made, and what it held is gone; make it again");
  }
  if (argument.reversal != nullptr) return argument.reversal->Run(argument.buffer, check);
  if (argument.reversed) return program.InSlotOrder(argument.type, argument.buffer, check);
  if (!argument.donated) return argument.buffer;
  return std::make_shared<const Buffer>(
      argument.buffer->address(), argument.buffer->size_bytes(), [owner = argument.buffer](void*, int64_t) {},
      argument.buffer->loss());
}

// Exports the results that are wanted on the host, all of them with one wait. `buffers` are those of the results.
absl::Status ExportWanted(const RunRequest& request, std::vector<BufferPtr> buffers, std::vector<RunTensor>* results) {
  absl::InlinedVector<std::shared_ptr<const void>, 4> bytes(buffers.size());
  for (size_t i = 0; i < std::min(buffers.size(), request.stays.size()); ++i) {
    if (request.stays[i]) buffers[i] = nullptr;
  }
  RETURN_IF_ERROR(request.program->backend()->ExportAll(buffers, absl::MakeSpan(bytes)));
  for (size_t i = 0; i < bytes.size(); ++i) (*results)[i].bytes = std::move(bytes[i]);
  return absl::OkStatus();
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
  for (const RunTensor& argument : request.arguments) types.push_back(argument.type);
  absl::InlinedVector<bool, 16> donated;
  std::vector<BufferPtr> arguments;
  arguments.reserve(request.arguments.size());
  const RunCheck check = [&request] { return CheckWanted(request); };
  StopSignal stop(check);
  const StopSignal::Scope scope(&stop);  // also for what waits outside sessions, as for a device that is made anew
  for (const RunTensor& argument : request.arguments) {
    ASSIGN_OR_RETURN(BufferPtr buffer, BufferOf(argument, program, check));
    // Where all sizes but one are 1 the other order is the same memory.
    donated.push_back(argument.reversed ? buffer->address() != argument.buffer->address() : argument.donated);
    arguments.push_back(std::move(buffer));
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
                   program.Run(types, arguments, check, request.profile || is_sampled ? &times : nullptr, donated,
                               destinations, memory));

  *segments = results.segments;
  if (is_sampled) request.segment_times->Add(program.device(), times);

  RunOutcome outcome{.queue_time = queue_time, .peak_bytes = results.peak_bytes};
  outcome.results.reserve(results.buffers.size());
  for (size_t i = 0; i < results.buffers.size(); ++i) {
    // Arguments, constants and other results that lie there would be owners too.
    const bool sole = Buffer::HasOnlyOwners(results.buffers[i], 1) && IsMostOfItsMemory(*results.buffers[i]);
    outcome.results.push_back({.type = std::move(results.types[i]), .buffer = results.buffers[i], .sole = sole});
  }
  RETURN_IF_ERROR(ExportWanted(request, std::move(results.buffers), &outcome.results));
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
