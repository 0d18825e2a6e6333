#ifndef TENSORD_ERROR_DETAIL_H_
#define TENSORD_ERROR_DETAIL_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tensord/message_names.h"

namespace grpc {
class Status;  // grpcpp/support/status.h
}  // namespace grpc

namespace tensord::client {

// The server's information on a failed call beyond code and message. Fields that do not apply are empty or 0.
struct ErrorDetail {
  std::string reason = {};  // stable and documented, for example "SHAPE_MISMATCH": match on it, never on a message
  std::string node = {};
  std::string op = {};
  std::string limit = {};  // which limit was hit, its value, and what the request came to
  int64_t limit_value = 0;
  int64_t actual_value = 0;
  std::optional<absl::Duration> retry_after = {};
};

// Returns the detail of a status that a Client returned; none if the server sent none, or the call never reached one.
std::optional<ErrorDetail> GetErrorDetail(const absl::Status& status);
// Its reason; empty if there is no detail.
std::string ReasonOf(const absl::Status& status);

// Returns the status for people, and for logs: code, message, and the detail as words.
// "INVALID_ARGUMENT: shapes differ (SHAPE_MISMATCH, node n3, op Add)"
std::string Describe(const absl::Status& status);

// The outcome of a call as an absl::Status that carries the server's detail, for GetErrorDetail.
absl::Status ToAbslStatus(const grpc::Status& status);

// The same of an error that came in a message. Never OK.
absl::Status ToAbslStatus(const v1::Error& error);

}  // namespace tensord::client

#endif  // TENSORD_ERROR_DETAIL_H_
