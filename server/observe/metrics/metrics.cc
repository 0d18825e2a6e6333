#include "server/observe/metrics/metrics.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/runtime/devices/segment_times.h"
#include "server/observe/metrics/metric_family.h"

namespace tensord::server {
namespace {

// "tensord_ready"; of "tensord_process_open_fds", which every exporter has, "process_open_fds".
constexpr absl::string_view FullName(absl::string_view name) {
  constexpr absl::string_view kOfEveryProcess = "tensord_process_";
  constexpr absl::string_view kOwn = "tensord_";
  if (name.substr(0, kOfEveryProcess.size()) == kOfEveryProcess) name.remove_prefix(kOwn.size());
  return name;
}

constexpr MetricInfo kMetrics[] = {
#define TENSORD_METRIC(member, type, name, help, ...) {FullName("tensord_" name), #type, help, "" __VA_ARGS__, {}},
#define TENSORD_HISTOGRAM(member, name, help, labels, first, factor, count) \
  {FullName("tensord_" name), "histogram", help, labels, {first, factor, count}},
#include "server/observe/metrics/metrics.def"
#undef TENSORD_METRIC
};

}  // namespace

absl::Span<const MetricInfo> AllMetrics() { return kMetrics; }

std::vector<double> BoundsOf(Metric histogram) {
  const Buckets& buckets = kMetrics[static_cast<size_t>(histogram)].buckets;
  std::vector<double> bounds;
  double bound = buckets.first;
  for (int i = 0; i < buckets.count; ++i, bound *= buckets.factor) bounds.push_back(bound);
  return bounds;
}

Metrics::Metrics(absl::Span<const std::string> devices) {
  prometheus::Registry& registry = *registry_;
  handled_family_ = &AddFamily<prometheus::Counter>(Metric::rpc_handled, registry);
  auto& started = AddFamily<prometheus::Counter>(Metric::rpc_started, registry);
  auto& cancelled = AddFamily<prometheus::Counter>(Metric::rpc_cancelled, registry);
  auto& in_flight = AddFamily<prometheus::Gauge>(Metric::rpc_in_flight, registry);
  auto& received = AddFamily<prometheus::Counter>(Metric::rpc_received_bytes, registry);
  auto& sent = AddFamily<prometheus::Counter>(Metric::rpc_sent_bytes, registry);
  auto& duration = AddFamily<prometheus::Histogram>(Metric::rpc_duration_seconds, registry);
  for (size_t i = 0; i < kNumRpcMethods; ++i) {
    const prometheus::Labels labels = {{"method", std::string(kRpcMethodNames[i])}};
    methods_[i].started = &started.Add(labels);
    methods_[i].cancelled = &cancelled.Add(labels);
    methods_[i].in_flight = &in_flight.Add(labels);
    methods_[i].received_bytes = &received.Add(labels);
    methods_[i].sent_bytes = &sent.Add(labels);
    methods_[i].duration = &AddSeries(Metric::rpc_duration_seconds, labels, duration);
  }
  stage_family_ = &AddFamily<prometheus::Histogram>(Metric::rpc_stage_seconds, registry);
  request_size_family_ = &AddFamily<prometheus::Histogram>(Metric::rpc_request_size_bytes, registry);
  auto& compile_seconds = AddFamily<prometheus::Histogram>(Metric::compile_seconds, registry);
  for (size_t i = 0; i < kNumCompilePhases; ++i) {
    compile_phases_[i] =
        &AddSeries(Metric::compile_seconds, {{"phase", std::string(kCompilePhaseNames[i])}}, compile_seconds);
  }
  auto& transfer_bytes = AddFamily<prometheus::Counter>(Metric::transfer_bytes, registry);
  auto& transfer_seconds = AddFamily<prometheus::Histogram>(Metric::transfer_seconds, registry);
  auto& transfer_size = AddFamily<prometheus::Histogram>(Metric::transfer_size_bytes, registry);
  for (size_t i = 0; i < kNumTransfers; ++i) {
    const prometheus::Labels labels = {{"direction", std::string(kTransferNames[i])}};
    transfers_[i] = {.bytes = &transfer_bytes.Add(labels),
                     .seconds = &AddSeries(Metric::transfer_seconds, labels, transfer_seconds),
                     .size = &AddSeries(Metric::transfer_size_bytes, labels, transfer_size)};
  }

  auto& rejected = AddFamily<prometheus::Counter>(Metric::admission_rejected, registry);
  constexpr const char* kRejectionNames[kNumRejections] = {"queue_full",           "bytes",   "rate", "memory",
                                                           "deadline_unreachable", "draining"};
  for (size_t i = 0; i < kNumRejections; ++i) rejected_[i] = &rejected.Add({{"reason", kRejectionNames[i]}});

  auto& execute = AddFamily<prometheus::Counter>(Metric::execute, registry);
  auto& stage_seconds = AddFamily<prometheus::Histogram>(Metric::execute_stage_seconds, registry);
  constexpr const char* kOutcomeNames[kNumOutcomes] = {"ok", "error", "cancelled", "deadline", "rejected"};
  for (const std::string& device : devices) {
    DeviceSeries series;
    series.device = device;
    for (int i = 0; i < kNumOutcomes; ++i) {
      series.outcomes[static_cast<size_t>(i)] = &execute.Add({{"device", device}, {"outcome", kOutcomeNames[i]}});
    }
    for (size_t i = 0; i < kNumStages; ++i) {
      series.stages[i] = &AddSeries(Metric::execute_stage_seconds,
                                    {{"device", device}, {"stage", std::string(kStageNames[i])}}, stage_seconds);
    }
    devices_.push_back(std::move(series));
  }
  tenants_.emplace(AddFamily<prometheus::Counter>(Metric::tenant_requests, registry),
                   AddFamily<prometheus::Counter>(Metric::tenant_device_seconds, registry));
}

void Metrics::CallStarted(RpcMethod method) {
  MethodSeries& series = methods_[static_cast<size_t>(method)];
  series.started->Increment();
  series.in_flight->Increment();
}

void Metrics::CallCancelled(RpcMethod method) { methods_[static_cast<size_t>(method)].cancelled->Increment(); }

void Metrics::CallEnded(const RequestRecord& record) {
  MethodSeries& series = methods_[static_cast<size_t>(record.method)];
  series.in_flight->Decrement();
  series.received_bytes->Increment(static_cast<double>(record.received_bytes));
  series.sent_bytes->Increment(static_cast<double>(record.sent_bytes));
  series.duration->Observe(absl::ToDoubleSeconds(record.total));

  std::atomic<prometheus::Counter*>& handled = series.handled[static_cast<size_t>(record.code) % kNumCodes];
  prometheus::Counter* counter = handled.load(std::memory_order_acquire);
  if (counter == nullptr) {
    counter = &handled_family_->Add(
        {{"method", std::string(Name(record.method))}, {"code", absl::StatusCodeToString(record.code)}});
    handled.store(counter, std::memory_order_release);
  }
  counter->Increment();

  CountRequest(record);
  if (record.method != RpcMethod::kExecuteStream) CountSize(record, record.method);
  if (record.method == RpcMethod::kExecute) {
    CountRun(record);
  } else if (record.method != RpcMethod::kExecuteStream) {
    CountStages(record, series);
  }
}

void Metrics::CountStages(const RequestRecord& record, MethodSeries& series) {
  for (size_t i = 0; i < kNumStages; ++i) {
    const std::optional<absl::Duration> time = record.stages.Of(static_cast<Stage>(i));
    if (!time.has_value()) continue;
    prometheus::Histogram* histogram = series.stages[i].load(std::memory_order_acquire);
    if (histogram == nullptr) {
      histogram = &AddSeries(Metric::rpc_stage_seconds,
                             {{"method", std::string(Name(record.method))}, {"stage", std::string(kStageNames[i])}},
                             *stage_family_);
      series.stages[i].store(histogram, std::memory_order_release);
    }
    histogram->Observe(absl::ToDoubleSeconds(*time));
  }
}

void Metrics::CountSize(const RequestRecord& record, RpcMethod method) {
  std::atomic<prometheus::Histogram*>& series = methods_[static_cast<size_t>(method)].request_size;
  prometheus::Histogram* histogram = series.load(std::memory_order_acquire);
  if (histogram == nullptr) {
    histogram =
        &AddSeries(Metric::rpc_request_size_bytes, {{"method", std::string(Name(method))}}, *request_size_family_);
    series.store(histogram, std::memory_order_release);
  }
  histogram->Observe(static_cast<double>(record.received_bytes));
}

void Metrics::Compiled(CompilePhase phase, absl::Duration time) {
  compile_phases_[static_cast<size_t>(phase)]->Observe(absl::ToDoubleSeconds(time));
}

void Metrics::Transferred(Transfer transfer, int64_t bytes, absl::Duration time) {
  const TransferSeries& series = transfers_[static_cast<size_t>(transfer)];
  series.bytes->Increment(static_cast<double>(bytes));
  series.seconds->Observe(absl::ToDoubleSeconds(time));
  series.size->Observe(static_cast<double>(bytes));
}

void Metrics::StreamedExecuteEnded(const RequestRecord& record) {
  CountRequest(record);
  CountSize(record, RpcMethod::kExecuteStream);
  CountRun(record);
}

void Metrics::CountRequest(const RequestRecord& record) {
  if (const std::optional<Rejection> rejection = RejectionOf(record)) rejected_[*rejection]->Increment();
  if (!record.tenant.empty()) {
    tenants_->Count(record.tenant, record.stages.Of(Stage::kCompute).value_or(absl::ZeroDuration()));
  }
}

void Metrics::CountRun(const RequestRecord& record) {
  for (DeviceSeries& device : devices_) {
    if (device.device == record.device) CountExecute(record, device);
  }
}

void Metrics::CountExecute(const RequestRecord& record, DeviceSeries& series) {
  series.outcomes[OutcomeOf(record)]->Increment();
  for (size_t i = 0; i < kNumStages; ++i) {
    if (const auto time = record.stages.Of(static_cast<Stage>(i))) {
      series.stages[i]->Observe(absl::ToDoubleSeconds(*time));
    }
  }
}

std::optional<Metrics::Rejection> Metrics::RejectionOf(const RequestRecord& record) {
  if (record.code == absl::StatusCode::kOk) return std::nullopt;
  const auto is = [&record](Refusal refusal) { return record.reason == InfoOf(refusal).id; };
  if (is(Refusal::kQueueFull)) return kQueueFull;
  if (is(Refusal::kRateLimited)) return kRate;
  if (is(Refusal::kOutOfMemory)) return kMemory;
  if (is(Refusal::kDeadlineUnreachable)) return kDeadlineUnreachable;
  if (is(Refusal::kServerDraining)) return kDraining;
  // Other limits are about one request, which is refused wherever and whenever it comes.
  constexpr absl::string_view kOfBytes[] = {"in_flight_bytes", "scheduling.tenant_in_flight_percent",
                                            "scheduling.tenant_unread_percent"};
  if (absl::c_linear_search(kOfBytes, record.limit)) return kBytes;
  return std::nullopt;
}

Metrics::Outcome Metrics::OutcomeOf(const RequestRecord& record) {
  switch (record.code) {
    case absl::StatusCode::kOk:
      return kOk;
    case absl::StatusCode::kCancelled:
      return kCancelled;
    case absl::StatusCode::kDeadlineExceeded:
      return kDeadline;
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kUnavailable:
      return kRejected;
    default:
      return kError;
  }
}

}  // namespace tensord::server
