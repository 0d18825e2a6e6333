#ifndef TENSORD_SERVER_CONFIG_LIVE_GRAPH_LIMITS_H_
#define TENSORD_SERVER_CONFIG_LIVE_GRAPH_LIMITS_H_

#include <cstddef>
#include <vector>

#include "proto/codec/limits.h"
#include "server/config/live_value.h"

namespace tensord::server {

// The limits on graphs, which change while calls read them. Each holds for itself: who reads during a change may see
// the old value of one and the new one of another. Thread-safe; a copy is a value of its own.
class LiveGraphLimits {
 public:
  LiveGraphLimits(const codec::GraphLimits& limits = {})  // NOLINT(google-explicit-constructor)
      : values_(codec::AllGraphLimits().size()) {
    Set(limits);
  }
  void Set(const codec::GraphLimits& limits) {
    for (size_t i = 0; i < values_.size(); ++i) values_[i] = limits.*codec::AllGraphLimits()[i].value;
  }
  codec::GraphLimits now() const {
    codec::GraphLimits limits;
    for (size_t i = 0; i < values_.size(); ++i) limits.*codec::AllGraphLimits()[i].value = values_[i];
    return limits;
  }

 private:
  std::vector<LiveInt64> values_;
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_CONFIG_LIVE_GRAPH_LIMITS_H_
