#ifndef TENSORD_CLIENTS_LOAD_LOAD_PLAN_H_
#define TENSORD_CLIENTS_LOAD_LOAD_PLAN_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "clients/load/arrivals.h"
#include "clients/load/workload.h"
#include "grpcpp/support/byte_buffer.h"
#include "tensord/client.h"

namespace tensord::load {

// A workload whose program the server has, and the message of each of its calls. Copies share the bytes.
struct PreparedWorkload {
  std::string name;
  double weight = 1;
  grpc::ByteBuffer request;
  std::string route;  // its calls' key for a balancer
};

// Compiles the workload on the server. Its refusal where the server does not take the graph.
absl::StatusOr<PreparedWorkload> Prepare(client::Client& client, const Workload& workload, double weight,
                                         const client::ExecuteOptions& options);

// The state of a run that is under way.
struct LoadProgress {
  absl::Duration passed;  // of `whole`
  absl::Duration whole;   // warm-up and duration
  int64_t ok = 0;
  int64_t not_ok = 0;  // refused, failed, or ended by us
};

// One run: its callers, its calls, and its time.
struct LoadPlan {
  client::ConnectOptions connection;  // its deadline and timeout are not used
  std::vector<PreparedWorkload> workloads;
  // Connections of their own, over which calls go in turns, and threads that wait for answers.
  int connections = 1;
  int threads = 1;
  // Closed loop: as many calls are under way at any time, each sent when the one before was answered.
  int concurrency = 1;
  // The rate of an open loop, if set: calls a second, sent on time whatever becomes of them. Past `most_outstanding`
  // they are sent late, and their latency still counts from when they were due.
  std::optional<double> rate;
  ArrivalKind arrivals = ArrivalKind::kPoisson;
  int most_outstanding = 10'000;
  // Calls sent before `warmup` has passed are not counted.
  absl::Duration warmup;
  absl::Duration duration = absl::Seconds(10);
  std::optional<absl::Duration> deadline;  // of each call
  // Shares of the calls that are cancelled, and of those with a connection of their own that is cut, at a time between
  // 0 and twice the mean latency. The sending thread makes such a connection, in an open loop the one that keeps time:
  // a server that is slow to accept makes the next calls late, which their latency shows.
  double cancelled_share = 0;
  double disconnected_share = 0;
  uint64_t seed = 1;
  // Ends the run early where it becomes true. Must outlive the run.
  const std::atomic<bool>* interrupted = nullptr;
  // Ends the run early after this time in which no call reached a server; 0: never.
  absl::Duration give_up = absl::Seconds(10);
  // Gets the state of the run some times a second, from the thread that keeps time; may be empty.
  std::function<void(const LoadProgress&)> progress;
};

}  // namespace tensord::load

#endif  // TENSORD_CLIENTS_LOAD_LOAD_PLAN_H_
