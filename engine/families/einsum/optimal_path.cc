#include "engine/families/einsum/optimal_path.h"

#include <algorithm>

#include "engine/base/stop_signal.h"

namespace tensord {

void OptimalSearch::GroupLabels(absl::Span<const LabelSet> tensors, LabelSet result) {
  holders_.resize(network_.num_words() * 64);
  seen_labels_.clear();
  const auto hold = [this](LabelSet set, uint32_t bit) {
    ForEachLabel(set, [&](size_t label) {
      if (holders_[label] == 0) seen_labels_.push_back(label);
      holders_[label] |= bit;
    });
  };
  for (size_t i = 0; i < tensors.size(); ++i) hold(tensors[i], uint32_t{1} << i);
  hold(result, uint32_t{1} << tensors.size());

  std::stable_sort(seen_labels_.begin(), seen_labels_.end(),
                   [this](size_t a, size_t b) { return holders_[a] < holders_[b]; });
  group_holders_.clear();
  group_sizes_.clear();
  for (size_t label : seen_labels_) {
    if (group_holders_.empty() || group_holders_.back() != holders_[label]) {
      group_holders_.push_back(holders_[label]);
      group_sizes_.push_back(1);
    }
    group_sizes_.back() *= network_.size_of(label);
  }
  for (size_t label : seen_labels_) holders_[label] = 0;
  words_ = std::max<size_t>(1, (group_holders_.size() + 63) / 64);
}

double OptimalSearch::StepCost(uint32_t a, uint32_t b, bool is_last) {
  const uint64_t *x = &kept_[a * words_], *y = &kept_[b * words_], *result = &kept_[(a | b) * words_];
  double summed = 1;
  bool sums = false;
  steps_ += 4 + static_cast<int64_t>(words_);
  for (size_t w = 0; w < words_; ++w) {
    for (uint64_t gone = (x[w] | y[w]) & ~result[w]; gone != 0; gone &= gone - 1) {
      summed *= group_sizes_[w * 64 + static_cast<size_t>(std::countr_zero(gone))];
      sums = true;
      ++steps_;
    }
  }
  return objective_.StepCost(summed * sizes_[a | b], sizes_[a | b], sums, is_last);
}

bool OptimalSearch::Search(absl::Span<const LabelSet> tensors, LabelSet result, bool is_last, double below) {
  GroupLabels(tensors, result);
  const uint32_t all = (uint32_t{1} << tensors.size()) - 1;
  steps_ = (int64_t{all} + 1) * static_cast<int64_t>(group_holders_.size());
  kept_.assign((size_t{all} + 1) * words_, 0);
  sizes_.assign(size_t{all} + 1, 1);
  best_.assign(size_t{all} + 1, {});
  for (uint32_t subset = 1; subset <= all; ++subset) {
    for (size_t g = 0; g < group_holders_.size(); ++g) {
      if ((group_holders_[g] & subset) == 0 || (group_holders_[g] & ~subset) == 0) continue;
      kept_[subset * words_ + g / 64] |= uint64_t{1} << (g % 64);
      sizes_[subset] *= group_sizes_[g];
    }
    if (std::has_single_bit(subset)) continue;
    if (StopRequested()) return false;
    // The left part has the lowest tensor, so that each split comes once.
    const uint32_t lowest = subset & (~subset + 1), rest = subset ^ lowest;
    Subset best{.cost = below};
    for (uint32_t right = rest; right != 0; right = (right - 1) & rest) {
      const uint32_t left = subset ^ right;
      ++steps_;
      const double parts = best_[left].cost + best_[right].cost;
      if (parts + sizes_[subset] >= best.cost) continue;
      const double cost = parts + StepCost(left, right, is_last && subset == all);
      if (cost < best.cost) best = {.cost = cost, .left = left};
    }
    best_[subset] = best;
  }
  if (best_[all].left == 0) return false;
  path_.clear();
  std::vector<int> made(size_t{all} + 1, -1);
  for (size_t i = 0; i < tensors.size(); ++i) made[size_t{1} << i] = static_cast<int>(i);
  Emit(all, absl::MakeSpan(made));
  return true;
}

int OptimalSearch::Emit(uint32_t subset, absl::Span<int> made) {
  if (made[subset] >= 0) return made[subset];
  const uint32_t left = best_[subset].left;
  const int a = Emit(left, made), b = Emit(subset ^ left, made);
  path_.push_back({a, b});
  const int tensors = std::popcount(best_.size() - 1);
  return made[subset] = tensors + static_cast<int>(path_.size()) - 1;
}

}  // namespace tensord
