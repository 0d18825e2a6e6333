#include "clients/cli/operators/server_view.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace tensord::cli {
namespace {

using Fields = google::protobuf::Map<std::string, google::protobuf::Value>;

constexpr char kMetricPrefix[] = "tensord_";

std::string LabelOf(const MetricSample& sample, const std::string& label) {
  const auto found = sample.labels.find(label);
  return found == sample.labels.end() ? "" : found->second;
}

// The samples of one page of metrics, by name.
class Page {
 public:
  explicit Page(const std::vector<MetricSample>& samples) {
    for (const MetricSample& sample : samples) by_name_[sample.name].push_back(&sample);
  }

  // Sums of the samples that `accept` takes, by the value of a label; one sum, of "", where the label is empty.
  template <typename Accept>
  std::map<std::string, double> Sums(const std::string& name, const std::string& label, const Accept& accept) const {
    std::map<std::string, double> sums;
    const auto found = by_name_.find(kMetricPrefix + name);
    if (found == by_name_.end()) return sums;
    for (const MetricSample* sample : found->second) {
      if (accept(*sample)) sums[label.empty() ? "" : LabelOf(*sample, label)] += sample->value;
    }
    return sums;
  }
  std::map<std::string, double> Sums(const std::string& name, const std::string& label) const {
    return Sums(name, label, [](const MetricSample&) { return true; });
  }
  double Sum(const std::string& name) const {
    const std::map<std::string, double> sums = Sums(name, "");
    return sums.empty() ? 0 : sums.begin()->second;
  }
  // Sums the samples whose label has this value.
  double SumWhere(const std::string& name, const std::string& label, const std::string& value) const {
    const std::map<std::string, double> sums = Sums(name, label);
    const auto found = sums.find(value);
    return found == sums.end() ? 0 : found->second;
  }

 private:
  std::map<std::string, std::vector<const MetricSample*>> by_name_;
};

// The growth of counters, a second.
class Growth {
 public:
  Growth(const Page& before, const Page& after, double seconds) : before_(before), after_(after), seconds_(seconds) {}

  template <typename... Accept>
  std::map<std::string, double> Rates(const std::string& name, const std::string& label,
                                      const Accept&... accept) const {
    std::map<std::string, double> rates = after_.Sums(name, label, accept...);
    const std::map<std::string, double> earlier = before_.Sums(name, label, accept...);
    for (auto& [key, value] : rates) {
      const auto found = earlier.find(key);
      const double grown = value - (found == earlier.end() ? 0 : found->second);
      value = grown > 0 && seconds_ > 0 ? grown / seconds_ : 0;
    }
    return rates;
  }
  double Rate(const std::string& name) const {
    const std::map<std::string, double> rates = Rates(name, "");
    return rates.empty() ? 0 : rates.begin()->second;
  }

  // Finds a quantile by linear interpolation in the bucket, as PromQL does; in the last bucket it is the lower bound.
  std::optional<absl::Duration> Quantile(const std::string& histogram, const std::string& label,
                                         const std::string& value, double fraction) const {
    const std::map<std::string, double> by_bound =
        Rates(histogram + "_bucket", "le", [&](const MetricSample& sample) { return LabelOf(sample, label) == value; });
    std::map<double, double> buckets;
    for (const auto& [bound, count] : by_bound) {
      double upper = 0;
      if (absl::SimpleAtod(bound, &upper)) buckets[upper] = count;
    }
    if (buckets.empty() || buckets.rbegin()->second <= 0) return std::nullopt;
    const double rank = fraction * buckets.rbegin()->second;
    double lower = 0;
    double below = 0;
    for (const auto& [upper, count] : buckets) {
      if (count >= rank) {
        if (std::isinf(upper)) break;
        const double share = count > below ? (rank - below) / (count - below) : 1;
        return absl::Seconds(lower + (upper - lower) * share);
      }
      lower = upper;
      below = count;
    }
    return absl::Seconds(lower);
  }

 private:
  const Page& before_;
  const Page& after_;
  const double seconds_;
};

void AddMethods(const Page& now, const Growth& growth, ServerView* view) {
  const std::map<std::string, double> in_flight = now.Sums("rpc_in_flight", "method");
  const std::map<std::string, double> handled = growth.Rates("rpc_handled_total", "method");
  const std::map<std::string, double> failed =
      growth.Rates("rpc_handled_total", "method", [](const MetricSample& s) { return LabelOf(s, "code") != "OK"; });
  const auto value_of = [](const std::map<std::string, double>& values, const std::string& key) {
    const auto found = values.find(key);
    return found == values.end() ? 0 : found->second;
  };
  for (const auto& [method, started] : now.Sums("rpc_started_total", "method")) {
    if (started <= 0) continue;
    view->methods[method] = {.calls_per_second = value_of(handled, method),
                             .failed_per_second = value_of(failed, method),
                             .in_flight = value_of(in_flight, method),
                             .p50 = growth.Quantile("rpc_duration_seconds", "method", method, 0.5),
                             .p99 = growth.Quantile("rpc_duration_seconds", "method", method, 0.99)};
  }
}

void AddDevices(const Page& now, const Growth& growth, const v1::ServerInfo& info, ServerView* view) {
  for (const v1::Device& device : info.devices()) view->devices[device.name()].executors = device.executors();
  for (const auto& [device, value] : now.Sums("queue_depth", "device")) view->devices[device].queued = value;
  for (const auto& [device, value] : growth.Rates("execute_total", "device")) {
    view->devices[device].runs_per_second = value;
  }
  for (const auto& [device, value] : growth.Rates("executor_busy_seconds_total", "device")) {
    view->devices[device].busy_executors = value;
  }
  const auto memory = [&now](const char* state) {
    return now.Sums("memory_bytes", "device", [state](const MetricSample& s) { return LabelOf(s, "state") == state; });
  };
  for (const auto& [device, value] : memory("in_use")) view->devices[device].memory_used_bytes = value;
  for (const auto& [device, value] : memory("free")) view->devices[device].memory_free_bytes = value;
  for (const auto& [device, value] : now.Sums("memory_peak_bytes", "device")) {
    view->devices[device].memory_peak_bytes = value;
  }
}

}  // namespace

ServerView CompareMetrics(const std::vector<MetricSample>& before, const std::vector<MetricSample>& after,
                          absl::Duration between, const v1::ServerInfo& info) {
  const Page earlier(before);
  const Page now(after);
  const Growth growth(earlier, now, absl::ToDoubleSeconds(between));
  ServerView view = {.version = info.version()};
  view.is_ready = now.Sum("ready") > 0;
  view.is_draining = now.Sum("draining") > 0;
  view.received_bytes_per_second = growth.Rate("rpc_received_bytes_total");
  view.sent_bytes_per_second = growth.Rate("rpc_sent_bytes_total");
  view.in_flight_bytes = now.Sum("rpc_in_flight_bytes");
  view.cached_programs = now.SumWhere("program_cache_entries", "tier", "memory");
  view.cached_bytes = now.SumWhere("program_cache_bytes", "tier", "memory");
  view.disk_programs = now.SumWhere("program_cache_entries", "tier", "disk");
  view.disk_bytes = now.SumWhere("program_cache_bytes", "tier", "disk");
  // Its phases are told one by one; servers before that tell of whole compilations alone.
  for (const auto& [phase, rate] : growth.Rates("compile_seconds_count", "phase")) {
    if (phase.empty() || phase == "total" || phase == "sizes") view.compiled_per_second += rate;
  }
  AddMethods(now, growth, &view);
  AddDevices(now, growth, info, &view);
  return view;
}

google::protobuf::Struct ServerViewJson(const ServerView& view) {
  google::protobuf::Struct json;
  Fields& fields = *json.mutable_fields();
  fields["version"].set_string_value(view.version);
  fields["ready"].set_bool_value(view.is_ready);
  fields["draining"].set_bool_value(view.is_draining);
  fields["received_bytes_per_second"].set_number_value(view.received_bytes_per_second);
  fields["sent_bytes_per_second"].set_number_value(view.sent_bytes_per_second);
  fields["in_flight_bytes"].set_number_value(view.in_flight_bytes);
  fields["cached_programs"].set_number_value(view.cached_programs);
  fields["cached_bytes"].set_number_value(view.cached_bytes);
  fields["disk_programs"].set_number_value(view.disk_programs);
  fields["disk_bytes"].set_number_value(view.disk_bytes);
  fields["compiled_per_second"].set_number_value(view.compiled_per_second);
  Fields& methods = *fields["methods"].mutable_struct_value()->mutable_fields();
  for (const auto& [name, method] : view.methods) {
    Fields& entry = *methods[name].mutable_struct_value()->mutable_fields();
    entry["calls_per_second"].set_number_value(method.calls_per_second);
    entry["failed_per_second"].set_number_value(method.failed_per_second);
    entry["in_flight"].set_number_value(method.in_flight);
    if (method.p50.has_value()) entry["p50_ms"].set_number_value(absl::ToDoubleMilliseconds(*method.p50));
    if (method.p99.has_value()) entry["p99_ms"].set_number_value(absl::ToDoubleMilliseconds(*method.p99));
  }
  Fields& devices = *fields["devices"].mutable_struct_value()->mutable_fields();
  for (const auto& [name, device] : view.devices) {
    Fields& entry = *devices[name].mutable_struct_value()->mutable_fields();
    entry["queued"].set_number_value(device.queued);
    entry["runs_per_second"].set_number_value(device.runs_per_second);
    entry["busy_executors"].set_number_value(device.busy_executors);
    entry["executors"].set_number_value(device.executors);
    entry["memory_used_bytes"].set_number_value(device.memory_used_bytes);
    entry["memory_free_bytes"].set_number_value(device.memory_free_bytes);
    entry["memory_peak_bytes"].set_number_value(device.memory_peak_bytes);
  }
  return json;
}

}  // namespace tensord::cli
