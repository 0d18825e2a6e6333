#include "backends/cuda/kept_graphs.h"

#include <algorithm>
#include <iterator>

namespace tensord::cuda {

void KeptGraphs::Use(const std::shared_ptr<Graph>& graph) {
  std::list<std::shared_ptr<Graph>> dropped;  // that go without the lock
  MutexLock lock(&mutex_);
  const auto it = std::find(graphs_.begin(), graphs_.end(), graph);
  if (it != graphs_.end()) {
    graphs_.splice(graphs_.begin(), graphs_, it);
    return;
  }
  graphs_.push_front(graph);
  num_nodes_ += graph->num_nodes();
  while (graphs_.size() > 1 && (graphs_.size() > most_ || num_nodes_ > most_nodes_)) {
    num_nodes_ -= graphs_.back()->num_nodes();
    dropped.splice(dropped.begin(), graphs_, std::prev(graphs_.end()));
  }
}

void KeptGraphs::Drop(const std::shared_ptr<Graph>& graph) {
  MutexLock lock(&mutex_);
  if (graphs_.remove(graph) > 0) num_nodes_ -= graph->num_nodes();
}

}  // namespace tensord::cuda
