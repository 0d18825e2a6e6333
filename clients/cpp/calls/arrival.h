#ifndef TENSORD_CLIENTS_CPP_CALLS_ARRIVAL_H_
#define TENSORD_CLIENTS_CPP_CALLS_ARRIVAL_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "clients/cpp/calls/callbacks.h"
#include "clients/cpp/calls/first_failure.h"
#include "clients/cpp/shared_memory/result_sizes.h"
#include "clients/cpp/shared_memory/shared_call.h"
#include "grpcpp/support/byte_buffer.h"
#include "tensord/dtype.h"
#include "tensord/execute_answer.h"
#include "tensord/result_plan.h"

namespace tensord::client {

// The place at which the answer to one call of a pipeline arrives. The pipeline fills it, once. A PendingAnswer takes
// the answer out, by waiting or by a callback, or loses interest: then a failure is told to `unseen`. Keeps the call's
// shared memory until the server has answered, and the results there until they are taken out. Thread-safe.
class Arrival {
 public:
  // The sharing of programs. A call without a program's fingerprint teaches nothing.
  struct Sharing {
    std::unique_ptr<SharedCall> call;  // null: all of it goes in messages
    std::shared_ptr<ResultSizes> sizes;
    std::string fingerprint;
  };

  Arrival(uint64_t id, std::vector<ResultPlan> plans, MemoryOrder order, std::shared_ptr<FirstFailure> unseen,
          Sharing sharing)
      : id_(id), plans_(std::move(plans)), order_(order), unseen_(std::move(unseen)), sharing_(std::move(sharing)) {}

  using Callback = std::function<void(const absl::StatusOr<ExecuteAnswer>&)>;

  // Takes an ExecuteResponse without an error. It is read by who waits for it, since the pipeline's thread has others
  // to receive, and here if there are callbacks. Both calls call these, and hold no lock then.
  void Deliver(grpc::ByteBuffer* response);
  void Fail(absl::Status failure);

  // False: it has not arrived by then.
  bool WaitUntil(absl::Time deadline);
  absl::StatusOr<ExecuteAnswer> Wait();
  void Then(Callback callback);
  // Notes that nobody will wait any more.
  void Drop();

 private:
  // Reads the answer, which is there, unless it was read before. Under the lock.
  const absl::StatusOr<ExecuteAnswer>& Read();
  // Reads the answer for the callbacks, if there are some, and calls them without the lock.
  void CallBack(std::unique_lock<std::mutex> lock);
  bool IsThere() const { return response_.has_value() || answer_.has_value(); }

  const uint64_t id_;
  const std::vector<ResultPlan> plans_;
  const MemoryOrder order_;
  const std::shared_ptr<FirstFailure> unseen_;

  std::mutex mutex_;
  Sharing sharing_;
  std::condition_variable arrived_;
  bool is_seen_ = false;
  bool is_dropped_ = false;
  Callbacks callbacks_;                                  // until they are called
  std::optional<grpc::ByteBuffer> response_;             // until it is read
  std::optional<absl::StatusOr<ExecuteAnswer>> answer_;  // stays as it is once it is there
};

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_CALLS_ARRIVAL_H_
