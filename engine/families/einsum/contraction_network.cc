#include "engine/families/einsum/contraction_network.h"

#include <algorithm>

namespace tensord {

ContractionNetwork::ContractionNetwork(absl::Span<const std::vector<int>> operands, absl::Span<const int> output,
                                       absl::Span<const int64_t> sizes)
    : num_operands_(static_cast<int>(operands.size())),
      num_words_(std::max<size_t>(1, (sizes.size() + 63) / 64)),
      sets_((operands.size() + 1) * num_words_) {
  for (int64_t size : sizes) sizes_.push_back(static_cast<double>(std::max<int64_t>(1, size)));
  const auto add = [this](size_t set, int label) {
    uint64_t& word = sets_[set * num_words_ + static_cast<size_t>(label) / 64];
    const uint64_t bit = uint64_t{1} << (label % 64);
    const bool is_new = (word & bit) == 0;
    word |= bit;
    return is_new;
  };
  std::vector<int> holders(sizes.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    for (int label : operands[i]) holders[static_cast<size_t>(label)] += add(i, label) ? 1 : 0;
  }
  for (int label : output) holders[static_cast<size_t>(label)] += add(operands.size(), label) ? 1 : 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    for (int label : operands[i]) {
      if (holders[static_cast<size_t>(label)] > 1) continue;
      sets_[i * num_words_ + static_cast<size_t>(label) / 64] &= ~(uint64_t{1} << (label % 64));
    }
  }
}

}  // namespace tensord
