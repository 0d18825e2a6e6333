#include "clients/load/load_run.h"

#include <sys/prctl.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "clients/cpp/connection/connecting.h"
#include "clients/cpp/connection/transport_end.h"
#include "clients/load/call.h"
#include "clients/load/channel.h"
#include "clients/load/timer_queue.h"
#include "grpcpp/alarm.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/generic_stub.h"

namespace tensord::load {
namespace {

constexpr absl::Duration kConnectTimeout = absl::Seconds(5);
// How long calls may go on after the plan's end, and after an interruption.
constexpr std::chrono::seconds kDrain(10);
constexpr std::chrono::seconds kInterruptedDrain(1);
// How long after the end calls are sent that were due before.
constexpr std::chrono::seconds kLateness(1);
// Between looks at whether the run is interrupted, and between calls to a server that is gone.
constexpr std::chrono::milliseconds kLook(50);
constexpr std::chrono::milliseconds kUnreachablePause(10);
constexpr std::chrono::milliseconds kBetweenProgress(200);
// The most calls sent at once if more are due than we can send, so that fates and interruptions are not late.
constexpr int kSliceCalls = 64;
constexpr std::chrono::milliseconds kSlice(1);
// The mean latency follows that of the last calls.
constexpr int64_t kMeanWeight = 16;

double ProcessorSeconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return absl::ToDoubleSeconds(absl::DurationFromTimeval(usage.ru_utime) + absl::DurationFromTimeval(usage.ru_stime));
}

// The time since which no server was reached, while one is.
constexpr Clock::time_point kReachable = Clock::time_point::max();

// Lets this thread wake up on time rather than within the 50 us that are usual.
class ExactSleep {
 public:
  ExactSleep() : former_(prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0)) { prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0); }
  ~ExactSleep() {
    if (former_ > 0) prctl(PR_SET_TIMERSLACK, former_, 0, 0, 0);
  }

 private:
  const int former_;
};

// Waits for the answers of its calls, and counts them. Its counts are read when its thread has ended.
struct Worker {
  grpc::CompletionQueue queue;
  grpc::Alarm given_up;  // nothing else is waited for
  std::vector<WorkloadResult> results;
  // Calls that have ended, for the progress: read while the thread counts.
  std::atomic<int64_t> ok = 0;
  std::atomic<int64_t> not_ok = 0;
  int64_t ok_in_time = 0;
  int64_t failed_dials = 0;
  std::thread thread;
};

class LoadRun {
 public:
  explicit LoadRun(const LoadPlan& plan)
      : plan_(plan), arrivals_(plan.arrivals, plan.rate.value_or(1), plan.seed), random_(~plan.seed) {}

  absl::Status Connect();
  LoadResult Run();

 private:
  bool is_interrupted() const { return plan_.interrupted != nullptr && *plan_.interrupted; }
  // Tells whether no call has reached a server for as long as the plan has patience.
  bool IsServerGone(Clock::time_point now) const;
  // Keeps since when calls have failed without an answer. Calls that we ended ourselves tell nothing about the server.
  void NoteReach(const Call::Outcome& outcome);
  void TellProgress(Clock::time_point now);
  Call* NewCall();
  Call* TakeIdle();
  void Begin(Call* call, Clock::time_point due);
  // Sends a slice of the due calls, and returns whether another one can be sent at once.
  bool SendWhatIsDue(Clock::time_point now);
  void KeepTime();
  void Fire(const TimerQueue::Entry& entry);
  // Ends all calls, but for those whose end the transport has lost.
  void Drain();
  void Answer(Worker& worker);
  void Count(Worker& worker, const Call::Outcome& outcome);
  LoadResult Collect();

  const LoadPlan& plan_;
  std::deque<grpc::GenericStub> stubs_;  // which cannot be moved
  std::atomic<size_t> next_stub_ = 0;

  Clock::time_point measured_from_;
  Clock::time_point ends_;
  std::atomic<Clock::time_point> measured_to_;  // earlier than `ends_` where interrupted
  double processor_seconds_ = 0;
  bool was_interrupted_ = false;
  bool is_server_gone_ = false;
  std::atomic<Clock::time_point> unreachable_since_ = kReachable;
  Clock::time_point next_progress_;

  Arrivals arrivals_;
  Clock::time_point began_;
  Clock::time_point next_due_;
  bool is_blocked_ = false;  // a call is due and none is idle
  int64_t never_sent_ = 0;

  SplitMix random_;
  std::atomic<int64_t> mean_latency_ns_ = 1'000'000;
  std::atomic<int64_t> under_way_ = 0;
  std::atomic<bool> is_stopping_ = false;
  bool is_abandoned_ = false;  // the transport may still write to calls
  TimerQueue timers_;
  std::mutex idle_mutex_;
  std::vector<Call*> idle_;
  std::vector<std::unique_ptr<Call>> calls_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

absl::Status LoadRun::Connect() {
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (int i = 0; i < plan_.connections; ++i) {
    channels.push_back(MakeChannel(plan_.connection));
    channels.back()->GetState(/*try_to_connect=*/true);
  }
  for (const std::shared_ptr<grpc::Channel>& channel : channels) {
    const absl::Status connected = client::AwaitConnection(channel, plan_.connection.target, kConnectTimeout);
    if (!connected.ok()) return connected;
    stubs_.emplace_back(channel);
  }
  return absl::OkStatus();
}

Call* LoadRun::NewCall() {
  Worker& worker = *workers_[calls_.size() % workers_.size()];
  calls_.push_back(std::make_unique<Call>(&plan_, &worker.queue, random_.Next()));
  return calls_.back().get();
}

Call* LoadRun::TakeIdle() {
  const std::lock_guard<std::mutex> lock(idle_mutex_);
  is_blocked_ = false;
  if (!idle_.empty()) {
    Call* const call = idle_.back();
    idle_.pop_back();
    return call;
  }
  if (calls_.size() < static_cast<size_t>(plan_.most_outstanding)) return NewCall();
  is_blocked_ = true;
  return nullptr;
}

void LoadRun::Begin(Call* call, Clock::time_point due) {
  const Call::Draft draft = call->Prepare(due);
  if (draft.fate != Call::Fate::kNone) {
    const double wait_ns = 2 * draft.moment * static_cast<double>(mean_latency_ns_.load(std::memory_order_relaxed));
    timers_.Add({.at = Clock::now() + std::chrono::nanoseconds(static_cast<int64_t>(wait_ns)),
                 .call = call,
                 .number = draft.number});
  }
  call->Send(stubs_[next_stub_.fetch_add(1, std::memory_order_relaxed) % stubs_.size()]);
}

bool LoadRun::SendWhatIsDue(Clock::time_point now) {
  const Clock::time_point slice_ends = std::min(Clock::now() + kSlice, ends_ + kLateness);
  int sent = 0;
  while (next_due_ <= now && next_due_ < ends_) {
    if (sent == kSliceCalls || Clock::now() >= slice_ends) return slice_ends < ends_ + kLateness;
    Call* const call = TakeIdle();
    if (call == nullptr) return false;
    ++under_way_;
    ++sent;
    Begin(call, next_due_);
    next_due_ = began_ + absl::ToChronoNanoseconds(arrivals_.Next());
  }
  return false;
}

void LoadRun::Fire(const TimerQueue::Entry& entry) {
  if (entry.number != 0) {
    entry.call->MeetFate(entry.number);
  } else if (!is_stopping_) {
    ++under_way_;
    Begin(entry.call, Clock::now());
  }
}

bool LoadRun::IsServerGone(Clock::time_point now) const {
  const Clock::time_point since = unreachable_since_;
  return plan_.give_up > absl::ZeroDuration() && since < now && absl::FromChrono(now - since) >= plan_.give_up;
}

void LoadRun::NoteReach(const Call::Outcome& outcome) {
  using End = Call::Outcome::End;
  if (outcome.is_unreachable()) {
    Clock::time_point reachable = kReachable;
    unreachable_since_.compare_exchange_strong(reachable, outcome.ended);
  } else if (outcome.end == End::kOk || outcome.end == End::kFailed) {
    if (unreachable_since_.load(std::memory_order_relaxed) != kReachable) unreachable_since_ = kReachable;
  }
}

void LoadRun::TellProgress(Clock::time_point now) {
  if (plan_.progress == nullptr || now < next_progress_) return;
  next_progress_ = now + kBetweenProgress;
  LoadProgress progress = {.passed = absl::FromChrono(now - began_), .whole = absl::FromChrono(ends_ - began_)};
  for (const std::unique_ptr<Worker>& worker : workers_) {
    progress.ok += worker->ok.load(std::memory_order_relaxed);
    progress.not_ok += worker->not_ok.load(std::memory_order_relaxed);
  }
  plan_.progress(progress);
}

void LoadRun::KeepTime() {
  const ExactSleep exact;
  bool is_measuring = false;
  for (Clock::time_point now = Clock::now(); now < ends_; now = Clock::now()) {
    if (!is_measuring && now >= measured_from_) {
      is_measuring = true;
      processor_seconds_ = ProcessorSeconds();
    }
    const bool is_behind = plan_.rate.has_value() && SendWhatIsDue(now);
    TellProgress(now);
    is_server_gone_ = IsServerGone(now);
    if (is_interrupted() || is_server_gone_) {
      was_interrupted_ = !is_server_gone_;
      measured_to_ = std::max(now, measured_from_);
      break;
    }
    Clock::time_point until = is_behind ? now : std::min(ends_, now + kLook);
    if (!is_measuring) until = std::min(until, measured_from_);
    // If no call is idle, a due call waits for one, which wakes us.
    if (plan_.rate.has_value() && next_due_ > now) until = std::min(until, next_due_);
    for (const TimerQueue::Entry& entry : timers_.WaitUntil(until)) Fire(entry);
  }
  processor_seconds_ = is_measuring ? ProcessorSeconds() - processor_seconds_ : 0;
  if (!plan_.rate.has_value()) return;
  while (!is_interrupted() && !is_server_gone_ && SendWhatIsDue(ends_)) {
    for (const TimerQueue::Entry& entry : timers_.WaitUntil(Clock::now())) Fire(entry);
  }
  for (; next_due_ < measured_to_.load(); next_due_ = began_ + absl::ToChronoNanoseconds(arrivals_.Next())) {
    if (next_due_ >= measured_from_) ++never_sent_;
  }
}

void LoadRun::Drain() {
  is_stopping_ = true;
  const Clock::time_point limit = Clock::now() + (was_interrupted_ || is_server_gone_ ? kInterruptedDrain : kDrain);
  const Clock::time_point late = limit + absl::ToChronoNanoseconds(client::kEndWithin);
  while (under_way_ > 0 && !is_abandoned_) {
    const Clock::time_point now = Clock::now();
    is_abandoned_ = now >= late;
    if (now >= limit) {
      for (const std::unique_ptr<Call>& call : calls_) call->CutOff();
    }
    for (const TimerQueue::Entry& entry : timers_.WaitUntil(now + kLook)) Fire(entry);
  }
  for (const std::unique_ptr<Worker>& worker : workers_) {
    if (is_abandoned_) {
      worker->given_up.Set(&worker->queue, gpr_now(GPR_CLOCK_MONOTONIC), nullptr);
    } else {
      worker->queue.Shutdown();
    }
  }
  for (const std::unique_ptr<Worker>& worker : workers_) worker->thread.join();
  if (!is_abandoned_) return;
  for (const std::unique_ptr<Call>& call : calls_) {
    if (const std::optional<Call::Outcome> outcome = call->GiveUp()) Count(*workers_.front(), *outcome);
  }
}

void LoadRun::Count(Worker& worker, const Call::Outcome& outcome) {
  using End = Call::Outcome::End;
  const absl::Duration latency = absl::FromChrono(outcome.ended - outcome.due);
  NoteReach(outcome);
  std::atomic<int64_t>& ended = outcome.end == End::kOk ? worker.ok : worker.not_ok;
  ended.store(ended.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (outcome.failed_dial) ++worker.failed_dials;
  if (outcome.end == End::kOk) {
    const int64_t mean = mean_latency_ns_.load(std::memory_order_relaxed);
    mean_latency_ns_.store(mean + (absl::ToInt64Nanoseconds(latency) - mean) / kMeanWeight, std::memory_order_relaxed);
    if (outcome.ended >= measured_from_ && outcome.ended < measured_to_.load()) ++worker.ok_in_time;
  }
  if (outcome.due < measured_from_) return;
  WorkloadResult& result = worker.results[outcome.workload];
  switch (outcome.end) {
    case End::kOk:
      result.CountOk(latency, absl::FromChrono(outcome.sent - outcome.due), outcome.server);
      result.received_bytes += outcome.received_bytes;
      result.sent_bytes += static_cast<int64_t>(plan_.workloads[outcome.workload].request.Length());
      return;
    case End::kFailed:
      result.CountFailure(outcome.code, outcome.reason, absl::FromChrono(outcome.ended - outcome.sent));
      return;
    case End::kCancelled:
      ++result.cancelled;
      return;
    case End::kDisconnected:
      ++result.disconnected;
      return;
    case End::kUnfinished:
      ++result.unfinished;
      return;
  }
}

void LoadRun::Answer(Worker& worker) {
  void* tag = nullptr;
  bool is_ok = false;
  while (worker.queue.Next(&tag, &is_ok)) {
    if (tag == nullptr) return;
    Call* const call = static_cast<Call*>(tag);
    const Call::Outcome outcome = call->Finish();
    Count(worker, outcome);
    const bool goes_on = !plan_.rate.has_value() && !is_stopping_;
    if (goes_on && !outcome.is_unreachable()) {
      Begin(call, Clock::now());
      continue;
    }
    bool is_waited_for = false;
    if (goes_on) {
      timers_.Add({.at = outcome.ended + kUnreachablePause, .call = call});
    } else {
      const std::lock_guard<std::mutex> lock(idle_mutex_);
      idle_.push_back(call);
      is_waited_for = is_blocked_;
    }
    if (--under_way_ == 0 || is_waited_for) timers_.Wake();
  }
}

LoadResult LoadRun::Run() {
  for (int i = 0; i < plan_.threads; ++i) {
    workers_.push_back(std::make_unique<Worker>());
    for (const PreparedWorkload& workload : plan_.workloads)
      workers_.back()->results.push_back({.name = workload.name});
  }
  began_ = Clock::now();
  measured_from_ = began_ + absl::ToChronoNanoseconds(plan_.warmup);
  ends_ = measured_from_ + absl::ToChronoNanoseconds(plan_.duration);
  measured_to_ = ends_;
  next_due_ = began_ + absl::ToChronoNanoseconds(arrivals_.Next());
  for (const std::unique_ptr<Worker>& worker : workers_) {
    worker->thread = std::thread([this, &worker] { Answer(*worker); });
  }
  if (!plan_.rate.has_value()) {
    under_way_ = plan_.concurrency;
    for (int i = 0; i < plan_.concurrency; ++i) Begin(NewCall(), Clock::now());
  }
  KeepTime();
  Drain();
  LoadResult result = Collect();
  if (is_abandoned_) {
    client::KeepForever(std::make_shared<std::vector<std::unique_ptr<Call>>>(std::move(calls_)));
    client::KeepForever(std::make_shared<std::vector<std::unique_ptr<Worker>>>(std::move(workers_)));
  }
  return result;
}

LoadResult LoadRun::Collect() {
  LoadResult result;
  for (const PreparedWorkload& workload : plan_.workloads) result.workloads.push_back({.name = workload.name});
  for (const std::unique_ptr<Worker>& worker : workers_) {
    for (size_t i = 0; i < result.workloads.size(); ++i) result.workloads[i].Merge(worker->results[i]);
    result.ok_in_time += worker->ok_in_time;
    result.failed_dials += worker->failed_dials;
  }
  result.measured = absl::FromChrono(measured_to_.load() - measured_from_);
  result.never_sent = never_sent_;
  result.is_interrupted = was_interrupted_;
  result.is_server_gone = is_server_gone_;
  const double seconds = absl::ToDoubleSeconds(result.measured);
  result.client_cores = seconds > 0 ? processor_seconds_ / seconds : 0;
  return result;
}

}  // namespace

absl::StatusOr<LoadResult> RunLoad(const LoadPlan& plan) {
  LoadRun run(plan);
  const absl::Status connected = run.Connect();
  if (!connected.ok()) return connected;
  return run.Run();
}

}  // namespace tensord::load
