#include "server/tracing/otlp_retry.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "server/tracing/otlp.pb.h"

namespace tensord::server {
namespace {

// No delay is longer; the batch is given up much earlier.
constexpr int64_t kMostSeconds = 24 * 3600;

std::optional<absl::Duration> DelayOf(const grpc::Status& status) {
  otlp::CallStatus details;
  if (!details.ParseFromString(status.error_details())) return std::nullopt;
  for (const google::protobuf::Any& any : details.details()) {
    otlp::RetryInfo info;
    if (!absl::EndsWith(any.type_url(), "/google.rpc.RetryInfo") || !info.ParseFromString(any.value())) continue;
    const absl::Duration delay =
        absl::Seconds(std::clamp<int64_t>(info.retry_delay().seconds(), -kMostSeconds, kMostSeconds)) +
        absl::Nanoseconds(info.retry_delay().nanos());
    return std::max(delay, absl::ZeroDuration());
  }
  return std::nullopt;
}

}  // namespace

OtlpRetry RetryOf(const grpc::Status& status) {
  const std::optional<absl::Duration> delay = DelayOf(status);
  switch (status.error_code()) {
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::ABORTED:
    case grpc::StatusCode::OUT_OF_RANGE:
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::DATA_LOSS:
      return {.may_repeat = true, .delay = delay};
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return {.may_repeat = delay.has_value(), .delay = delay};
    default:
      return {};
  }
}

}  // namespace tensord::server
