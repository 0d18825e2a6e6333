#ifndef TENSORD_SERVER_TRACING_OTLP_EXPORTER_H_
#define TENSORD_SERVER_TRACING_OTLP_EXPORTER_H_

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/security/credentials.h>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "server/observe/logs/log.h"
#include "server/observe/metrics/trace_metrics.h"
#include "server/tracing/otlp.pb.h"
#include "server/tracing/span_queue.h"

namespace tensord::server {

// Sends the calls that wait in a queue to a collector, in batches, from a thread of its own. A collector that cannot be
// reached is tried again with growing pauses, while the queue fills; calls that it does not take at last are dropped
// and counted. Thread-safe. Queue, metrics and log must outlive it. The destructor drops the rest.
class OtlpExporter {
 public:
  struct Options {
    std::string target;
    bool is_local = false;  // the collector is on this machine: no proxy of the environment is asked
    std::shared_ptr<grpc::ChannelCredentials> credentials;
    std::vector<std::pair<std::string, std::string>> metadata;
    std::string service_name;
    std::string version;
    int64_t batch_spans = 512;
    absl::Duration batch_wait = absl::Seconds(1);
    absl::Duration timeout = absl::Seconds(5);  // of one attempt
    absl::Duration retry = absl::Seconds(30);   // of one batch
    absl::Duration first_pause = absl::Milliseconds(250);
  };

  OtlpExporter(Options options, SpanQueue* queue, TraceMetrics* metrics, Log* log);
  ~OtlpExporter();
  OtlpExporter(const OtlpExporter&) = delete;
  OtlpExporter& operator=(const OtlpExporter&) = delete;

  // Closes the queue, and returns when its calls are sent, or at that time of SteadyNow: then the rest is dropped.
  void Finish(absl::Time until);

 private:
  using Stub = grpc::TemplatedGenericStub<otlp::ExportTraceServiceRequest, otlp::ExportTraceServiceResponse>;

  void Loop();
  void Send(const std::vector<TracedRequest>& batch);
  otlp::ExportTraceServiceRequest RequestOf(const std::vector<TracedRequest>& batch, int64_t* spans) const;
  grpc::Status Attempt(const otlp::ExportTraceServiceRequest& request, otlp::ExportTraceServiceResponse* response);
  // Tells whether there was time for it.
  bool Pause(absl::Duration pause);
  bool IsOver();
  // One line when the collector stops to take spans, and one when it does again.
  void Tell(const grpc::Status& status);

  const Options options_;
  SpanQueue* const queue_;
  TraceMetrics* const metrics_;
  Log* const log_;
  Stub stub_;
  bool failing_ = false;  // the thread's
  Mutex mutex_;
  CondVar changed_;
  absl::Time until_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  bool joined_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses everything above
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_TRACING_OTLP_EXPORTER_H_
