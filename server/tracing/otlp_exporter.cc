#include "server/tracing/otlp_exporter.h"

#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/base/steady_time.h"
#include "server/tracing/otlp_retry.h"
#include "server/tracing/otlp_spans.h"

namespace tensord::server {
namespace {

constexpr char kMethod[] = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
constexpr absl::Duration kLongestPause = absl::Seconds(5);

std::string HostName() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

int64_t CountOf(const std::vector<TracedRequest>& batch) {
  int64_t count = 0;
  for (const TracedRequest& request : batch) count += SpanCount(request.record);
  return count;
}

// Servers that lost the same collector must not come back to it at the same moment.
absl::Duration Jittered(absl::Duration pause) {
  thread_local std::minstd_rand random{std::random_device{}()};
  return pause * std::uniform_real_distribution<double>(0.75, 1.25)(random);
}

std::shared_ptr<grpc::Channel> ChannelTo(const OtlpExporter::Options& options) {
  grpc::ChannelArguments arguments;
  // A proxy elsewhere does not know this machine's addresses.
  if (options.is_local) arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(options.target, options.credentials, arguments);
}

}  // namespace

OtlpExporter::OtlpExporter(Options options, SpanQueue* queue, TraceMetrics* metrics, Log* log)
    : options_(std::move(options)),
      queue_(queue),
      metrics_(metrics),
      log_(log),
      stub_(ChannelTo(options_)),
      thread_([this] { Loop(); }) {}

OtlpExporter::~OtlpExporter() { Finish(absl::InfinitePast()); }

void OtlpExporter::Finish(absl::Time until) {
  {
    MutexLock lock(&mutex_);
    if (joined_) return;
    joined_ = true;
    until_ = until;
  }
  queue_->Close();
  changed_.SignalAll();
  thread_.join();
}

void OtlpExporter::Loop() {
  while (!IsOver()) {
    const std::vector<TracedRequest> batch = queue_->Take(options_.batch_spans, options_.batch_wait);
    if (batch.empty()) return;
    Send(batch);
  }
  metrics_->SpansDropped(SpanLoss::kShutdown, CountOf(queue_->Clear()));
}

bool OtlpExporter::IsOver() {
  MutexLock lock(&mutex_);
  return SteadyNow() >= until_;
}

otlp::ExportTraceServiceRequest OtlpExporter::RequestOf(const std::vector<TracedRequest>& batch, int64_t* spans) const {
  otlp::ExportTraceServiceRequest request;
  otlp::ResourceSpans* const resource = request.add_resource_spans();
  const auto add = [resource](absl::string_view key, absl::string_view value) {
    if (!value.empty()) SetAttribute(key, value, resource->mutable_resource()->add_attributes());
  };
  add("service.name", options_.service_name);
  add("service.version", options_.version);
  add("host.name", HostName());
  add("process.pid", absl::StrCat(getpid()));
  otlp::ScopeSpans* const scope = resource->add_scope_spans();
  scope->mutable_scope()->set_name("tensord");
  scope->mutable_scope()->set_version(options_.version);
  for (const TracedRequest& one : batch) AddSpans(one, scope);
  *spans = scope->spans_size();
  return request;
}

void OtlpExporter::Send(const std::vector<TracedRequest>& batch) {
  int64_t spans = 0;
  const otlp::ExportTraceServiceRequest request = RequestOf(batch, &spans);
  const absl::Time give_up = SteadyNow() + options_.retry;
  for (absl::Duration pause = options_.first_pause;; pause = std::min(2 * pause, kLongestPause)) {
    otlp::ExportTraceServiceResponse response;
    const grpc::Status status = Attempt(request, &response);
    Tell(status);
    if (status.ok()) {
      const int64_t refused = std::clamp<int64_t>(response.partial_success().rejected_spans(), 0, spans);
      metrics_->SpansDropped(SpanLoss::kRefused, refused);
      return metrics_->SpansExported(spans - refused);
    }
    if (IsOver()) return metrics_->SpansDropped(SpanLoss::kShutdown, spans);
    const OtlpRetry retry = RetryOf(status);
    if (!retry.may_repeat) return metrics_->SpansDropped(SpanLoss::kRefused, spans);
    // Not before the collector's own time, which it may well give to all alike.
    const absl::Duration least = retry.delay.value_or(absl::ZeroDuration());
    if (SteadyNow() + std::max(pause, least) > give_up) return metrics_->SpansDropped(SpanLoss::kUnavailable, spans);
    if (!Pause(retry.delay.has_value() ? least + Jittered(options_.first_pause) / 4 : Jittered(pause)))
      return metrics_->SpansDropped(SpanLoss::kShutdown, spans);
  }
}

grpc::Status OtlpExporter::Attempt(const otlp::ExportTraceServiceRequest& request,
                                   otlp::ExportTraceServiceResponse* response) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + options_.timeout));
  for (const auto& [name, value] : options_.metadata) context.AddMetadata(name, value);
  grpc::Status status;
  bool done = false;
  stub_.UnaryCall(&context, kMethod, grpc::StubOptions(), &request, response, [&](grpc::Status ended) {
    MutexLock lock(&mutex_);
    status = std::move(ended);
    done = true;
    changed_.SignalAll();  // under the lock: whoever waits goes away with this lambda
  });
  MutexLock lock(&mutex_);
  while (!done) {
    if (SteadyNow() >= until_) {
      context.TryCancel();
      while (!done) changed_.Wait(&mutex_);
    } else if (until_ == absl::InfiniteFuture()) {
      changed_.Wait(&mutex_);
    } else {
      changed_.WaitUntil(&mutex_, ToSteadyClock(until_));
    }
  }
  return status;
}

bool OtlpExporter::Pause(absl::Duration pause) {
  const absl::Time end = SteadyNow() + pause;
  MutexLock lock(&mutex_);
  while (SteadyNow() < end) {
    if (SteadyNow() >= until_) return false;
    changed_.WaitUntil(&mutex_, ToSteadyClock(std::min(end, until_)));
  }
  return true;
}

void OtlpExporter::Tell(const grpc::Status& status) {
  if (status.ok() != failing_) return;
  failing_ = !status.ok();
  if (failing_) {
    log_->Event(LogLevel::kWarning, "trace export",
                absl::StrCat("the collector at ", options_.target, " takes no spans: ", status.error_message()));
  } else {
    log_->Event(LogLevel::kInfo, "trace export",
                absl::StrCat("the collector at ", options_.target, " takes spans again"));
  }
}

}  // namespace tensord::server
