#include "server/profiling/profiler.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/time/clock.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "server/profiling/cpu_profile.h"
#include "server/profiling/stack_sampler.h"

namespace tensord::server {
namespace {

// How late a cancellation is seen.
constexpr auto kLookEvery = std::chrono::milliseconds(50);

absl::Status CheckBounds(const Profiler::Request& request) {
  if (request.duration <= absl::ZeroDuration() || request.samples_per_second < 1) {
    return Refuse(Refusal::kMalformedMessage, "a profile takes some time and some samples a second");
  }
  const absl::Duration most = absl::Milliseconds(Profiler::Bounds::kMilliseconds);
  if (request.duration > most) {
    const int64_t asked = absl::ToInt64Milliseconds(std::min(request.duration, absl::Hours(10'000)));
    return RefuseLimit("profile_ms", Profiler::Bounds::kMilliseconds, asked, "milliseconds of a profile");
  }
  if (request.samples_per_second > Profiler::Bounds::kSamplesPerSecond) {
    return RefuseLimit("profile_samples_per_second", Profiler::Bounds::kSamplesPerSecond, request.samples_per_second,
                       "samples a second of a profile");
  }
  return absl::OkStatus();
}

absl::Status RefuseSecond() {
  return RefuseLimit("profiles", Profiler::Bounds::kProfiles, Profiler::Bounds::kProfiles + 1, "profiles at a time");
}

}  // namespace

Profiler::~Profiler() { Stop(); }

absl::Status Profiler::Start(Request request, Done done) {
  RETURN_IF_ERROR(CheckBounds(request));
  MutexLock lock(&mutex_);
  if (is_stopping_) return Refuse(Refusal::kServerDraining, "the server is shutting down");
  if (is_busy_) return RefuseSecond();
  if (thread_.joinable()) thread_.join();  // it is at its end, and takes no lock any more
  // Null if another profiler of this process samples.
  std::unique_ptr<StackSampler> sampler = StackSampler::Start(request.samples_per_second);
  if (sampler == nullptr) return RefuseSecond();
  thread_ = std::thread([this, request = std::move(request), done = std::move(done), sampler = std::move(sampler)] {
    Run(request, done, *sampler);
  });
  is_busy_ = true;  // of a thread that could be started; it takes the lock before it looks
  return absl::OkStatus();
}

void Profiler::Run(const Request& request, const Done& done, StackSampler& sampler) {
  const absl::Time start = absl::Now();
  const auto begin = std::chrono::steady_clock::now();
  const auto end = begin + absl::ToChronoNanoseconds(request.duration);
  {
    MutexLock lock(&mutex_);
    while (!is_stopping_ && std::chrono::steady_clock::now() < end &&
           (request.cancel == nullptr || !request.cancel->cancelled())) {
      wake_.WaitUntil(&mutex_, std::min(end, std::chrono::steady_clock::now() + kLookEvery));
    }
  }
  const StackSampler::Stacks stacks = sampler.Stop();
  Result result{
      .profile = MakeCpuProfile(stacks, {.start = start,
                                         .duration = absl::FromChrono(std::chrono::steady_clock::now() - begin),
                                         .per_second = request.samples_per_second}),
      .samples = stacks.count,
      .dropped = stacks.dropped};
  {
    MutexLock lock(&mutex_);
    is_busy_ = false;  // before the answer: who has it may ask for the next
  }
  done(std::move(result));
}

bool Profiler::is_busy() const {
  MutexLock lock(&mutex_);
  return is_busy_;
}

void Profiler::Stop() {
  std::thread thread;
  {
    MutexLock lock(&mutex_);
    is_stopping_ = true;
    thread = std::move(thread_);
  }
  wake_.SignalAll();
  if (thread.joinable()) thread.join();
}

}  // namespace tensord::server
