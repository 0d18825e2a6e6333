#ifndef TENSORD_SERVER_OBSERVE_METRICS_METRICS_H_
#define TENSORD_SERVER_OBSERVE_METRICS_METRICS_H_

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "engine/runtime/compile/compile_watch.h"
#include "server/observe/metrics/tenant_series.h"
#include "server/observe/metrics/transfer.h"
#include "server/observe/records/request_record.h"
#include "server/observe/records/rpc_method.h"

namespace tensord::server {

// Upper bounds of a histogram: `count` of them, and infinity.
struct Buckets {
  double first = 0;
  double factor = 0;  // of each to the one before
  int count = 0;
};

struct MetricInfo {
  absl::string_view name;  // in full
  absl::string_view type;  // "counter", "gauge", "histogram"
  absl::string_view help;
  absl::string_view labels;  // "device,stage"; of every series, in whichever order
  Buckets buckets;           // of a histogram
};

enum class Metric : size_t {
#define TENSORD_METRIC(member, ...) member,
#include "server/observe/metrics/metrics.def"
#undef TENSORD_METRIC
};

// Returns all metrics of metrics.def, indexed by Metric.
absl::Span<const MetricInfo> AllMetrics();
// Returns the bounds of a histogram, without infinity.
std::vector<double> BoundsOf(Metric histogram);

// Metrics counted call by call. Time series are looked up once, when the metrics are made or a label value is first
// seen, so that counting is a few atomic additions. Thread-safe.
class Metrics {
 public:
  // Devices by name; the metrics of others are not kept.
  explicit Metrics(absl::Span<const std::string> devices);

  void CallStarted(RpcMethod method);
  void CallCancelled(RpcMethod method);
  // A call that ended; it must have been started.
  void CallEnded(const RequestRecord& record);
  // Counts a request of an ExecuteStream that ended: the metrics of a program's run, not of a call.
  void StreamedExecuteEnded(const RequestRecord& record);
  // A phase of a compilation took that long.
  void Compiled(CompilePhase phase, absl::Duration time);
  // A tensor was moved, or a part of it where the call ended before.
  void Transferred(Transfer transfer, int64_t bytes, absl::Duration time);

  // Returns the tenants that have a name among the labels.
  TenantSeries& tenants() { return *tenants_; }

  const std::shared_ptr<prometheus::Registry>& registry() const { return registry_; }

 private:
  static constexpr size_t kNumCodes = 17;
  enum Rejection { kQueueFull, kBytes, kRate, kMemory, kDeadlineUnreachable, kDraining, kNumRejections };
  enum Outcome { kOk, kError, kCancelled, kDeadline, kRejected, kNumOutcomes };

  struct MethodSeries {
    prometheus::Counter* started;
    prometheus::Counter* cancelled;
    prometheus::Gauge* in_flight;
    prometheus::Counter* received_bytes;
    prometheus::Counter* sent_bytes;
    prometheus::Histogram* duration;
    // Made when the code is first returned: most never are.
    std::array<std::atomic<prometheus::Counter*>, kNumCodes> handled{};
    // Histograms of stages likewise; methods that run programs never have any.
    std::array<std::atomic<prometheus::Histogram*>, kNumStages> stages{};
    std::atomic<prometheus::Histogram*> request_size{nullptr};  // likewise, when a call first ends
  };
  struct DeviceSeries {
    std::string device;
    std::array<prometheus::Counter*, kNumOutcomes> outcomes;
    std::array<prometheus::Histogram*, kNumStages> stages;
  };

  struct TransferSeries {
    prometheus::Counter* bytes;
    prometheus::Histogram* seconds;
    prometheus::Histogram* size;
  };

  void CountRequest(const RequestRecord& record);
  void CountSize(const RequestRecord& record, RpcMethod method);
  void CountStages(const RequestRecord& record, MethodSeries& series);
  void CountRun(const RequestRecord& record);
  void CountExecute(const RequestRecord& record, DeviceSeries& series);
  // Returns nothing if the call was not refused, or for another reason than want of room.
  static std::optional<Rejection> RejectionOf(const RequestRecord& record);
  static Outcome OutcomeOf(const RequestRecord& record);

  const std::shared_ptr<prometheus::Registry> registry_ = std::make_shared<prometheus::Registry>();
  prometheus::Family<prometheus::Counter>* handled_family_ = nullptr;
  prometheus::Family<prometheus::Histogram>* stage_family_ = nullptr;
  prometheus::Family<prometheus::Histogram>* request_size_family_ = nullptr;
  std::array<prometheus::Histogram*, kNumCompilePhases> compile_phases_;
  std::array<TransferSeries, kNumTransfers> transfers_;
  std::array<prometheus::Counter*, kNumRejections> rejected_;
  std::array<MethodSeries, kNumRpcMethods> methods_;
  std::vector<DeviceSeries> devices_;
  std::optional<TenantSeries> tenants_;
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_OBSERVE_METRICS_METRICS_H_
