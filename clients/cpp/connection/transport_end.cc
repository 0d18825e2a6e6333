#include "clients/cpp/connection/transport_end.h"

#include <chrono>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clients/cpp/connection/steady_time.h"

namespace tensord::client {

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
  return {is_late ? grpc::StatusCode::DEADLINE_EXCEEDED : otherwise,
          absl::StrCat("the transport did not end the call within ", absl::FormatDuration(kEndWithin))};
}

void KeepForever(std::shared_ptr<void> kept) {
  static std::mutex mutex;
  static auto* const all = new std::vector<std::shared_ptr<void>>();
  const std::lock_guard<std::mutex> lock(mutex);
  all->push_back(std::move(kept));
}

}  // namespace tensord::client
