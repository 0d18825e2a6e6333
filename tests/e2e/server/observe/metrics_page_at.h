#ifndef TENSORD_TESTS_E2E_SERVER_OBSERVE_METRICS_PAGE_AT_H_
#define TENSORD_TESTS_E2E_SERVER_OBSERVE_METRICS_PAGE_AT_H_

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/testlib/peers/tcp_client.h"

namespace tensord {

// The /metrics of a server's process at "host:port".
class MetricsPageAt {
 public:
  explicit MetricsPageAt(std::string address) : address_(std::move(address)) {}

  std::string Text() const {
    return TcpClient(address_).Ask("GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  }
  // Tells whether it has that line now: "tensord_ready 1".
  bool Says(const std::string& line) const { return absl::StrContains(Text(), absl::StrCat("\n", line, "\n")); }

 private:
  std::string address_;
};

// The address at the end of a line "listening grpc 127.0.0.1:4711".
inline std::string AddressIn(const std::string& line) { return line.substr(line.rfind(' ') + 1); }

}  // namespace tensord

#endif  // TENSORD_TESTS_E2E_SERVER_OBSERVE_METRICS_PAGE_AT_H_
