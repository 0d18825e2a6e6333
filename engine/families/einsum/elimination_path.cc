#include "engine/families/einsum/elimination_path.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>

#include "engine/families/einsum/step_random.h"

namespace tensord {
namespace {

// Logarithms; of a tensor the queue, and the step in the tree of the path; of one of its labels all of these.
constexpr size_t kStepsOfScore = 32, kStepsOfTensor = 128, kStepsOfHolder = 8;

// The graph of labels and the order in which they go. Two labels are neighbours if a tensor has both.
class LabelOrder {
 public:
  LabelOrder(const ContractionNetwork& network, const EliminationChoice& choice, SearchWork* work)
      : network_(network),
        choice_(choice),
        random_(choice.seed),
        work_(*work),
        words_(network.num_words()),
        neighbours_(words_ * 64 * words_),
        present_(words_) {
    for (int i = 0; i < network.num_operands(); ++i) Connect(network.operand(i));
    Connect(network.output());
  }

  // Returns nothing if the work is used up.
  std::optional<std::vector<size_t>> Run() {
    std::vector<double> scores(words_ * 64, std::numeric_limits<double>::infinity());
    std::vector<uint64_t> open = present_;
    for (size_t w = 0; w < words_; ++w) open[w] &= ~network_.output()[w];
    ForEachLabel(open, [&](size_t label) { scores[label] = Score(label); });
    std::vector<size_t> order;
    while (!work_.is_used_up()) {
      size_t next = scores.size();
      ForEachLabel(open, [&](size_t label) {
        work_.Add(int64_t{1});
        if (next == scores.size() || scores[label] < scores[next]) next = label;
      });
      if (next == scores.size()) return order;
      order.push_back(next);
      open[next / 64] &= ~(uint64_t{1} << (next % 64));
      const std::vector<uint64_t> clique(Neighbours(next).begin(), Neighbours(next).end());
      Connect(clique);
      ForEachLabel(clique,
                   [&](size_t label) { neighbours_[label * words_ + next / 64] &= ~(uint64_t{1} << (next % 64)); });
      ForEachLabel(clique, [&](size_t label) {
        if ((open[label / 64] >> (label % 64) & 1) != 0) scores[label] = Score(label);
      });
    }
    return std::nullopt;
  }

 private:
  LabelSet Neighbours(size_t label) const { return LabelSet(neighbours_).subspan(label * words_, words_); }

  void Connect(LabelSet clique) {
    for (size_t w = 0; w < words_; ++w) present_[w] |= clique[w];
    ForEachLabel(clique, [&](size_t label) {
      work_.Add(words_);
      uint64_t* row = &neighbours_[label * words_];
      for (size_t w = 0; w < words_; ++w) row[w] |= clique[w];
      row[label / 64] &= ~(uint64_t{1} << (label % 64));
    });
  }

  double Score(size_t label) {
    work_.Add(kStepsOfScore + words_);
    const LabelSet neighbours = Neighbours(label);
    double score = std::log2(network_.Size(neighbours) * network_.size_of(label));
    if (choice_.by_fill) {
      double missing = 0;
      ForEachLabel(neighbours, [&](size_t other) {
        work_.Add(words_);
        const LabelSet row = Neighbours(other);
        for (size_t w = 0; w < words_; ++w) missing += std::popcount(neighbours[w] & ~row[w]);
      });
      score += missing * 64;  // ties by the clique's size
    }
    return score * (1 + choice_.noise * random_.Uniform());
  }

  const ContractionNetwork& network_;
  const EliminationChoice choice_;
  StepRandom random_;
  SearchWork& work_;
  const size_t words_;
  std::vector<uint64_t> neighbours_;  // a row a label
  std::vector<uint64_t> present_;
};

// The tensors that are left, as the order makes them.
class Elimination {
 public:
  Elimination(const ContractionNetwork& network, SearchWork* work)
      : network_(network), work_(*work), words_(network.num_words()), holders_(words_ * 64), count_(words_ * 64) {
    ForEachLabel(network.output(), [this](size_t label) { ++count_[label]; });
    for (int i = 0; i < network.num_operands(); ++i) Add(network.operand(i));
  }

  void Eliminate(size_t label) { Join(holders_[label]); }

  ContractionPath Finish() && {
    std::vector<int> rest;
    for (size_t i = 0; i < alive_.size(); ++i) rest.push_back(static_cast<int>(i));
    Join(rest);
    return std::move(path_);
  }

 private:
  LabelSet Labels(int tensor) const { return LabelSet(labels_).subspan(static_cast<size_t>(tensor) * words_, words_); }

  int Add(LabelSet labels) {
    const int tensor = static_cast<int>(alive_.size());
    labels_.insert(labels_.end(), labels.begin(), labels.end());
    alive_.push_back(true);
    work_.Add(kStepsOfTensor + 8 * words_);
    ForEachLabel(labels, [&](size_t label) {
      work_.Add(kStepsOfHolder);
      holders_[label].push_back(tensor);
      ++count_[label];
    });
    return tensor;
  }

  // Makes one tensor of the given ones, always joining the two smallest.
  void Join(std::vector<int> tensors) {
    using Sized = std::pair<double, int>;
    std::priority_queue<Sized, std::vector<Sized>, std::greater<>> queue;
    for (int tensor : tensors) {
      if (alive_[static_cast<size_t>(tensor)]) queue.push({network_.Size(Labels(tensor)), tensor});
    }
    while (queue.size() > 1) {
      const int a = queue.top().second;
      queue.pop();
      const int b = queue.top().second;
      queue.pop();
      const int made = Contract(a, b);
      queue.push({network_.Size(Labels(made)), made});
    }
  }

  int Contract(int a, int b) {
    path_.push_back({a, b});
    std::vector<uint64_t> result(words_);
    for (int tensor : {a, b}) {
      alive_[static_cast<size_t>(tensor)] = false;
      ForEachLabel(Labels(tensor), [&](size_t label) {
        --count_[label];
        result[label / 64] |= uint64_t{1} << (label % 64);
      });
    }
    ForEachLabel(result, [&](size_t label) {
      if (count_[label] == 0) result[label / 64] &= ~(uint64_t{1} << (label % 64));
    });
    return Add(result);
  }

  const ContractionNetwork& network_;
  SearchWork& work_;
  const size_t words_;
  std::vector<std::vector<int>> holders_;  // by label; some no longer alive
  std::vector<int> count_;                 // by label, the output being a holder
  std::vector<uint64_t> labels_;           // of all tensors
  std::vector<bool> alive_;
  ContractionPath path_;
};

}  // namespace

std::optional<ContractionPath> EliminationPath(const ContractionNetwork& network, const EliminationChoice& choice,
                                               SearchWork* work) {
  const std::optional<std::vector<size_t>> order = LabelOrder(network, choice, work).Run();
  if (!order.has_value()) return std::nullopt;
  Elimination elimination(network, work);
  for (size_t label : *order) elimination.Eliminate(label);
  return std::move(elimination).Finish();
}

}  // namespace tensord
