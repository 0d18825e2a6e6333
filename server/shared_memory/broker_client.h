#ifndef TENSORD_SERVER_SHARED_MEMORY_BROKER_CLIENT_H_
#define TENSORD_SERVER_SHARED_MEMORY_BROKER_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/admission/rate_limiter.h"
#include "server/identity/authenticator.h"
#include "server/lifecycle/call_gate.h"
#include "server/shared_memory/broker_refusals.h"
#include "server/shared_memory/region_store.h"
#include "tensord/v1/shared_memory.pb.h"

namespace tensord::server {

// The parts that the broker decides by. They outlive it; each is thread-safe.
struct BrokerParts {
  RegionStore* regions = nullptr;
  const Authenticator* authenticator = nullptr;
  const CallGate* gate = nullptr;
  BrokerRefusals* refusals = nullptr;
  RateLimiter* rates = nullptr;  // asking for memory counts as a call does; null: nothing is counted
};

// Returns the kind under which a refusal is counted.
BrokerRefusal KindOf(const absl::Status& status);

// The size beyond which a packet is refused.
inline constexpr size_t kMaxBrokerPacketBytes = size_t{16} << 10;

// One connection to the broker, without its socket: answers packets, and owns the regions that it handed out, which go
// with it. Any bytes are allowed. Confined to one thread at a time, of the broker's.
class BrokerClient {
 public:
  struct Answer {
    v1::SharedMemoryReply reply;
    SharedRegionPtr region;  // whose descriptor goes with the reply; null: none
  };

  // `peer` is for the audit.
  BrokerClient(const BrokerParts& parts, std::string peer) : parts_(parts), peer_(std::move(peer)) {}
  ~BrokerClient();
  BrokerClient(const BrokerClient&) = delete;
  BrokerClient& operator=(const BrokerClient&) = delete;

  // A request that was admitted, for Finish.
  struct Wanted {
    std::string tenant;
    int64_t size_bytes = 0;  // of the region that is made or goes
    std::string freed;       // the region that goes; empty: one is made
  };

  // Reads a packet and decides whether its caller may; takes no memory and little time.
  absl::StatusOr<Wanted> Begin(absl::string_view packet);
  // Does it, which takes as long as a region has pages. A refusal is an answer too.
  Answer Finish(const Wanted& wanted);
  // Both.
  Answer Handle(absl::string_view packet);
  // Returns the tenant that asked last, and the bytes of all its regions.
  const std::string& tenant() const { return tenant_; }
  int64_t held_bytes() const;
  // Counts a refusal that Begin gave, and makes the answer.
  Answer Refuse(const absl::Status& status);
  // Returns the answer to a caller that is not let in.
  static Answer Refused(const absl::Status& status);

 private:
  absl::StatusOr<Wanted> Admit(const std::string& authorization, int64_t size_bytes);
  absl::StatusOr<Answer> Allocate(const Wanted& wanted);

  const BrokerParts& parts_;
  const std::string peer_;
  std::string tenant_;
  absl::flat_hash_map<std::string, int64_t> regions_;  // with their bytes
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_SHARED_MEMORY_BROKER_CLIENT_H_
