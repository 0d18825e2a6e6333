// The part of DeviceExecutor that has to do with runs that stop in their middle.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/runtime/devices/device_executor.h"

namespace tensord {

absl::StatusOr<bool> DeviceExecutor::PromiseMore(QueuedRun* run, int64_t peak_bytes) {
  const int64_t bytes = BytesBeside(run->request, peak_bytes);
  MutexLock lock(&mutex_);
  // A run that began without a bound is not counted.
  if (!run->bytes.has_value() || !IsBoundedLocked() || bytes <= run->promised) return true;
  if (stopping_) return Draining();
  RETURN_IF_ERROR(CheckWanted(run->request));
  RETURN_IF_ERROR(CheckMemoryLocked(bytes));
  const int64_t more = bytes - run->promised;
  if (!FitsLocked(more)) {
    run->wanted = bytes;
    return false;
  }
  run->promised = bytes;
  stats_.promised_bytes += more;
  return true;
}

absl::Status DeviceExecutor::SetAside(QueuedRun* run, size_t worker, absl::Duration used) {
  std::optional<WantedStage> stage = run->begun->TakeWanted();
  const CompiledProgramPtr program = run->begun->program();
  CompilePool* const pool = run->request.compile_pool;
  const std::string tenant = run->request.tenant;
  const uint64_t id = run->id;
  const int64_t stop = ++run->stops;
  {
    MutexLock lock(&mutex_);
    if (stopping_) return Draining();
    RETURN_IF_ERROR(CheckWanted(run->request));  // a later cancel finds it aside
    stats_.busy[worker] += used;
    ends_.erase(id);
    stage.has_value() ? aside_.AwaitStage(std::move(*run)) : aside_.AwaitTurn(std::move(*run));
    if (aside_.first_deadline() < watched_) leave_.Signal();
  }
  if (!stage.has_value()) return absl::OkStatus();
  const auto bound = [door = door_, id](absl::StatusOr<BegunRun::BoundPtr> made, absl::Duration) {
    MutexLock lock(&door->mutex);
    if (door->executor != nullptr) door->executor->StageIsBound(id, std::move(made));
  };
  CompiledProgram::LeaveSized leave = program->CompileStage(*std::move(stage), pool, tenant, bound);
  if (leave == nullptr) return absl::OkStatus();
  {
    MutexLock lock(&mutex_);
    QueuedRun* const waits = aside_.FindAwaiting(id);
    if (waits != nullptr && waits->stops == stop) {
      waits->leave = std::move(leave);
      return absl::OkStatus();
    }
  }
  leave();  // it waits no more
  return absl::OkStatus();
}

void DeviceExecutor::StageIsBound(uint64_t id, absl::StatusOr<BegunRun::BoundPtr> stage) {
  MutexLock lock(&mutex_);
  QueuedRun* const run = aside_.EndAwaiting(id);
  if (run == nullptr) return;  // it was cancelled, or is late
  run->leave = nullptr;
  if (stage.ok()) {
    run->begun->Bring(*std::move(stage));
  } else {
    run->refusal = stage.status();
  }
  wake_.Signal();
}

// The oldest first.
std::optional<QueuedRun> DeviceExecutor::TakeAsideLocked() {
  for (const auto& [id, waiting] : aside_.waiting()) {
    absl::Status refusal = waiting.wanted > 0 ? CheckMemoryLocked(waiting.wanted) : absl::OkStatus();
    const int64_t more = std::max<int64_t>(0, waiting.wanted - waiting.promised);
    if (refusal.ok() && more > 0 && !FitsLocked(more)) continue;
    QueuedRun run = aside_.Take(id);
    run.wanted = 0;
    run.refusal.Update(std::move(refusal));
    if (run.refusal.ok()) {
      run.promised += more;
      stats_.promised_bytes += more;
    }
    return run;
  }
  if (aside_.num_growing() == 0 || aside_.num_growing() < stats_.running) return std::nullopt;
  // None of them would ever go on.
  QueuedRun run = aside_.Take(aside_.waiting().rbegin()->first);
  ++stats_.out_of_memory;
  run.refusal =
      RefuseLimit(Refusal::kOutOfMemory, absl::StrCat(backend_->kind(), ".memory_bytes"), bounds_.memory_bytes,
                  stats_.promised_bytes + resident_bytes_ + std::exchange(run.wanted, 0) - run.promised,
                  "bytes of memory that runs need whose sizes are decided as they go on");
  return run;
}

void DeviceExecutor::LeaveAsideLocked(QueuedRun run) {
  EndLocked(run, /*ok=*/false);
  run.refusal = CheckWanted(run.request);
  leaving_.push_back(std::move(run));
  leave_.Signal();
}

}  // namespace tensord
