#include "engine/families/einsum/step_order.h"

#include <utility>
#include <vector>

#include "engine/families/einsum/contraction_tree.h"
#include "engine/families/einsum/path_cost.h"

namespace tensord {
namespace {

class StepOrder {
 public:
  StepOrder(const ContractionNetwork& network, const ContractionPath& path)
      : path_(path), num_operands_(network.num_operands()), waits_(path.size(), false) {
    const ContractionTree tree(network, path, PathObjective());
    const auto size = [&](int tensor) { return network.Size(tree.labels(tensor)); };
    for (size_t step = 0; step + 1 < path.size(); ++step) {
      waits_[step] = size(TensorOf(step)) > size(path[step].first) + size(path[step].second);
    }
  }

  // The steps in their new order.
  std::vector<size_t> Run() {
    for (size_t step = 0; step < path_.size(); ++step) {
      if (waits_[step]) continue;
      Make(step);
    }
    return std::move(order_);
  }

 private:
  struct Task {
    size_t step = 0;
    bool prepares = false;  // makes what the step waits for, else the step itself
  };

  int TensorOf(size_t step) const { return num_operands_ + static_cast<int>(step); }

  // Makes a step after its waiting operands; no recursion, which a chain of steps could make deep.
  void Make(size_t step) {
    std::vector<Task> tasks = {{step, false}, {step, true}};
    while (!tasks.empty()) {
      const Task task = tasks.back();
      tasks.pop_back();
      if (!task.prepares) {
        order_.push_back(task.step);
        continue;
      }
      for (const bool prepares : {false, true}) {
        for (const int tensor : {path_[task.step].second, path_[task.step].first}) {
          if (tensor < num_operands_ || !waits_[static_cast<size_t>(tensor - num_operands_)]) continue;
          tasks.push_back({static_cast<size_t>(tensor - num_operands_), prepares});
        }
      }
    }
  }

  const ContractionPath& path_;
  const int num_operands_;
  std::vector<bool> waits_;  // by step
  std::vector<size_t> order_;
};

}  // namespace

ContractionPath WithLateGrowth(const ContractionNetwork& network, const ContractionPath& path) {
  const std::vector<size_t> order = StepOrder(network, path).Run();
  std::vector<int> tensors(path.size());  // by old step: what it makes in the new path
  for (size_t i = 0; i < order.size(); ++i) tensors[order[i]] = network.num_operands() + static_cast<int>(i);
  const auto renamed = [&](int tensor) {
    return tensor < network.num_operands() ? tensor : tensors[static_cast<size_t>(tensor - network.num_operands())];
  };
  ContractionPath ordered;
  for (const size_t step : order) ordered.emplace_back(renamed(path[step].first), renamed(path[step].second));
  return ordered;
}

}  // namespace tensord
