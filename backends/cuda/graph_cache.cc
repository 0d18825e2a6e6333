#include "backends/cuda/graph_cache.h"

#include <algorithm>
#include <utility>

namespace tensord::cuda {

std::shared_ptr<Graph> GraphCache::Get(const Addresses& addresses, bool may_capture,
                                       absl::FunctionRef<std::shared_ptr<Graph>()> capture) {
  {
    MutexLock lock(&mutex_);
    const auto it = std::find_if(entries_.begin(), entries_.end(),
                                 [&](const Entry& entry) { return entry.addresses == addresses; });
    if (it == entries_.end()) {
      entries_.push_front({.addresses = addresses});
      if (entries_.size() > kMost) entries_.pop_back();
      return nullptr;
    }
    entries_.splice(entries_.begin(), entries_, it);
    if (it->graph != nullptr || !may_capture || it->attempts == kMostAttempts) return it->graph;
    ++it->attempts;
  }
  std::shared_ptr<Graph> graph = capture();
  MutexLock lock(&mutex_);
  for (Entry& entry : entries_) {
    if (entry.addresses == addresses) entry.graph = graph;
  }
  return graph;
}

size_t GraphCache::num_nodes() const {
  MutexLock lock(&mutex_);
  for (const Entry& entry : entries_) {
    if (entry.graph != nullptr) return entry.graph->num_nodes();
  }
  return 0;
}

}  // namespace tensord::cuda
