#ifndef TENSORD_CLIENTS_CPP_RESULT_SIZES_H_
#define TENSORD_CLIENTS_CPP_RESULT_SIZES_H_

#include <cstddef>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace tensord::client {

// How large the results of programs were the last time, by fingerprint: the best guess for the next. Thread-safe.
class ResultSizes {
 public:
  std::vector<size_t> Of(const std::string& fingerprint) const {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = sizes_.find(fingerprint);
    return found == sizes_.end() ? std::vector<size_t>() : found->second;
  }
  void Learn(const std::string& fingerprint, std::vector<size_t> sizes) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (sizes_.size() >= kMostPrograms) sizes_.clear();
    sizes_[fingerprint] = std::move(sizes);
  }

 private:
  static constexpr size_t kMostPrograms = 1024;

  mutable std::mutex mutex_;
  absl::flat_hash_map<std::string, std::vector<size_t>> sizes_;
};

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_RESULT_SIZES_H_
