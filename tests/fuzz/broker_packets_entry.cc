#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "google/protobuf/stubs/logging.h"
#include "server/shared_memory/broker_client.h"
#include "tests/fuzz/entries.h"
#include "tests/fuzz/require.h"

namespace tensord {

void FuzzBrokerPackets(absl::string_view bytes) {
  const google::protobuf::LogSilencer silent;
  constexpr int64_t kMostBytes = 1 << 18;
  server::RegionStore regions(
      {.region_bytes = 1 << 16, .tenant_bytes = kMostBytes, .bytes = kMostBytes, .tenant_regions = 8});
  const server::Authenticator everybody(nullptr, nullptr);
  server::CallGate gate(kMostBytes);
  gate.MoveTo(server::ServingState::kServing);
  server::BrokerRefusals refusals;
  const server::BrokerParts parts = {
      .regions = &regions, .authenticator = &everybody, .gate = &gate, .refusals = &refusals};
  std::vector<std::string> given;
  {
    server::BrokerClient client(parts, "fuzz");
    while (!bytes.empty()) {
      const size_t size = static_cast<uint8_t>(bytes[0]);
      server::BrokerClient::Answer answer = client.Handle(bytes.substr(1, size));
      bytes.remove_prefix(std::min(size + 1, bytes.size()));
      Require(answer.reply.has_error() == answer.reply.region().empty(), "an answer is a region or a refusal");
      if (answer.region == nullptr) continue;
      Require(answer.region->size_bytes() >= answer.reply.byte_count(), "a region has what was promised");
      given.push_back(answer.region->id());
      close(answer.region->TakeDescriptor());
      const auto stats = regions.stats();
      Require(stats.regions <= 8 && stats.bytes <= kMostBytes, "limits hold");
      Require(regions.Find("default", answer.region->id(), 0, answer.region->size_bytes()).ok(), "it is found");
      Require(!regions.Find("other", answer.region->id(), 0, 1).ok(), "by its tenant alone");
    }
  }
  Require(regions.stats().regions == 0 && regions.stats().bytes == 0, "what a client had goes with it");
  for (const std::string& id : given) Require(!regions.Find("default", id, 0, 0).ok(), "a region that is gone is none");
}

}  // namespace tensord
