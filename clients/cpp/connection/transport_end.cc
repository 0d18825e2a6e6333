#include "clients/cpp/connection/transport_end.h"

#include <atomic>
#include <chrono>
#include <list>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clients/cpp/connection/cancellation.h"
#include "clients/cpp/connection/steady_time.h"

namespace tensord::client {
namespace {

// The memory of a call that was given up, and the queue in it.
struct KeptCall {
  std::shared_ptr<void> memory;
  grpc::CompletionQueue* queue;
};

struct KeptCalls {
  std::mutex mutex;
  std::list<KeptCall> list;
  std::atomic<size_t> count = 0;
  std::vector<std::shared_ptr<void>> forever;
};

// Never destroyed, since a transport may write after the end of main.
KeptCalls& Kept() {
  static auto* const kept = new KeptCalls;
  return *kept;
}

// Takes the steps that have come. Tells whether there will be no more.
bool HasEnded(grpc::CompletionQueue& queue) {
  while (true) {
    void* tag = nullptr;
    bool ok = false;
    switch (queue.AsyncNext(&tag, &ok, gpr_inf_past(GPR_CLOCK_MONOTONIC))) {
      case grpc::CompletionQueue::SHUTDOWN:
        return true;
      case grpc::CompletionQueue::TIMEOUT:
        return false;
      case grpc::CompletionQueue::GOT_EVENT:
        break;
    }
  }
}

}  // namespace

bool HasPassed(gpr_timespec deadline) { return gpr_time_cmp(deadline, gpr_now(deadline.clock_type)) <= 0; }

gpr_timespec LatestEnd(const grpc::ClientContext& context) { return LatestEnd(context.raw_deadline()); }

gpr_timespec LatestEnd(gpr_timespec deadline) {
  const gpr_timespec grace = gpr_time_from_millis(absl::ToInt64Milliseconds(kEndWithin), GPR_TIMESPAN);
  return gpr_time_add(gpr_convert_clock_type(deadline, GPR_CLOCK_MONOTONIC), grace);
}

gpr_timespec HurriedEnd(gpr_timespec latest_end) {
  return gpr_time_min(latest_end, ToGrpcDeadline(SteadyNow() + kEndWithin));
}

grpc::Status EndedLate(const grpc::ClientContext& context, grpc::StatusCode otherwise) {
  const bool is_late = context.deadline() <= std::chrono::system_clock::now();
  if (is_late) otherwise = grpc::StatusCode::DEADLINE_EXCEEDED;
  if (IsCancelled()) otherwise = grpc::StatusCode::CANCELLED;
  return {otherwise, absl::StrCat("the transport did not end the call within ", absl::FormatDuration(kEndWithin))};
}

grpc::Status EndedByServer(grpc::Status status) {
  const bool is_mute = status.error_code() == grpc::StatusCode::CANCELLED && status.error_details().empty();
  if (!is_mute || IsCancelled()) return status;
  return {
      grpc::StatusCode::UNAVAILABLE,
      absl::StrCat("the server ended the call without an answer, as one does that stops: ", status.error_message())};
}

void KeepUntilEnded(std::shared_ptr<void> kept, grpc::CompletionQueue* queue) {
  FreeEnded();
  queue->Shutdown();
  KeptCalls& calls = Kept();
  const std::lock_guard<std::mutex> lock(calls.mutex);
  calls.list.push_back({.memory = std::move(kept), .queue = queue});
  calls.count = calls.list.size();
}

size_t FreeEnded() {
  KeptCalls& calls = Kept();
  if (calls.count == 0) return 0;
  std::list<KeptCall> ended;  // freed after the lock: an argument may be freed with it, by its owner's code
  const std::lock_guard<std::mutex> lock(calls.mutex);
  for (auto call = calls.list.begin(); call != calls.list.end();) {
    const auto here = call++;
    if (HasEnded(*here->queue)) ended.splice(ended.end(), calls.list, here);
  }
  calls.count = calls.list.size();
  return calls.count;
}

void KeepForever(std::shared_ptr<void> kept) {
  KeptCalls& calls = Kept();
  const std::lock_guard<std::mutex> lock(calls.mutex);
  calls.forever.push_back(std::move(kept));
}

}  // namespace tensord::client
