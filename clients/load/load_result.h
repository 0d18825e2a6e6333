#ifndef TENSORD_CLIENTS_LOAD_LOAD_RESULT_H_
#define TENSORD_CLIENTS_LOAD_LOAD_RESULT_H_

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "clients/load/latency_histogram.h"
#include "clients/load/server_times.h"

namespace tensord::load {

// Calls that failed in one way, and how long they took to be answered since they were sent.
struct CallFailures {
  int64_t count = 0;
  LatencyHistogram answered;
};

// The outcomes of the calls of one workload, or of several merged. A value type.
struct WorkloadResult {
  // A code and the server's reason; empty: the call never reached a server, or it named none.
  using Failure = std::tuple<absl::StatusCode, std::string>;

  std::string name;
  int64_t ok = 0;
  // Latency of the calls that succeeded, since they were due, and its parts: until they were sent, in the server's
  // queue, compiling, running, and the rest, which is the network and the programs on both sides of it.
  LatencyHistogram latency;
  LatencyHistogram unsent;
  LatencyHistogram queue;
  LatencyHistogram compile;
  LatencyHistogram run;
  LatencyHistogram rest;
  int64_t sent_bytes = 0;
  int64_t received_bytes = 0;
  std::map<Failure, CallFailures> failures;
  // Calls that we ended: by cancelling, by cutting their connection, because the run was over.
  int64_t cancelled = 0;
  int64_t disconnected = 0;
  int64_t unfinished = 0;

  void CountOk(absl::Duration latency, absl::Duration unsent, const ServerTimes& server);
  // Counts a failure. Past a number of different failures the others are counted together, so that no server can fill
  // our memory.
  void CountFailure(absl::StatusCode code, absl::string_view reason, absl::Duration answered);
  void Merge(const WorkloadResult& other);

  // Refused: the server has no room for the call now, and says so.
  int64_t refused() const;
  int64_t failed() const;  // for any other reason
  LatencyHistogram refusals() const;
};

// Tells whether a failure is a refusal in that sense.
bool IsRefusal(absl::StatusCode code, absl::string_view reason);

struct LoadResult {
  std::vector<WorkloadResult> workloads;  // in the order of the plan
  absl::Duration measured;                // without the warm-up; shorter than planned where interrupted
  int64_t ok_in_time = 0;                 // answered while it was measured
  int64_t never_sent = 0;                 // due, but too many were outstanding until the end, or we were too slow
  int64_t failed_dials = 0;               // connections to cut that could not be made
  double client_cores = 0;                // processor time of this process per second
  bool is_interrupted = false;
  bool is_server_gone = false;  // ended early, as no server was reached for the plan's `give_up`

  WorkloadResult Total() const;
  // Successful calls a second.
  double goodput() const;
};

}  // namespace tensord::load

#endif  // TENSORD_CLIENTS_LOAD_LOAD_RESULT_H_
