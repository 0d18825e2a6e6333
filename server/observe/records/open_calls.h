#ifndef TENSORD_SERVER_OBSERVE_RECORDS_OPEN_CALLS_H_
#define TENSORD_SERVER_OBSERVE_RECORDS_OPEN_CALLS_H_

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/base/fingerprint.h"
#include "engine/base/mutex.h"
#include "engine/runtime/devices/run_start.h"
#include "server/observe/records/rpc_method.h"
#include "server/observe/records/stage_times.h"

namespace tensord::server {

class OpenCall;

// The calls in progress, for operators, who see them and may end them. Thread-safe.
class OpenCalls {
 public:
  // An operator's view of a call.
  struct Description {
    uint64_t id = 0;  // of this process
    RpcMethod method = RpcMethod::kExecute;
    bool is_streamed = false;
    std::string tenant, request_id, peer;
    std::chrono::steady_clock::duration age{};
    Stage stage = Stage::kAdmit;  // in which it is
    std::string fingerprint;      // of its program, as hexadecimal digits; empty: none is known yet
    std::string device;           // likewise
  };

  OpenCalls() = default;
  OpenCalls(const OpenCalls&) = delete;
  OpenCalls& operator=(const OpenCalls&) = delete;

  // The oldest first.
  std::vector<Description> List() const;
  // Ends the call of that id, which is told so; the answer may come a little later. CALL_UNKNOWN.
  absl::Status Cancel(uint64_t id);

 private:
  friend class OpenCall;

  // Calls come and go on many threads.
  static constexpr size_t kShards = 16;
  struct Shard {
    mutable Mutex mutex;
    CondVar cancelled;
    OpenCall* first ABSL_GUARDED_BY(mutex) = nullptr;
  };

  Shard& ShardOf(uint64_t id) { return shards_[id % kShards]; }

  std::atomic<uint64_t> last_id_{0};
  std::array<Shard, kShards> shards_;
};

// The place of one call among those in progress. A member of the call, which notes its stage here; others read it.
class OpenCall {
 public:
  // The facts that do not change while the call is open; the views outlive the place.
  struct Facts {
    RpcMethod method = RpcMethod::kExecute;
    bool is_streamed = false;  // one request of a stream
    absl::string_view tenant, request_id;
    std::function<std::string()> peer;  // asked for a list alone
    // Ends the call soon, on another thread: Leave waits until this is over.
    std::function<void()> cancel;
  };

  OpenCall() = default;
  ~OpenCall() { Leave(); }
  OpenCall(const OpenCall&) = delete;
  OpenCall& operator=(const OpenCall&) = delete;

  void Enter(OpenCalls* calls, Facts facts);
  // Leaves: nobody sees it or ends it any more.
  void Leave();

  // Notes the stage: only a store, for each step of the way.
  void At(Stage stage) { stage_.store(stage, std::memory_order_relaxed); }
  void Uses(const Fingerprint& fingerprint, absl::string_view device);
  // Notes that it waits for a device, and has it as soon as the run has begun.
  void Queues(std::shared_ptr<const RunStart> run);

 private:
  friend class OpenCalls;

  OpenCalls::Description Describe(std::chrono::steady_clock::time_point now) const;

  OpenCalls* calls_ = nullptr;  // null: not entered
  uint64_t id_ = 0;
  Facts facts_;
  std::chrono::steady_clock::time_point start_;
  std::atomic<Stage> stage_{Stage::kAdmit};
  OpenCall* next_ = nullptr;  // of its shard, under whose lock these are
  OpenCall** link_ = nullptr;
  int being_cancelled_ = 0;
  mutable Mutex mutex_;
  bool has_program_ ABSL_GUARDED_BY(mutex_) = false;
  Fingerprint fingerprint_ ABSL_GUARDED_BY(mutex_);
  std::string device_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const RunStart> run_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_OBSERVE_RECORDS_OPEN_CALLS_H_
