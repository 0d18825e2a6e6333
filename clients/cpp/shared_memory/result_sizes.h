#ifndef TENSORD_CLIENTS_CPP_SHARED_MEMORY_RESULT_SIZES_H_
#define TENSORD_CLIENTS_CPP_SHARED_MEMORY_RESULT_SIZES_H_

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "tensord/execute_answer.h"
#include "tensord/result_plan.h"

namespace tensord::client {

// Latest sizes of programs' results by fingerprint, as a guess for the next run. Thread-safe.
class ResultSizes {
 public:
  // Returns a size for each result, 0 if it is unknown or not to be returned.
  std::vector<size_t> Expected(const std::string& fingerprint, absl::Span<const ResultPlan> plans) const {
    std::vector<size_t> sizes;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      const auto found = sizes_.find(fingerprint);
      if (found != sizes_.end()) sizes = found->second;
    }
    for (size_t i = 0; i < std::min(sizes.size(), plans.size()); ++i) {
      if (!plans[i].is_returned()) sizes[i] = 0;
    }
    return sizes;
  }
  // Records the sizes of an answer; ignores graphs without a fingerprint.
  void Learn(const std::string& fingerprint, const ExecuteAnswer& answer) {
    if (fingerprint.empty()) return;
    std::lock_guard<std::mutex> lock(mutex_);
    if (sizes_.size() >= kMostPrograms && !sizes_.contains(fingerprint)) sizes_.clear();
    std::vector<size_t>& sizes = sizes_[fingerprint];
    sizes.resize(answer.outputs.size());
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (answer.outputs[i].tensor.has_value()) sizes[i] = answer.outputs[i].tensor->size_bytes();
    }
  }

 private:
  static constexpr size_t kMostPrograms = 1024;

  mutable std::mutex mutex_;
  absl::flat_hash_map<std::string, std::vector<size_t>> sizes_;
};

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_SHARED_MEMORY_RESULT_SIZES_H_
