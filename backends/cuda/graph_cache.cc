#include "backends/cuda/graph_cache.h"

#include <algorithm>
#include <utility>

namespace tensord::cuda {

GraphCache::~GraphCache() {
  for (const Entry& entry : entries_) Drop(entry);
}

void GraphCache::Drop(const Entry& entry) {
  if (const std::shared_ptr<Graph> graph = entry.graph.lock(); graph != nullptr) kept_->Drop(graph);
}

std::shared_ptr<Graph> GraphCache::Get(const Addresses& addresses, bool may_capture,
                                       absl::FunctionRef<std::shared_ptr<Graph>()> capture) {
  {
    MutexLock lock(&mutex_);
    const auto it = std::find_if(entries_.begin(), entries_.end(),
                                 [&](const Entry& entry) { return entry.addresses == addresses; });
    if (it == entries_.end()) {
      entries_.push_front({.addresses = addresses});
      if (entries_.size() <= kMost) return nullptr;
      Drop(entries_.back());
      entries_.pop_back();
      return nullptr;
    }
    entries_.splice(entries_.begin(), entries_, it);
    if (std::shared_ptr<Graph> graph = it->graph.lock(); graph != nullptr) {
      kept_->Use(graph);
      return graph;
    }
    if (!may_capture || it->attempts == kMostAttempts) return nullptr;
    ++it->attempts;
  }
  std::shared_ptr<Graph> graph = capture();
  if (graph == nullptr) return nullptr;
  MutexLock lock(&mutex_);
  for (Entry& entry : entries_) {
    if (entry.addresses != addresses) continue;
    entry.graph = graph;
    entry.attempts = 0;
    kept_->Use(graph);
  }
  return graph;
}

size_t GraphCache::num_nodes() const {
  MutexLock lock(&mutex_);
  for (const Entry& entry : entries_) {
    if (const std::shared_ptr<Graph> graph = entry.graph.lock(); graph != nullptr) return graph->num_nodes();
  }
  return 0;
}

}  // namespace tensord::cuda
