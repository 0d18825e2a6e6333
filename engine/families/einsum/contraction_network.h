#ifndef TENSORD_ENGINE_FAMILIES_EINSUM_CONTRACTION_NETWORK_H_
#define TENSORD_ENGINE_FAMILIES_EINSUM_CONTRACTION_NETWORK_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace tensord {

// A set of the labels of one network, a bit a label: num_words() words, owned by their maker.
using LabelSet = absl::Span<const uint64_t>;

// Calls visit(label) for every label of a set, ascending.
template <typename Visit>
void ForEachLabel(LabelSet set, const Visit& visit) {
  for (size_t w = 0; w < set.size(); ++w) {
    for (uint64_t bits = set[w]; bits != 0; bits &= bits - 1) {
      visit(w * 64 + static_cast<size_t>(std::countr_zero(bits)));
    }
  }
}

// An einsum as planners of contractions see it: each operand's labels, without those that are summed away because
// nothing else needs them; the result's labels; and all sizes. A label may stand in any number of operands. Immutable;
// thread-safe.
class ContractionNetwork {
 public:
  // Labels are 0 … sizes.size() - 1. Repeats within an operand count once. At least one operand.
  ContractionNetwork(absl::Span<const std::vector<int>> operands, absl::Span<const int> output,
                     absl::Span<const int64_t> sizes);

  int num_operands() const { return num_operands_; }
  size_t num_words() const { return num_words_; }
  LabelSet operand(int i) const { return Set(static_cast<size_t>(i)); }
  LabelSet output() const { return Set(static_cast<size_t>(num_operands_)); }
  // Elements of a tensor with these labels; infinity past the range of a double.
  double Size(LabelSet set) const {
    double size = 1;
    ForEachLabel(set, [&](size_t label) { size *= sizes_[label]; });
    return size;
  }
  double size_of(size_t label) const { return sizes_[label]; }

 private:
  LabelSet Set(size_t i) const { return LabelSet(sets_).subspan(i * num_words_, num_words_); }

  int num_operands_;
  size_t num_words_;
  std::vector<double> sizes_;   // of the labels; an empty axis counts as one of one element
  std::vector<uint64_t> sets_;  // of the operands, then of the output
};

// Pairwise contractions: operands are 0 … n - 1, and step s contracts two that are not yet used and makes n + s. n - 1
// steps.
using ContractionPath = std::vector<std::pair<int, int>>;

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_EINSUM_CONTRACTION_NETWORK_H_
