#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include "google/protobuf/stubs/logging.h"
#include "tests/fuzz/entries.h"
#include "tests/testlib/peers/received_execute_oracle.h"

namespace tensord {

void FuzzReceivedExecute(absl::string_view bytes) {
  const google::protobuf::LogSilencer silent;
  std::mt19937_64 random(bytes.size());
  // Payloads are gathered from some thousand bytes on, more than a fuzzer likes: the byte 0xFE stands for 4096.
  constexpr size_t kMostBytes = 1 << 20;
  std::string grown;
  for (const char c : bytes.substr(0, 4096)) {
    if (grown.size() < kMostBytes) grown.append(c == '\xFE' ? 4096 : 1, c);
  }
  const std::string difference = DifferenceFromProtobuf(grown, &random);
  if (difference.empty()) return;
  std::fprintf(stderr, "broken promise: a request is read as protobuf reads it: %s\n", difference.c_str());
  std::abort();
}

}  // namespace tensord
