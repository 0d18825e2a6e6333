#include "engine/runtime/devices/device_executor.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/base/steady_time.h"
#include "engine/base/thread_niceness.h"

namespace tensord {
namespace {

constexpr absl::Duration kLeastRetry = absl::Milliseconds(1);
constexpr absl::Duration kMostRetry = absl::Seconds(30);
// How long the watching thread sleeps at most: deadlines further away than that are looked at again.
constexpr absl::Duration kMostSleep = absl::Hours(1);

absl::Duration Retry(absl::Duration after) { return std::clamp(after, kLeastRetry, kMostRetry); }

std::string Milliseconds(absl::Duration time) {
  return absl::StrCat(absl::ToInt64Milliseconds(absl::Ceil(time, absl::Milliseconds(1))), " ms");
}

std::vector<ConcreteType> TypesOf(const RunRequest& request) {
  std::vector<ConcreteType> types;
  types.reserve(request.arguments.size());
  for (const RunTensor& argument : request.arguments) types.push_back(argument.type);
  return types;
}

absl::Duration ExpectedTime(const RunRequest& request) {
  if (request.program->has_one_time()) return request.program->expected_time({});
  return request.program->expected_time(TypesOf(request));
}

void Doubt(const RunRequest& request) { request.program->DoubtRunTime(TypesOf(request)); }

}  // namespace

absl::Status DeviceExecutor::Draining() {
  return Refuse(Refusal::kServerDraining, "the server is shutting down; try another replica");
}

int64_t DeviceExecutor::BytesBeside(const RunRequest& request, int64_t peak_bytes) {
  return std::max<int64_t>(0, peak_bytes - request.resident_bytes);
}

DeviceExecutor::DeviceExecutor(std::string device, Backend* backend, const Options& options)
    : device_(std::move(device)),
      backend_(backend),
      computes_here_(backend->Describe().computes_on_caller),
      options_(options),
      bounds_({.max_queued = options.max_queued,
               .max_queued_per_tenant = options.max_queued_per_tenant,
               .max_wait = options.max_wait,
               .ageing = options.ageing,
               .memory_bytes = options.memory_bytes}),
      queue_({.ageing = options.ageing}) {
  {
    MutexLock lock(&door_->mutex);
    door_->executor = this;
  }
  stats_.busy.resize(static_cast<size_t>(options.workers));
  watcher_ = std::thread([this] { WatchLoop(); });
  threads_.reserve(static_cast<size_t>(options.workers));
  for (int i = 0; i < options.workers; ++i) threads_.emplace_back([this, i] { WorkLoop(static_cast<size_t>(i)); });
}

DeviceExecutor::~DeviceExecutor() { Stop(); }

void DeviceExecutor::Stop() {
  std::vector<QueuedRun> refused;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    refused = queue_.TakeAll();
    for (QueuedRun& run : aside_.TakeAll()) {
      EndLocked(run, /*ok=*/false);
      refused.push_back(std::move(run));
    }
  }
  {
    MutexLock lock(&door_->mutex);
    door_->executor = nullptr;
  }
  wake_.SignalAll();
  leave_.SignalAll();
  for (QueuedRun& run : refused) Answer(std::move(run), Draining());
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
  if (watcher_.joinable()) watcher_.join();
}

void DeviceExecutor::Answer(QueuedRun run, absl::Status status) const {
  if (run.leave != nullptr) run.leave();
  if (run.begun != nullptr) {
    run.begun->GivenUp(run.request, status);
    run.begun = nullptr;
  }
  if (run.request.cancel != nullptr) run.request.cancel->Forget(run.listener);
  run.request.done(std::move(status));
}

absl::Status DeviceExecutor::CheckMemoryLocked(int64_t bytes) {
  const int64_t most = bounds_.memory_bytes;
  if (!IsBoundedLocked() || bytes <= most - resident_bytes_) return absl::OkStatus();
  ++stats_.out_of_memory;
  const std::string limit = absl::StrCat(backend_->kind(), ".memory_bytes");
  if (resident_bytes_ == 0 || bytes > most) {
    return RefuseLimit(Refusal::kOutOfMemory, limit, most, bytes, "bytes of memory that the run needs");
  }
  return RefuseLimit(
      Refusal::kOutOfMemory, limit, most, bytes + resident_bytes_,
      absl::StrCat("bytes of memory that the run needs beside resident tensors, which take ", resident_bytes_));
}

void DeviceExecutor::SetBounds(const Bounds& bounds) {
  {
    MutexLock lock(&mutex_);
    if (bounds.ageing != bounds_.ageing) queue_.SetAgeing(bounds.ageing, SteadyNow());
    bounds_ = bounds;
  }
  // Waiting runs may fit now, or fit no more.
  wake_.SignalAll();
}

DeviceExecutor::Bounds DeviceExecutor::bounds() const {
  MutexLock lock(&mutex_);
  return bounds_;
}

void DeviceExecutor::AddResident(int64_t more) {
  {
    MutexLock lock(&mutex_);
    resident_bytes_ += more;
    if (!IsBoundedLocked()) return;
  }
  wake_.SignalAll();  // as after SetBounds
}

absl::Status DeviceExecutor::CheckWaitLocked(const RunRequest& request, absl::Time now) const {
  const RunQueue::Claim claim = {.tenant = request.tenant, .priority = request.priority, .deadline = request.deadline};
  std::vector<absl::Duration> rests;
  for (const auto& [id, ends] : ends_) rests.push_back(std::max(absl::ZeroDuration(), ends - now));
  rests.resize(static_cast<size_t>(options_.workers));  // others are free, or nobody knows how long they take
  const absl::Duration wait = queue_.LeastWait(claim, now, std::move(rests));
  // A run with nothing before it always gets its chance, and shows the current time of a run.
  if (wait <= absl::ZeroDuration()) return absl::OkStatus();
  if (wait > bounds_.max_wait) {
    return RefuseLimit(Refusal::kQueueFull, "scheduling.max_wait_ms", absl::ToInt64Milliseconds(bounds_.max_wait),
                       absl::ToInt64Milliseconds(wait), absl::StrCat("milliseconds before the run's turn on ", device_),
                       Retry(wait - bounds_.max_wait));
  }
  // An eighth of the wait covers the spread of measurements: a run that starts too late to end in time costs another
  // its turn.
  const absl::Duration begins = wait + wait / 8;
  const absl::Duration needed = begins + ExpectedTime(request);
  if (now + needed <= request.deadline) return absl::OkStatus();
  if (now + begins < request.deadline) Doubt(request);
  return WithRetryAfter(Refuse(Refusal::kDeadlineUnreachable,
                               absl::StrCat("what waits for ", device_,
                                            " takes longer than the deadline allows: the run would end in about ",
                                            Milliseconds(needed), ", and has ", Milliseconds(request.deadline - now))),
                        Retry(wait));
}

// While more comes than can be done nearly all answers are this one, and the time they take is taken from the runs: it
// is made anew only where the last one is not about right any more.
absl::Status DeviceExecutor::RefusePlaceLocked(bool of_tenant, int64_t most, int64_t actual) {
  // Half of the waiting work will be gone by then.
  const absl::Duration retry_after = Retry(queue_.work() / (2 * options_.workers));
  const bool is_right = full_.of_tenant == of_tenant && full_.most == most && full_.actual == actual &&
                        absl::AbsDuration(retry_after - full_.retry_after) <= full_.retry_after / 8;
  if (is_right) return full_.refusal;
  const std::string limit =
      of_tenant ? "scheduling.tenant_queue_percent" : absl::StrCat(backend_->kind(), ".queue_length");
  const std::string what = absl::StrCat(of_tenant ? "runs of one tenant" : "runs", " that wait for ", device_);
  full_ = {.of_tenant = of_tenant,
           .most = most,
           .actual = actual,
           .retry_after = retry_after,
           .refusal = RefuseLimit(Refusal::kQueueFull, limit, most, actual, what, retry_after)};
  return full_.refusal;
}

absl::Status DeviceExecutor::CheckPlaceLocked(const RunRequest& request, absl::Time now) {
  ExpireLocked(now);
  if (queue_.size() >= bounds_.max_queued) {
    return RefusePlaceLocked(/*of_tenant=*/false, bounds_.max_queued, queue_.size() + 1);
  }
  const int64_t own = queue_.size_of(request.tenant);
  if (own >= bounds_.max_queued_per_tenant) {
    return RefusePlaceLocked(/*of_tenant=*/true, bounds_.max_queued_per_tenant, own + 1);
  }
  return CheckWaitLocked(request, now);
}

absl::Status DeviceExecutor::CheckRoomLocked(const RunRequest& request, absl::Time now) {
  if (stopping_) return Draining();
  RETURN_IF_ERROR(CheckMemoryLocked(BytesBeside(request, request.program->static_peak_bytes().value_or(0))));
  absl::Status place = CheckPlaceLocked(request, now);
  if (!place.ok()) last_full_ns_.store(absl::ToUnixNanos(now), std::memory_order_relaxed);
  return place;
}

absl::Status DeviceExecutor::CheckRoom(const RunRequest& request) {
  MutexLock lock(&mutex_);
  return CheckRoomLocked(request, SteadyNow());
}

absl::Status DeviceExecutor::Submit(RunRequest request) {
  RETURN_IF_ERROR(CheckWanted(request));
  const uint64_t id = ++last_id_;
  const std::shared_ptr<const CancelToken> cancel = request.cancel;
  QueuedRun run{.request = std::move(request)};
  run.bytes = run.request.program->static_peak_bytes();
  if (run.bytes.has_value()) run.bytes = BytesBeside(run.request, *run.bytes);
  run.expected = ExpectedTime(run.request);
  // Before the run is in the queue: a worker that takes it stops listening.
  const CancelToken::Listener listener = cancel == nullptr ? 0 : cancel->Listen([this, id] { Cancelled(id); });
  run.listener = listener;
  const absl::Status taken = Enqueue(id, std::move(run));
  if (taken.ok()) {
    wake_.Signal();
  } else if (cancel != nullptr) {
    cancel->Forget(listener);
  }
  return taken;
}

absl::Status DeviceExecutor::Enqueue(uint64_t id, QueuedRun run) {
  MutexLock lock(&mutex_);
  run.since = SteadyNow();
  RETURN_IF_ERROR(CheckRoomLocked(run.request, run.since));
  // A later cancel finds the run in the queue.
  if (run.request.cancel != nullptr && run.request.cancel->cancelled()) return CheckWanted(run.request);
  queue_.Push(id, std::move(run));
  if (queue_.first_deadline() < watched_) leave_.Signal();
  return absl::OkStatus();
}

void DeviceExecutor::Cancelled(uint64_t id) {
  MutexLock lock(&mutex_);
  if (std::optional<QueuedRun> run = queue_.Remove(id)) return LeaveLocked(*std::move(run));
  if (std::optional<QueuedRun> run = aside_.Remove(id)) LeaveAsideLocked(*std::move(run));
}

void DeviceExecutor::ExpireLocked(absl::Time now) {
  for (QueuedRun& run : queue_.TakeExpired(now)) LeaveLocked(std::move(run));
  for (QueuedRun& run : aside_.TakeExpired(now)) LeaveAsideLocked(std::move(run));
}

void DeviceExecutor::LeaveLocked(QueuedRun run) {
  leaving_.push_back(std::move(run));
  ++stats_.failed;
  leave_.Signal();
  // It may have stood before one whose memory fits.
  if (IsBoundedLocked()) wake_.SignalAll();
}

void DeviceExecutor::WatchLoop() {
  std::vector<QueuedRun> leaving;
  while (true) {
    {
      MutexLock lock(&mutex_);
      while (leaving_.empty() && !stopping_) {
        watched_ = std::min({queue_.first_deadline(), aside_.first_deadline(), SteadyNow() + kMostSleep});
        leave_.WaitUntil(&mutex_, ToSteadyClock(watched_));
        ExpireLocked(SteadyNow());
      }
      if (leaving_.empty()) return;
      leaving.swap(leaving_);
    }
    for (QueuedRun& run : leaving) {
      absl::Status status = run.refusal;
      status.Update(
          run.request.cancel != nullptr && run.request.cancel->cancelled()
              ? Refuse(Refusal::kCancelled, "the client cancelled the run")
              : Refuse(Refusal::kDeadlineExceeded,
                       absl::StrCat("the deadline passed while the run waited for ", device_, "; allow more time")));
      Answer(std::move(run), std::move(status));
    }
    leaving.clear();
  }
}

DeviceExecutor::Stats DeviceExecutor::stats() const {
  MutexLock lock(&mutex_);
  Stats stats = stats_;
  stats.queued = queue_.size();
  stats.queued_bytes = queue_.argument_bytes();
  stats.events = events_.counts();
  for (int level = 0; level < kNumPriorityClasses; ++level) {
    stats.queued_by_class[static_cast<size_t>(level)] = queue_.size_of(level);
  }
  if (stats.queued > 0) stats.oldest_wait = std::max(absl::ZeroDuration(), SteadyNow() - queue_.oldest_since());
  return stats;
}

bool DeviceExecutor::FitsLocked(int64_t bytes) const {
  return !IsBoundedLocked() || bytes <= bounds_.memory_bytes - resident_bytes_ - stats_.promised_bytes;
}

// Runs that wait to go on need the freed memory more than one that would begin.
bool DeviceExecutor::MayStartLocked(const QueuedRun& run) const {
  return aside_.num_growing() == 0 && FitsLocked(run.bytes.value_or(0));
}

std::optional<QueuedRun> DeviceExecutor::TakeNext() {
  MutexLock lock(&mutex_);
  while (!stopping_) {
    if (std::optional<QueuedRun> run = TakeAsideLocked()) return run;
    const QueuedRun* next = queue_.Next(SteadyNow());
    if (next != nullptr && MayStartLocked(*next)) {
      QueuedRun run = queue_.Take(next, std::max(usual_.mean(), absl::Microseconds(1)));
      run.is_bound_first = IsBoundedLocked() && !run.bytes.has_value();
      run.promised = IsBoundedLocked() ? run.bytes.value_or(0) : 0;
      stats_.promised_bytes += run.promised;
      ++stats_.running;
      if (run.expected > absl::ZeroDuration()) ends_.emplace(run.id, SteadyNow() + run.expected);
      return run;
    }
    // Resident tensors may have come since it was let in; runs that rank after it are not to wait for them to go.
    absl::Status refusal = next == nullptr ? absl::OkStatus() : CheckMemoryLocked(next->bytes.value_or(0));
    if (!refusal.ok()) {
      QueuedRun run = *queue_.Remove(next->id);
      run.refusal = std::move(refusal);
      LeaveLocked(std::move(run));
      continue;
    }
    wake_.Wait(&mutex_);
  }
  return std::nullopt;
}

absl::StatusOr<bool> DeviceExecutor::PromiseBound(QueuedRun* run) {
  const RunCheck check = [run] { return CheckWanted(run->request); };
  ASSIGN_OR_RETURN(const int64_t peak_bytes, run->request.program->PeakBytes(TypesOf(run->request), check));
  const int64_t bytes = BytesBeside(run->request, peak_bytes);
  MutexLock lock(&mutex_);
  RETURN_IF_ERROR(CheckMemoryLocked(bytes));
  run->bytes = bytes;
  const bool fits = MayStartLocked(*run);
  const bool wanted = run->request.cancel == nullptr || !run->request.cancel->cancelled();
  if (!fits && !stopping_ && wanted) {
    --stats_.running;
    ends_.erase(run->id);
    queue_.PutBack(std::move(*run));
    if (queue_.first_deadline() < watched_) leave_.Signal();
    return false;
  }
  if (!fits) return stopping_ ? Draining() : CheckWanted(run->request);
  run->promised = bytes;
  stats_.promised_bytes += bytes;
  return true;
}

bool DeviceExecutor::StartsInVain(const QueuedRun& run, absl::Time now) const {
  if (now + run.expected <= run.request.deadline) return false;
  MutexLock lock(&mutex_);
  return queue_.size() > 0;
}

absl::StatusOr<std::optional<RunOutcome>> DeviceExecutor::Execute(QueuedRun* run, absl::Time start) {
  if (!run->refusal.ok()) {  // in its middle
    run->begun->GivenUp(run->request, run->refusal);
    return run->refusal;
  }
  // Its expected time may be too long; where nobody else waits it shows how long it takes now.
  if (run->begun == nullptr && StartsInVain(*run, start)) {
    if (start < run->request.deadline) Doubt(run->request);
    return Refuse(Refusal::kDeadlineExceeded,
                  absl::StrCat("the deadline would pass while the run goes on: it takes about ",
                               Milliseconds(run->expected), ", and when its turn on ", device_, " came it had ",
                               Milliseconds(run->request.deadline - start), "; allow more time"));
  }
  if (!run->request.program->decides_sizes()) return RunProgram(run->request, start - run->since);
  if (run->begun == nullptr) run->begun = std::make_unique<BegunRun>(start - run->since);
  const MemoryRequest memory = [this, run](int64_t peak_bytes) { return PromiseMore(run, peak_bytes); };
  const bool has_pool = run->request.compile_pool != nullptr;
  return run->begun->GoOn(run->request,
                          {.memory = memory, .stops_for_stages = has_pool && run->request.program->prepares_slowly()});
}

Shares DeviceExecutor::TenantShares() const {
  MutexLock lock(&mutex_);
  return SharesOf(queue_.tenants(), bounds_.max_queued_per_tenant);
}

void DeviceExecutor::EndLocked(const QueuedRun& run, bool ok) {
  queue_.End(run, run.used);
  ends_.erase(run.id);
  --stats_.running;
  ++(ok ? stats_.completed : stats_.failed);
  stats_.promised_bytes -= run.promised;
  if (IsBoundedLocked()) wake_.SignalAll();
}

void DeviceExecutor::Finish(const QueuedRun& run, size_t worker, bool ok, absl::Duration used) {
  MutexLock lock(&mutex_);
  stats_.busy[worker] += used;
  EndLocked(run, ok);
}

void DeviceExecutor::ChargeAnswer(const QueuedRun& run, size_t worker, absl::Duration used) {
  MutexLock lock(&mutex_);
  queue_.Charge(run, used);
  stats_.busy[worker] += used;
}

void DeviceExecutor::WorkLoop(size_t worker) {
  if (options_.niceness > 0) LowerThisThread(options_.niceness);
  while (std::optional<QueuedRun> run = TakeNext()) {
    const absl::Time start = SteadyNow();
    const auto measured_from = std::chrono::steady_clock::now();  // the other clock may be set
    bool is_back = false;
    absl::StatusOr<std::optional<RunOutcome>> outcome = [&]() -> absl::StatusOr<std::optional<RunOutcome>> {
      try {
        if (run->begun == nullptr && run->is_bound_first) {
          ASSIGN_OR_RETURN(const bool promised, PromiseBound(&*run));
          is_back = !promised;
          if (is_back) return std::nullopt;
        }
        return Execute(&*run, start);
      } catch (const std::exception& e) {  // a library ran out of memory; the executor must live on
        return Refuse(Refusal::kInternal, absl::StrCat("the run failed: ", e.what()));
      }
    }();
    if (is_back) continue;
    const auto measured_to = std::chrono::steady_clock::now();
    const absl::Duration used = absl::FromChrono(measured_to - measured_from);
    run->used += used;
    if (outcome.ok() && !outcome->has_value()) {
      const absl::Status aside = SetAside(&*run, worker, used);
      if (aside.ok()) continue;
      run->begun->GivenUp(run->request, aside);
      outcome = aside;
    }
    if (outcome.ok()) {
      run->request.program->NoteRunTime(TypesOf(run->request), run->used);
      usual_.Add(run->used);
    }
    Finish(*run, worker, outcome.ok(), used);
    if (run->request.cancel != nullptr) run->request.cancel->Forget(run->listener);
    run->begun = nullptr;
    run->request.arguments.clear();  // whoever is told may have use for their memory
    run->request.destinations.clear();
    if (outcome.ok()) {
      run->request.done(**std::move(outcome));
    } else {
      run->request.done(outcome.status());
    }
    ChargeAnswer(*run, worker, absl::FromChrono(std::chrono::steady_clock::now() - measured_to));
  }
}

}  // namespace tensord
