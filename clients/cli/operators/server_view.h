#ifndef TENSORD_CLIENTS_CLI_OPERATORS_SERVER_VIEW_H_
#define TENSORD_CLIENTS_CLI_OPERATORS_SERVER_VIEW_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "clients/cli/operators/prometheus_text.h"
#include "google/protobuf/struct.pb.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::cli {

// The work of a server between two looks at its metrics, and its state at the second.
struct ServerView {
  struct Method {
    double calls_per_second = 0;
    double failed_per_second = 0;  // of these
    double in_flight = 0;
    // Quantiles of the calls that ended in between; none if none did.
    std::optional<absl::Duration> p50;
    std::optional<absl::Duration> p99;
  };

  struct Device {
    double queued = 0;
    double runs_per_second = 0;
    double busy_executors = 0;  // on average
    int executors = 0;
    double memory_used_bytes = 0;
    double memory_free_bytes = 0;  // kept for the next tensors
    double memory_peak_bytes = 0;
  };

  std::string version;
  bool is_ready = false;
  bool is_draining = false;
  double received_bytes_per_second = 0;
  double sent_bytes_per_second = 0;
  double in_flight_bytes = 0;
  double cached_programs = 0;  // in memory
  double cached_bytes = 0;
  double disk_programs = 0;
  double disk_bytes = 0;
  double compiled_per_second = 0;
  std::map<std::string, Method> methods;  // those that were ever called
  std::map<std::string, Device> devices;
};

// Counters that fell, as they do when the server starts anew, count as if nothing had happened.
ServerView CompareMetrics(const std::vector<MetricSample>& before, const std::vector<MetricSample>& after,
                          absl::Duration between, const v1::ServerInfo& info);

// Returns the view for programs; times in milliseconds.
google::protobuf::Struct ServerViewJson(const ServerView& view);

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_OPERATORS_SERVER_VIEW_H_
