#ifndef TENSORD_SERVER_PROFILING_PROFILER_H_
#define TENSORD_SERVER_PROFILING_PROFILER_H_

#include <functional>
#include <memory>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "engine/runtime/devices/cancel_token.h"
#include "pprof/profile.pb.h"
#include "server/profiling/stack_sampler.h"

namespace tensord::server {

// Takes profiles of this process, one at a time, each on a thread of its own; there is none while nobody asks.
// Thread-safe. The destructor ends the profile under way, which is answered with its samples so far, and joins.
class Profiler {
 public:
  struct Bounds {
    static constexpr int64_t kProfiles = 1;
    static constexpr int64_t kMilliseconds = 60'000;
    static constexpr int64_t kSamplesPerSecond = 1000;
  };
  struct Request {
    absl::Duration duration = absl::Seconds(5);
    int samples_per_second = 99;                // of processor time; beside what runs at round numbers
    std::shared_ptr<const CancelToken> cancel;  // ends it early
  };
  struct Result {
    perftools::profiles::Profile profile;
    int64_t samples = 0;
    int64_t dropped = 0;
  };
  using Done = std::function<void(Result)>;

  Profiler() = default;
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  // Starts a profile. After OK `done` is called once, from the profiler's thread. LIMIT_EXCEEDED for more than the
  // bounds, and while another is under way, and then it is not called.
  absl::Status Start(Request request, Done done);
  // Tells whether a profile is under way.
  bool is_busy() const;
  // Ends the profiles under way; later ones are refused with SERVER_DRAINING.
  void Stop();

 private:
  void Run(const Request& request, const Done& done, StackSampler& sampler);

  mutable Mutex mutex_;
  CondVar wake_;
  bool is_busy_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mutex_);  // joined before the next, or at the end
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_PROFILING_PROFILER_H_
