#include "engine/families/einsum/greedy_path.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "engine/base/stop_signal.h"
#include "engine/families/einsum/step_random.h"

namespace tensord {
namespace {

// Pairs looked at for one label of a new tensor: a label that thousands of tensors share would make pairs without end.
constexpr size_t kMaxPairsOfLabel = 48;
// The pairs that one search looks at, for all labels of a new tensor; the first is divided by the number of operands.
constexpr size_t kMaxPairs = 200'000, kLeastPairsOfTensor = 8;
// Steps of the noise on a score, and of a candidate in the heap.
constexpr int64_t kStepsOfNoise = 48, kStepsOfCandidate = 100;
// A search that is so far past its work pairs nothing any more: the rest is joined by size.
constexpr int64_t kMostOverdraft = 100'000'000;

struct Candidate {
  double score;
  int a, b;

  // std::push_heap keeps the largest in front: that of the least score, of equal ones the oldest.
  friend bool operator<(const Candidate& x, const Candidate& y) {
    return std::tie(x.score, x.a, x.b) > std::tie(y.score, y.a, y.b);
  }
};

class Greedy {
 public:
  Greedy(const ContractionNetwork& network, const PathObjective& objective, const GreedyChoice& choice,
         SearchWork* work)
      : network_(network),
        objective_(objective),
        choice_(choice),
        random_(choice.seed),
        work_(*work),
        words_(network.num_words()),
        holders_(words_ * 64),
        count_(words_ * 64),
        twice_(words_),
        thrice_(words_),
        result_(words_) {
    const size_t nodes = 2 * static_cast<size_t>(network.num_operands());
    labels_.reserve(nodes * words_);
    sizes_.reserve(nodes);
    met_.assign(nodes, -1);
    ForEachLabel(network.output(), [this](size_t label) { Count(label, 1); });
  }

  ContractionPath Run() {
    for (int i = 0; i < network_.num_operands(); ++i) CountAll(network_.operand(i), 1);
    for (int i = 0; i < network_.num_operands(); ++i) PushPairs(AddTensor(network_.operand(i)));
    while (!heap_.empty() && !StopRequested()) {
      std::pop_heap(heap_.begin(), heap_.end());
      const Candidate next = heap_.back();
      heap_.pop_back();
      if (alive_[static_cast<size_t>(next.a)] && alive_[static_cast<size_t>(next.b)]) {
        PushPairs(Contract(next.a, next.b));
      }
    }
    heap_.clear();
    JoinRest();
    return std::move(path_);
  }

 private:
  LabelSet Labels(int tensor) const { return LabelSet(labels_).subspan(static_cast<size_t>(tensor) * words_, words_); }
  static size_t NumLabels(LabelSet labels) {
    int count = 0;
    for (const uint64_t word : labels) count += std::popcount(word);
    return static_cast<size_t>(count);
  }

  void Count(size_t label, int change) {
    const int count = count_[label] += change;
    const uint64_t bit = uint64_t{1} << (label % 64);
    uint64_t &twice = twice_[label / 64], &thrice = thrice_[label / 64];
    twice = count >= 2 ? twice | bit : twice & ~bit;
    thrice = count >= 3 ? thrice | bit : thrice & ~bit;
  }

  void CountAll(LabelSet labels, int change) {
    ForEachLabel(labels, [&](size_t label) { Count(label, change); });
  }

  // Its labels are counted already.
  int AddTensor(LabelSet labels) {
    const int tensor = static_cast<int>(alive_.size());
    labels_.insert(labels_.end(), labels.begin(), labels.end());
    sizes_.push_back(network_.Size(labels));
    alive_.push_back(true);
    ForEachLabel(labels, [&](size_t label) { holders_[label].push_back(tensor); });
    work_.Add(2 * words_ + 4 * NumLabels(labels));
    return tensor;
  }

  // Writes into result_ the labels that the contraction of a and b leaves: those with a third holder, the output being
  // one.
  void ResultOf(int a, int b) {
    const LabelSet x = Labels(a), y = Labels(b);
    for (size_t w = 0; w < words_; ++w) {
      const uint64_t both = x[w] & y[w];
      result_[w] = (both & thrice_[w]) | ((x[w] ^ y[w]) & twice_[w]);
    }
  }

  int Contract(int a, int b) {
    ResultOf(a, b);
    path_.push_back({a, b});
    for (int tensor : {a, b}) {
      alive_[static_cast<size_t>(tensor)] = false;
      CountAll(Labels(tensor), -1);
    }
    CountAll(result_, 1);
    return AddTensor(result_);
  }

  double Score(int a, int b) {
    ResultOf(a, b);
    const double size = network_.Size(result_);
    double score = size - choice_.alpha * (sizes_[static_cast<size_t>(a)] + sizes_[static_cast<size_t>(b)]);
    if (choice_.temperature > 0) {
      score = score > 0 ? std::log2(1 + score) : -std::log2(1 - score);
      score += choice_.temperature * std::log(-std::log(random_.Uniform()));
      work_.Add(kStepsOfNoise);
    }
    work_.Add(static_cast<int64_t>(words_ + NumLabels(result_)) + kStepsOfCandidate);
    return size > objective_.bound ? score + 1e290 : score;
  }

  // Pushes candidates of a tensor with the latest tensors before it that share a label with it.
  void PushPairs(int tensor) {
    if (work_.left() < -kMostOverdraft || StopRequested()) return;
    size_t left = std::max(kLeastPairsOfTensor, kMaxPairs / static_cast<size_t>(network_.num_operands()));
    ForEachLabel(Labels(tensor), [&](size_t label) {
      std::vector<int>& holders = holders_[label];
      size_t seen = 0;
      for (size_t i = holders.size(); i-- > 0 && seen <= kMaxPairsOfLabel && left > 0;) {
        const int other = holders[i];
        if (!alive_[static_cast<size_t>(other)]) {  // near the end: few are moved
          holders.erase(holders.begin() + static_cast<std::ptrdiff_t>(i));
          continue;
        }
        ++seen;
        if (other == tensor || met_[static_cast<size_t>(other)] == tensor) continue;
        met_[static_cast<size_t>(other)] = tensor;
        --left;
        heap_.push_back({Score(other, tensor), other, tensor});
        std::push_heap(heap_.begin(), heap_.end());
      }
    });
  }

  // Joins the rest by outer products, the smallest first: it shares no label that matters.
  void JoinRest() {
    for (size_t i = 0; i < alive_.size(); ++i) {
      if (alive_[i]) heap_.push_back({sizes_[i], static_cast<int>(i), -1});
    }
    std::make_heap(heap_.begin(), heap_.end());
    while (heap_.size() > 1) {
      std::pop_heap(heap_.begin(), heap_.end());
      const int a = heap_.back().a;
      heap_.pop_back();
      std::pop_heap(heap_.begin(), heap_.end());
      const int b = heap_.back().a;
      const int made = Contract(a, b);
      heap_.back() = {sizes_[static_cast<size_t>(made)], made, -1};
      std::push_heap(heap_.begin(), heap_.end());
    }
  }

  const ContractionNetwork& network_;
  const PathObjective& objective_;
  const GreedyChoice choice_;
  StepRandom random_;
  SearchWork& work_;
  const size_t words_;
  std::vector<std::vector<int>> holders_;  // by label; some no longer alive
  std::vector<int> count_;                 // by label, the output being a holder
  std::vector<uint64_t> twice_, thrice_;   // labels with two, with three holders at least
  std::vector<uint64_t> result_;
  std::vector<uint64_t> labels_;  // of all tensors
  std::vector<double> sizes_;
  std::vector<bool> alive_;
  std::vector<int> met_;  // the tensor that a tensor was last paired with
  std::vector<Candidate> heap_;
  ContractionPath path_;
};

}  // namespace

ContractionPath GreedyPath(const ContractionNetwork& network, const PathObjective& objective,
                           const GreedyChoice& choice, SearchWork* work) {
  return Greedy(network, objective, choice, work).Run();
}

}  // namespace tensord
