#include "server/rpc/wire/status_bridge.h"

#include <string>

#include "engine/base/refusal.h"
#include "google/protobuf/any.pb.h"
#include "google/protobuf/empty.pb.h"
#include "google/protobuf/unknown_field_set.h"
#include "gtest/gtest.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::server {
namespace {

// google.rpc.Status, whose generated class is not at hand: its fields are those that an empty message does not know.
struct RpcStatus {
  uint64_t code = 0;
  std::string message;
  v1::ErrorDetail detail;
};

RpcStatus ParseDetails(const std::string& bytes) {
  RpcStatus status;
  google::protobuf::Empty fields;
  EXPECT_TRUE(fields.ParseFromString(bytes));
  const auto& unknown = fields.GetReflection()->GetUnknownFields(fields);
  EXPECT_EQ(unknown.field_count(), 3);
  for (int i = 0; i < unknown.field_count(); ++i) {
    const auto& field = unknown.field(i);
    if (field.number() == 1) status.code = field.varint();
    if (field.number() == 2) status.message = field.length_delimited();
    if (field.number() == 3) {
      google::protobuf::Any any;
      EXPECT_TRUE(any.ParseFromString(field.length_delimited()));
      EXPECT_TRUE(any.UnpackTo(&status.detail));
    }
  }
  return status;
}

TEST(StatusBridgeTest, OkIsOk) {
  const grpc::Status status = ToGrpcStatus(absl::OkStatus());
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.error_details(), "");
}

TEST(StatusBridgeTest, ARefusalKeepsItsDetail) {
  const absl::Status refused = WithNode(RefuseLimit("rank", 16, 17, "axes of a tensor"), "n", "add");
  const grpc::Status status = ToGrpcStatus(refused);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(status.error_message(), std::string(refused.message()));
  const RpcStatus details = ParseDetails(status.error_details());
  EXPECT_EQ(details.code, 8u);
  EXPECT_EQ(details.message, status.error_message());
  EXPECT_EQ(details.detail.reason(), "LIMIT_EXCEEDED");
  EXPECT_EQ(details.detail.node(), "n");
  EXPECT_EQ(details.detail.op(), "add");
  EXPECT_EQ(details.detail.limit(), "rank");
  EXPECT_EQ(details.detail.limit_value(), 16);
  EXPECT_EQ(details.detail.actual_value(), 17);
}

TEST(StatusBridgeTest, AnotherStatusHasItsCodeForAReason) {
  const RpcStatus details = ParseDetails(ToGrpcStatus(absl::DataLossError("lost")).error_details());
  EXPECT_EQ(details.code, 15u);
  EXPECT_EQ(details.detail.reason(), "DATA_LOSS");
}

TEST(StatusBridgeTest, LongMessagesFitIntoATrailer) {
  std::string text;
  for (int i = 0; i < 4000; ++i) text += "ä";
  const grpc::Status status = ToGrpcStatus(Refuse(Refusal::kInternal, text));
  EXPECT_LT(3 * status.error_message().size() + status.error_details().size() * 4 / 3, 8192u);
  const RpcStatus details = ParseDetails(status.error_details());
  EXPECT_EQ(details.message, status.error_message());
  EXPECT_EQ(details.message.substr(details.message.size() - 5), "ä…") << "cut between characters";
}

}  // namespace
}  // namespace tensord::server
