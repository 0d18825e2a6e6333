#include "engine/runtime/devices/begun_run.h"

#include <algorithm>
#include <utility>

#include "engine/base/program_at_work.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/base/stop_signal.h"
#include "engine/exec/memory/block_placement.h"

namespace tensord {
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

std::vector<BufferPtr> DestinationsOf(const RunRequest& request, const CompiledProgram& program) {
  std::vector<BufferPtr> destinations;
  if (!program.takes_destinations()) return destinations;
  for (const HostSpace& space : request.destinations) {
    destinations.push_back(space.bytes == nullptr
                               ? nullptr
                               : std::make_shared<const Buffer>(space.bytes.get(), space.size_bytes,
                                                                [owner = space.bytes](void*, int64_t) {}));
  }
  return destinations;
}

}  // namespace

absl::Status BegunRun::Begin(const RunRequest& request, const RunCheck& check) {
  if (request.quarantine != nullptr) RETURN_IF_ERROR(request.quarantine->Check(request.program->fingerprint()));
  if (request.admit != nullptr) RETURN_IF_ERROR(request.admit());
  if (request.started != nullptr) request.started->Mark(start_);
  types_.reserve(request.arguments.size());
  for (const RunTensor& argument : request.arguments) types_.push_back(argument.type);
  arguments_.reserve(request.arguments.size());
  for (const RunTensor& argument : request.arguments) {
    ASSIGN_OR_RETURN(BufferPtr buffer, BufferOf(argument, *request.program, check));
    // Where all sizes but one are 1 the other order is the same memory.
    donated_.push_back(argument.reversed ? buffer->address() != argument.buffer->address() : argument.donated);
    arguments_.push_back(std::move(buffer));
  }
  is_sampled_ = request.segment_times != nullptr && request.segment_times->TimesThisRun();
  program_ = request.program;
  if (program_->decides_sizes()) {
    ASSIGN_OR_RETURN(program_, request.program->ProgramFor(types_, check));
  }
  if (program_->staged() == nullptr) {
    destinations_ = DestinationsOf(request, *program_);
    return absl::OkStatus();
  }
  program_->tally().Begun();
  ASSIGN_OR_RETURN(staged_, program_->staged()->Start(types_, arguments_, donated_));
  return absl::OkStatus();
}

absl::StatusOr<std::optional<ProgramResults>> BegunRun::Run(const RunRequest& request, const RunCheck& check,
                                                            const Step& step) {
  RunTimes* const times = request.profile || is_sampled_ ? &times_ : nullptr;
  if (staged_ == nullptr) {
    return program_->Run(types_, arguments_, check, times, donated_, destinations_);
  }
  return staged_->GoOn({.check = check, .memory = step.memory, .times = times, .binds_stages = !step.stops_for_stages});
}

absl::StatusOr<RunOutcome> BegunRun::End(const RunRequest& request, ProgramResults results) {
  staged_ = nullptr;  // whose values are owners of the results
  segments_ = results.segments;
  if (is_sampled_) request.segment_times->Add(request.program->device(), times_);
  RunOutcome outcome{.queue_time = queue_time_, .peak_bytes = results.peak_bytes};
  outcome.results.reserve(results.buffers.size());
  for (size_t i = 0; i < results.buffers.size(); ++i) {
    // Arguments, constants and other results that lie there would be owners too.
    const bool sole = Buffer::HasOnlyOwners(results.buffers[i], 1) && IsMostOfItsMemory(*results.buffers[i]);
    outcome.results.push_back({.type = std::move(results.types[i]), .buffer = results.buffers[i], .sole = sole});
  }
  RETURN_IF_ERROR(ExportWanted(request, std::move(results.buffers), &outcome.results));
  outcome.run_time = absl::FromChrono(std::chrono::steady_clock::now() - start_);
  request.program->tally().Succeeded(request.tenant, outcome.run_time);
  if (request.profile) outcome.profile = MakeProfile(times_, start_);
  return outcome;
}

absl::StatusOr<std::optional<RunOutcome>> BegunRun::RunUncounted(const RunRequest& request, const Step& step) {
  if (program_ == nullptr) start_ = std::chrono::steady_clock::now();
  RETURN_IF_ERROR(CheckWanted(request));
  const RunCheck check = [&request] { return CheckWanted(request); };
  StopSignal stop(check);
  const StopSignal::Scope scope(&stop);  // also for what waits outside sessions, as for a device that is made anew
  if (program_ == nullptr) RETURN_IF_ERROR(Begin(request, check));
  ASSIGN_OR_RETURN(std::optional<ProgramResults> results, Run(request, check, step));
  if (!results.has_value()) return std::nullopt;
  return End(request, *std::move(results));
}

absl::StatusOr<std::optional<RunOutcome>> BegunRun::GoOn(const RunRequest& request, const Step& step) {
  const ProgramAtWork at_work(request.program->fingerprint(), ProgramWork::kRun);
  if (request.events == nullptr) return RunUncounted(request, step);
  try {
    absl::StatusOr<std::optional<RunOutcome>> outcome = RunUncounted(request, step);
    if (!outcome.ok() || outcome->has_value()) request.events->RunEnded(outcome.status(), segments_);
    return outcome;
  } catch (...) {  // a library ran out of memory; whoever called makes a refusal of it
    request.events->RunEnded(absl::InternalError(""), 0);
    throw;
  }
}

void BegunRun::GivenUp(const RunRequest& request, const absl::Status& status) const {
  if (request.events != nullptr) request.events->RunEnded(status, 0);
}

}  // namespace tensord
