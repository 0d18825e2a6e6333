#ifndef TENSORD_SERVER_TRACING_OTLP_RETRY_H_
#define TENSORD_SERVER_TRACING_OTLP_RETRY_H_

#include <grpcpp/support/status.h>

#include <optional>

#include "absl/time/time.h"

namespace tensord::server {

// OTLP's answer to an export that a collector did not take.
struct OtlpRetry {
  bool may_repeat = false;
  std::optional<absl::Duration> delay;  // before that, at least, where the collector names one
};

// `status` is not OK; its details may be any bytes. RESOURCE_EXHAUSTED may be repeated only with a delay: without one
// the collector does not say that it will recover.
OtlpRetry RetryOf(const grpc::Status& status);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_TRACING_OTLP_RETRY_H_
