#ifndef TENSORD_BACKENDS_CUDA_GRAPH_CACHE_H_
#define TENSORD_BACKENDS_CUDA_GRAPH_CACHE_H_

#include <cstddef>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "backends/cuda/abi/driver.h"
#include "backends/cuda/device/graph.h"
#include "backends/cuda/kept_graphs.h"
#include "engine/base/mutex.h"

namespace tensord::cuda {

// The graphs of a session, each of a run with certain addresses, since a graph holds the arguments of its kernels. The
// pool gives a program that runs again its old addresses, so few are enough. They are among those that the device
// keeps, and one that is no longer there is made again. Thread-safe: two runs with the same addresses at once cannot
// be.
class GraphCache {
 public:
  explicit GraphCache(std::shared_ptr<KeptGraphs> kept) : kept_(std::move(kept)) {}
  ~GraphCache();
  GraphCache(const GraphCache&) = delete;
  GraphCache& operator=(const GraphCache&) = delete;

  static constexpr size_t kMost = 4;
  // A capture may fail for what is over the next time, as memory that is full.
  static constexpr int kMostAttempts = 3;

  // All addresses that a run's kernels are given.
  using Addresses = std::vector<CuAddress>;

  // Returns the graph of a run with these addresses. Null at the first one, which may remain the only one; the second
  // that may capture has `capture` make it, and the next ones after it if that returned null. The least recently used
  // are dropped.
  std::shared_ptr<Graph> Get(const Addresses& addresses, bool may_capture,
                             absl::FunctionRef<std::shared_ptr<Graph>()> capture);

  // Returns the nodes of a graph that is kept, the most recently used; 0: there is none.
  size_t num_nodes() const;

 private:
  struct Entry {
    Addresses addresses;
    std::weak_ptr<Graph> graph;
    int attempts = 0;  // to capture it, that failed
  };
  void Drop(const Entry& entry);

  const std::shared_ptr<KeptGraphs> kept_;
  mutable Mutex mutex_;
  std::list<Entry> entries_ ABSL_GUARDED_BY(mutex_);  // the most recently used first
};

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_GRAPH_CACHE_H_
