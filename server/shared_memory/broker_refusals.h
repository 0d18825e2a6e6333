#ifndef TENSORD_SERVER_SHARED_MEMORY_BROKER_REFUSALS_H_
#define TENSORD_SERVER_SHARED_MEMORY_BROKER_REFUSALS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tensord::server {

// The reason why a process got no shared memory.
enum class BrokerRefusal : uint8_t { kUser, kCaller, kLimit, kMemory, kMalformed, kDraining, kInternal };

inline constexpr std::array<const char*, 7> kBrokerRefusalNames = {"user",      "caller",   "limit",   "memory",
                                                                   "malformed", "draining", "internal"};

// Counts of refusals since the start. Thread-safe.
class BrokerRefusals {
 public:
  using Counts = std::array<int64_t, kBrokerRefusalNames.size()>;

  void Count(BrokerRefusal refusal) { counts_[static_cast<size_t>(refusal)].fetch_add(1, std::memory_order_relaxed); }
  Counts counts() const {
    Counts counts;
    for (size_t i = 0; i < counts.size(); ++i) counts[i] = counts_[i].load(std::memory_order_relaxed);
    return counts;
  }

 private:
  std::array<std::atomic<int64_t>, kBrokerRefusalNames.size()> counts_{};
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_SHARED_MEMORY_BROKER_REFUSALS_H_
