#include "clients/load/load_result.h"

#include <algorithm>

namespace tensord::load {
namespace {

constexpr size_t kMostFailures = 64;
constexpr size_t kMostReasonBytes = 128;

}  // namespace

void WorkloadResult::CountOk(absl::Duration latency_of_call, absl::Duration unsent_of_call, const ServerTimes& server) {
  ++ok;
  latency.Add(latency_of_call);
  unsent.Add(unsent_of_call);
  queue.Add(server.queue);
  compile.Add(server.compile);
  run.Add(server.run);
  rest.Add(latency_of_call - unsent_of_call - server.queue - server.compile - server.run);
}

void WorkloadResult::CountFailure(absl::StatusCode code, absl::string_view reason, absl::Duration answered) {
  Failure failure(code, std::string(reason.substr(0, kMostReasonBytes)));
  if (failures.size() >= kMostFailures && failures.count(failure) == 0) failure = Failure(code, "(others)");
  CallFailures& entry = failures[failure];
  ++entry.count;
  entry.answered.Add(answered);
}

void WorkloadResult::Merge(const WorkloadResult& other) {
  ok += other.ok;
  latency.Merge(other.latency);
  unsent.Merge(other.unsent);
  queue.Merge(other.queue);
  compile.Merge(other.compile);
  run.Merge(other.run);
  rest.Merge(other.rest);
  sent_bytes += other.sent_bytes;
  received_bytes += other.received_bytes;
  for (const auto& [failure, entry] : other.failures) {
    failures[failure].count += entry.count;
    failures[failure].answered.Merge(entry.answered);
  }
  cancelled += other.cancelled;
  disconnected += other.disconnected;
  unfinished += other.unfinished;
}

bool IsRefusal(absl::StatusCode code, absl::string_view reason) {
  return !reason.empty() && (code == absl::StatusCode::kResourceExhausted || code == absl::StatusCode::kUnavailable ||
                             reason == "DEADLINE_UNREACHABLE");
}

int64_t WorkloadResult::refused() const {
  int64_t count = 0;
  for (const auto& [failure, entry] : failures) {
    if (IsRefusal(std::get<0>(failure), std::get<1>(failure))) count += entry.count;
  }
  return count;
}

int64_t WorkloadResult::failed() const {
  int64_t count = 0;
  for (const auto& [failure, entry] : failures) count += entry.count;
  return count - refused();
}

LatencyHistogram WorkloadResult::refusals() const {
  LatencyHistogram all;
  for (const auto& [failure, entry] : failures) {
    if (IsRefusal(std::get<0>(failure), std::get<1>(failure))) all.Merge(entry.answered);
  }
  return all;
}

WorkloadResult LoadResult::Total() const {
  WorkloadResult total = {.name = workloads.size() == 1 ? workloads.front().name : "all"};
  for (const WorkloadResult& workload : workloads) total.Merge(workload);
  return total;
}

double LoadResult::goodput() const {
  return measured <= absl::ZeroDuration() ? 0 : static_cast<double>(ok_in_time) / absl::ToDoubleSeconds(measured);
}

}  // namespace tensord::load
