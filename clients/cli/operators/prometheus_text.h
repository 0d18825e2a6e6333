#ifndef TENSORD_CLIENTS_CLI_OPERATORS_PROMETHEUS_TEXT_H_
#define TENSORD_CLIENTS_CLI_OPERATORS_PROMETHEUS_TEXT_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tensord::cli {

// One line of Prometheus' text format: rpc_handled_total{method="Execute"} 12
struct MetricSample {
  std::string name;
  std::map<std::string, std::string> labels;
  double value = 0;
};

// Returns the samples of a page of metrics, in order; comments and timestamps are left out. INVALID_ARGUMENT names the
// line that is none.
absl::StatusOr<std::vector<MetricSample>> ParsePrometheusText(absl::string_view text);

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_OPERATORS_PROMETHEUS_TEXT_H_
