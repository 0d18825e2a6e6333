#include "server/rpc/calls/polling_threads.h"

#include <grpc/support/cpu.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace tensord::server {
namespace {

constexpr int64_t kMillisecond = 1'000'000;  // ns
constexpr int64_t kWindow = 5 * kMillisecond;
// One more is cheap and soon needed; one less may be wrong soon.
constexpr int64_t kLeastBeforeMore = 2 * kMillisecond;
constexpr int64_t kLeastBeforeLess = 20 * kMillisecond;
// A thread that hardly sleeps between calls has others waiting for it. A thread that sleeps for each call, as with one
// client that calls after each answer, would only wake another in vain.
constexpr double kBusy = 0.5, kIdle = 0.25;
constexpr double kFewSleeps = 0.25, kManySleeps = 1;  // a call
constexpr auto kPatience = std::chrono::seconds(5);
// Calls refused within that time of each other found the thread at work.
constexpr int64_t kTogether = 400'000;
// A refusal is to come within 5 ms, also where the thread has to wait for a processor.
constexpr int64_t kRest = 3 * kMillisecond / 2;

// Counts threads as gRPC 1.51 does.
int CallbackThreads() { return std::clamp(static_cast<int>(gpr_cpu_num_cores()) / 2, 2, 16); }

int64_t Now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

int64_t Nanoseconds(const timeval& time) { return int64_t{time.tv_sec} * 1'000'000'000 + int64_t{time.tv_usec} * 1000; }

// The use of the calling thread since it looked last.
struct Window {
  int64_t begin = 0;
  int64_t calls = 0;
  rusage before = {};
};

// The data that one call to nowhere needs until its callback.
struct CallToNowhere {
  grpc::ClientContext context;
  grpc::ByteBuffer request, response;
};

thread_local bool reacts_long = false;

}  // namespace

PollingThreads::PollingThreads()
    : num_threads_(CallbackThreads()), nowhere_(grpc::CreateChannel("", /*creds=*/nullptr)) {
  for (int i = 1; i < num_threads_; ++i) {
    {
      MutexLock lock(&mutex_);
      ++falling_;
    }
    Post([this] { SleepHere(); });
  }
  if (!AwaitSleeping(num_threads_ - 1) || !AwaitProbe()) WakeAll();
}

PollingThreads::~PollingThreads() {
  WakeAll();
  MutexLock lock(&mutex_);
  while (posted_ > 0) changed_.Wait(&mutex_);
}

void PollingThreads::Post(std::function<void()> callback) {
  auto* const call = new CallToNowhere;
  const grpc::Slice nothing("", 0);
  call->request = grpc::ByteBuffer(&nothing, 1);
  {
    MutexLock lock(&mutex_);
    ++posted_;
  }
  grpc::GenericStub(nowhere_).UnaryCall(&call->context, "/", grpc::StubOptions(), &call->request, &call->response,
                                        [this, call, callback = std::move(callback)](const grpc::Status&) {
                                          callback();
                                          delete call;
                                          MutexLock lock(&mutex_);
                                          --posted_;
                                          changed_.SignalAll();
                                        });
}

void PollingThreads::SleepHere() {
  MutexLock lock(&mutex_);
  --falling_;
  if (spared_ > 0) {
    --spared_;
    return;
  }
  ++sleeping_;
  changed_.SignalAll();
  while (wakes_ == 0 && !stopping_) woken_.Wait(&mutex_);
  if (wakes_ > 0) --wakes_;
  --sleeping_;
}

bool PollingThreads::AwaitSleeping(int number) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  MutexLock lock(&mutex_);
  while (sleeping_ < number) {
    if (!changed_.WaitUntil(&mutex_, end)) break;
  }
  return sleeping_ >= number;
}

bool PollingThreads::AwaitProbe() {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  const auto has_run = std::make_shared<bool>(false);  // under the lock
  Post([this, has_run] {
    MutexLock lock(&mutex_);
    *has_run = true;
    changed_.SignalAll();
  });
  MutexLock lock(&mutex_);
  while (!*has_run) {
    if (!changed_.WaitUntil(&mutex_, end)) break;
  }
  return *has_run;
}

void PollingThreads::WakeAll() {
  MutexLock lock(&mutex_);
  stopping_ = true;
  woken_.SignalAll();
}

int PollingThreads::AwakeLocked() const {
  if (stopping_) return num_threads_;
  return num_threads_ - (sleeping_ - wakes_) - (falling_ - spared_);
}

int PollingThreads::num_awake() const {
  MutexLock lock(&mutex_);
  return AwakeLocked();
}

void PollingThreads::WakeLocked() {
  if (sleeping_ > wakes_) {
    ++wakes_;
    woken_.Signal();
  } else if (falling_ > spared_) {
    ++spared_;
  }
}

int PollingThreads::Wanted(int awake, const Load& load) {
  if (load.busy > kBusy && load.sleeps_per_call < kFewSleeps) return awake + 1;
  if (awake > 1 && (load.busy < kIdle || load.sleeps_per_call > kManySleeps)) return awake - 1;
  return awake;
}

void PollingThreads::React() {
  thread_local Window window;
  ++window.calls;
  const int64_t now = Now(), passed = now - window.begin;
  if (passed < kWindow) return;
  rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  const int64_t processor = Nanoseconds(usage.ru_utime) + Nanoseconds(usage.ru_stime) -
                            Nanoseconds(window.before.ru_utime) - Nanoseconds(window.before.ru_stime);
  const Load load = {.busy = static_cast<double>(processor) / static_cast<double>(passed),
                     .sleeps_per_call = static_cast<double>(usage.ru_nvcsw - window.before.ru_nvcsw) /
                                        static_cast<double>(window.calls)};
  window = {.begin = now, .before = usage};
  Adapt(load);
}

void PollingThreads::Adapt(const Load& load) {
  {
    const int64_t now = Now();
    MutexLock lock(&mutex_);
    if (stopping_) return;
    const int awake = AwakeLocked();
    const int wanted = std::clamp(std::max(Wanted(awake, load), long_reactions_ + 1), 1, num_threads_);
    if (wanted == awake) return;
    if (now - changed_ns_ < (wanted > awake ? kLeastBeforeMore : kLeastBeforeLess)) return;
    changed_ns_ = now;
    if (wanted > awake) return WakeLocked();
    ++falling_;
  }
  Post([this] { SleepHere(); });
}

void PollingThreads::BeginLongReaction() {
  MutexLock lock(&mutex_);
  ++long_reactions_;
  if (stopping_ || AwakeLocked() > long_reactions_) return;
  changed_ns_ = Now();
  WakeLocked();
}

void PollingThreads::EndLongReaction() {
  MutexLock lock(&mutex_);
  --long_reactions_;
}

int64_t PollingThreads::Rest(int64_t idle_ns) { return idle_ns > kTogether ? kRest : 0; }

void PollingThreads::RestBeforeRefusal() {
  using Clock = std::chrono::steady_clock;
  thread_local Clock::time_point last;
  const int64_t rest = Rest(std::chrono::nanoseconds(Clock::now() - last).count());
  if (rest > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(rest));
  last = Clock::now();
}

PollingThreads::LongReaction::LongReaction(PollingThreads* threads) : threads_(reacts_long ? nullptr : threads) {
  if (threads_ == nullptr) return;
  reacts_long = true;
  threads_->BeginLongReaction();
}

PollingThreads::LongReaction::~LongReaction() {
  if (threads_ == nullptr) return;
  threads_->EndLongReaction();
  reacts_long = false;
}

}  // namespace tensord::server
