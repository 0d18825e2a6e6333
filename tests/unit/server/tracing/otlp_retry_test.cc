#include "server/tracing/otlp_retry.h"

#include <string>

#include "gtest/gtest.h"
#include "server/tracing/otlp.pb.h"

namespace tensord::server {
namespace {

std::string DetailsWith(int64_t seconds, int32_t nanos, const std::string& type = "google.rpc.RetryInfo") {
  otlp::RetryInfo info;
  info.mutable_retry_delay()->set_seconds(seconds);
  info.mutable_retry_delay()->set_nanos(nanos);
  otlp::CallStatus details;
  details.add_details()->set_type_url("type.googleapis.com/google.rpc.Help");
  google::protobuf::Any* const any = details.add_details();
  any->set_type_url("type.googleapis.com/" + type);
  any->set_value(info.SerializeAsString());
  return details.SerializeAsString();
}

OtlpRetry Of(grpc::StatusCode code, const std::string& details = "") { return RetryOf({code, "", details}); }

TEST(OtlpRetryTest, WhatOtlpLetsClientsRepeat) {
  for (const auto code : {grpc::StatusCode::CANCELLED, grpc::StatusCode::DEADLINE_EXCEEDED, grpc::StatusCode::ABORTED,
                          grpc::StatusCode::OUT_OF_RANGE, grpc::StatusCode::UNAVAILABLE, grpc::StatusCode::DATA_LOSS}) {
    EXPECT_TRUE(Of(code).may_repeat) << code;
  }
  for (const auto code : {grpc::StatusCode::INVALID_ARGUMENT, grpc::StatusCode::UNAUTHENTICATED,
                          grpc::StatusCode::UNIMPLEMENTED, grpc::StatusCode::INTERNAL, grpc::StatusCode::UNKNOWN}) {
    EXPECT_FALSE(Of(code, DetailsWith(1, 0)).may_repeat) << code;
  }
}

TEST(OtlpRetryTest, ACollectorThatIsFullSaysWhenItIsNot) {
  EXPECT_FALSE(Of(grpc::StatusCode::RESOURCE_EXHAUSTED).may_repeat);
  EXPECT_FALSE(Of(grpc::StatusCode::RESOURCE_EXHAUSTED, DetailsWith(1, 0, "google.rpc.QuotaFailure")).may_repeat);
  const OtlpRetry full = Of(grpc::StatusCode::RESOURCE_EXHAUSTED, DetailsWith(2, 500'000'000));
  EXPECT_TRUE(full.may_repeat);
  EXPECT_EQ(full.delay, absl::Milliseconds(2500));
  EXPECT_EQ(Of(grpc::StatusCode::UNAVAILABLE, DetailsWith(3, 0)).delay, absl::Seconds(3));
  EXPECT_EQ(Of(grpc::StatusCode::UNAVAILABLE).delay, std::nullopt);
}

TEST(OtlpRetryTest, AnyBytesAreAllowed) {
  EXPECT_EQ(Of(grpc::StatusCode::RESOURCE_EXHAUSTED, "\xff\xff").may_repeat, false);
  EXPECT_EQ(Of(grpc::StatusCode::RESOURCE_EXHAUSTED, DetailsWith(-5, -1)).delay, absl::ZeroDuration());
  EXPECT_EQ(Of(grpc::StatusCode::RESOURCE_EXHAUSTED, DetailsWith(INT64_MAX, 0)).delay, absl::Hours(24));
}

}  // namespace
}  // namespace tensord::server
