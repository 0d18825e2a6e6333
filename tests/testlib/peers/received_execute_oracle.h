#ifndef TENSORD_TESTS_TESTLIB_PEERS_RECEIVED_EXECUTE_ORACLE_H_
#define TENSORD_TESTS_TESTLIB_PEERS_RECEIVED_EXECUTE_ORACLE_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/base/refusal.h"
#include "server/rpc/execute/peeked_execute.h"
#include "server/rpc/execute/received_execute.h"
#include "tests/testlib/peers/byte_slices.h"

namespace tensord {

// How the server reads a request otherwise than protobuf does; empty if it does not. The bytes are cut at random.
inline std::string DifferenceFromProtobuf(absl::string_view bytes, std::mt19937_64* random) {
  static const auto pool = HostBufferPool::Create(std::numeric_limits<int64_t>::max(), 1 << 20);
  grpc::ByteBuffer buffer = InSlices(bytes, random);
  const std::optional<server::PeekedExecute> peeked = server::PeekExecute(buffer);
  absl::StatusOr<server::ReceivedExecute> received = server::ReceiveExecute(&buffer, {});
  v1::ExecuteRequest expected;
  const bool parsed = expected.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  if (!received.ok()) {
    const std::string reason = DetailOf(received.status())->reason;
    if (reason == "MALFORMED_MESSAGE") return parsed ? "refuses what protobuf reads" : "";
    const bool has_unknown = !expected.GetReflection()->GetUnknownFields(expected).empty();
    return parsed && has_unknown && reason == "UNSUPPORTED_REQUEST" ? "" : absl::StrCat("refuses with ", reason);
  }
  if (!parsed) return "reads what protobuf refuses";
  if (peeked.has_value()) {
    if (!expected.session().empty()) return "peeks past a session";
    if (peeked->fingerprint.ToHex() != expected.fingerprint()) return "peeks at another fingerprint";
    if (peeked->priority != expected.priority()) return "peeks at another priority";
  }
  const absl::Status gathered = received->Gather(pool.get(), [](int64_t tasks, absl::FunctionRef<void(int64_t)> fn) {
    for (int64_t i = 0; i < tasks; ++i) fn(i);
  });
  if (!gathered.ok()) return absl::StrCat("cannot be gathered: ", gathered.message());
  v1::ExecuteRequest whole = received->message;
  for (int i = 0; i < whole.arguments_size(); ++i) {
    if (received->payload(i) == nullptr) continue;
    if (!whole.arguments(i).has_tensor() || !whole.arguments(i).tensor().data().empty()) return "a payload too many";
    whole.mutable_arguments(i)->mutable_tensor()->set_data(std::string(received->DataOf(i)));
  }
  // Compares bytes, which hold unknown fields inside too.
  return whole.SerializeAsString() == expected.SerializeAsString() ? "" : "another meaning";
}

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_PEERS_RECEIVED_EXECUTE_ORACLE_H_
