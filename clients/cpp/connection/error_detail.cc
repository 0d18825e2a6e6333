#include "tensord/error_detail.h"

#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "clients/cpp/wire/duration.h"
#include "google/protobuf/any.pb.h"
#include "google/protobuf/empty.pb.h"
#include "google/protobuf/unknown_field_set.h"
#include "grpcpp/support/status.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::client {
namespace {

constexpr char kDetailTypeUrl[] = "type.googleapis.com/tensord.v1.ErrorDetail";
// How gRPC tells of an answer that is none of its own.
constexpr char kHttpStatus[] = "Received http2 header with status: ";
constexpr int kStatusDetailsField = 3;  // google.rpc.Status.details

// Finds the ErrorDetail among the details of a serialized google.rpc.Status, whose generated class gRPC does not
// install.
std::optional<std::string> FindDetail(const std::string& serialized_rpc_status) {
  google::protobuf::Empty rpc_status;
  if (!rpc_status.ParseFromString(serialized_rpc_status)) return std::nullopt;
  const google::protobuf::UnknownFieldSet& fields = rpc_status.GetReflection()->GetUnknownFields(rpc_status);
  for (int i = 0; i < fields.field_count(); ++i) {
    const google::protobuf::UnknownField& field = fields.field(i);
    if (field.number() != kStatusDetailsField ||
        field.type() != google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED) {
      continue;
    }
    google::protobuf::Any detail;
    if (detail.ParseFromString(field.length_delimited()) && detail.Is<v1::ErrorDetail>()) return detail.value();
  }
  return std::nullopt;
}

// Returns the message, or its meaning if a proxy has answered for a server.
std::string MessageOf(const grpc::Status& status) {
  std::string message = status.error_message();
  if (message.empty() && status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
    return "nothing takes such a call there: operators' calls go to the listener of the setting admin.listen, all "
           "others to "
           "those of listen";
  }
  if (message.empty()) return "the server gave no message";
  const size_t at = message.find(kHttpStatus);
  if (at == std::string::npos) return message;
  const std::string code = message.substr(at + sizeof(kHttpStatus) - 1, 3);
  absl::string_view meaning;
  if (code == "502") meaning = ": the server behind it broke the call off";
  if (code == "503") meaning = ": no server behind it takes calls";
  if (code == "504") meaning = ": the server behind it did not answer in the proxy's time";
  return absl::StrCat("a proxy answered for a tensord server, with HTTP ", code, meaning);
}

}  // namespace

std::optional<ErrorDetail> GetErrorDetail(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kDetailTypeUrl);
  if (!payload.has_value()) return std::nullopt;
  v1::ErrorDetail wire;
  if (!wire.ParseFromString(std::string(*payload))) return std::nullopt;
  ErrorDetail detail = {.reason = wire.reason(),
                        .node = wire.node(),
                        .op = wire.op(),
                        .limit = wire.limit(),
                        .limit_value = wire.limit_value(),
                        .actual_value = wire.actual_value()};
  if (wire.has_retry_after()) {
    detail.retry_after = ToAbslDuration(wire.retry_after());
  }
  return detail;
}

std::string ReasonOf(const absl::Status& status) {
  const std::optional<ErrorDetail> detail = GetErrorDetail(status);
  return detail.has_value() ? detail->reason : "";
}

std::string Describe(const absl::Status& status) {
  std::string text = absl::StatusCodeToString(status.code());
  if (!status.message().empty()) absl::StrAppend(&text, ": ", status.message());
  const std::optional<ErrorDetail> detail = GetErrorDetail(status);
  if (!detail.has_value()) return text;
  std::vector<std::string> words;
  if (!detail->reason.empty()) words.push_back(detail->reason);
  if (!detail->node.empty()) words.push_back(absl::StrCat("node ", detail->node));
  if (!detail->op.empty()) words.push_back(absl::StrCat("op ", detail->op));
  if (!detail->limit.empty()) {
    words.push_back(absl::StrCat("limit ", detail->limit, " ", detail->limit_value, ", here ", detail->actual_value));
  }
  if (detail->retry_after.has_value()) {
    words.push_back(absl::StrCat("try again after ", absl::FormatDuration(*detail->retry_after)));
  }
  if (!words.empty()) absl::StrAppend(&text, " (", absl::StrJoin(words, ", "), ")");
  return text;
}

absl::Status ToAbslStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()), MessageOf(status));
  if (std::optional<std::string> detail = FindDetail(status.error_details())) {
    result.SetPayload(kDetailTypeUrl, absl::Cord(*std::move(detail)));
  }
  return result;
}

absl::Status ToAbslStatus(const v1::Error& error) {
  const absl::StatusCode code =
      error.code() == 0 ? absl::StatusCode::kUnknown : static_cast<absl::StatusCode>(error.code());
  absl::Status result(code, error.message());
  if (error.has_detail()) result.SetPayload(kDetailTypeUrl, absl::Cord(error.detail().SerializeAsString()));
  return result;
}

}  // namespace tensord::client
