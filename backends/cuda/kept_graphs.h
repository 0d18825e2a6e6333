#ifndef TENSORD_BACKENDS_CUDA_KEPT_GRAPHS_H_
#define TENSORD_BACKENDS_CUDA_KEPT_GRAPHS_H_

#include <cstddef>
#include <list>
#include <memory>

#include "backends/cuda/device/graph.h"
#include "engine/base/mutex.h"

namespace tensord::cuda {

// The graphs that a device keeps, of all programs together: each of their nodes takes memory of the driver's and of the
// device, a kilobyte or more. The least recently used go first, and stay only for as long as a run has them.
// Thread-safe.
class KeptGraphs {
 public:
  static constexpr size_t kMost = 64;
  static constexpr size_t kMostNodes = size_t{1} << 16;  // one graph is kept whatever it has

  explicit KeptGraphs(size_t most = kMost, size_t most_nodes = kMostNodes) : most_(most), most_nodes_(most_nodes) {}

  // Notes that a graph is used, a new one or one that was kept before.
  void Use(const std::shared_ptr<Graph>& graph);
  // Gives a graph up, of a program that goes.
  void Drop(const std::shared_ptr<Graph>& graph);

 private:
  const size_t most_, most_nodes_;
  Mutex mutex_;
  size_t num_nodes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::list<std::shared_ptr<Graph>> graphs_ ABSL_GUARDED_BY(mutex_);  // the most recently used first
};

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_KEPT_GRAPHS_H_
