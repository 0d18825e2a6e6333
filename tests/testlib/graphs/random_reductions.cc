#include "tests/testlib/graphs/random_reductions.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/testlib/graphs/random_choices.h"
#include "tests/testlib/graphs/static_graph_builder.h"

namespace tensord {
namespace {

using Axes = StaticGraphBuilder::Axes;

// The step of an iteration.
enum class Step : uint8_t { kTanh, kExp, kRoot, kScale, kMix, kLargest, kWeigh, kCentre, kShare, kAddMean, kBelowMax };

class ReductionGraph {
 public:
  ReductionGraph(uint64_t seed, int64_t elements)
      : choices_(seed),
        b_(absl::StrCat("reductions", seed)),
        dtype_(choices_.OneOf<DType>({DType::kF32, DType::kF64})) {
    const int64_t rank = choices_.OneOf<int64_t>({1, 2, 2, 2, 3});
    double left = static_cast<double>(elements);
    for (int64_t d = 0; d < rank; ++d) {
      const double share = static_cast<double>(choices_.Below(100)) / 100;
      const double size = d + 1 == rank ? left : std::round(std::pow(left, share));
      shape_.push_back(std::max<int64_t>(1, static_cast<int64_t>(size)));
      left /= size;
    }
  }

  Graph Make() {
    values_.push_back(b_.Input("x", dtype_, shape_));
    if (choices_.Below(3) == 0) values_.push_back(b_.Input("y", dtype_, shape_));
    if (choices_.Below(2) == 0) {
      Iterate();
    } else {
      const int64_t steps = choices_.OneOf<int64_t>({2, 4, 8, 16, 32});
      for (int64_t i = 0; i < steps; ++i) Append(AnyStep(), AnyAxes());
    }
    b_.Output("z", values_.back());
    if (choices_.Below(3) == 0) b_.Output("also", Recent());
    if (choices_.Below(3) == 0) b_.Output("sum", b_.Reduce(ReduceKind::kSum, Recent(), AnyAxes()));
    return b_.Take();
  }

 private:
  // The same few steps over and over, along the same axes.
  void Iterate() {
    std::vector<std::pair<Step, Axes>> steps(static_cast<size_t>(1 + choices_.Below(3)));
    for (auto& [step, axes] : steps) {
      step = AnyStep();
      axes = AnyAxes();
    }
    const int64_t times = choices_.OneOf<int64_t>({2, 5, 10, 20, 40}) / static_cast<int64_t>(steps.size());
    for (int64_t i = 0; i < times; ++i) {
      for (const auto& [step, axes] : steps) {
        values_ = {values_.front(), values_.back()};
        Append(step, axes);
      }
    }
  }

  Step AnyStep() { return static_cast<Step>(choices_.Below(static_cast<int64_t>(Step::kBelowMax) + 1)); }

  Axes AnyAxes() {
    Axes axes;
    for (size_t d = 0; d < shape_.size(); ++d) {
      if (choices_.Below(2) == 0) axes.push_back(static_cast<int64_t>(d));
    }
    return axes.empty() ? Axes{choices_.Below(static_cast<int64_t>(shape_.size()))} : axes;
  }

  // The last value more often than one of those before it.
  ValueId Recent() { return choices_.Below(3) > 0 ? values_.back() : choices_.OneOf(values_); }

  ValueId MeanOf(ValueId x, const Axes& axes) {
    double count = 1;
    for (const int64_t axis : axes) count *= static_cast<double>(shape_[static_cast<size_t>(axis)]);
    const ValueId sum = b_.Reduce(ReduceKind::kSum, x, axes);
    return Repeat(b_.Binary(CoreOp::kMultiply, sum, b_.Scalar(dtype_, 1 / count)), axes);
  }

  ValueId Repeat(ValueId x, const Axes& without) {
    Axes axes;
    for (int64_t d = 0; d < static_cast<int64_t>(shape_.size()); ++d) {
      if (std::find(without.begin(), without.end(), d) == without.end()) axes.push_back(d);
    }
    return b_.Broadcast(x, shape_, axes);
  }

  // A vector along one axis, repeated along the others.
  ValueId Weights() {
    const int64_t axis = choices_.Below(static_cast<int64_t>(shape_.size()));
    const ValueId weights = b_.Input(absl::StrCat("w", ++weights_), dtype_, {shape_[static_cast<size_t>(axis)]});
    return b_.Broadcast(weights, shape_, {axis});
  }

  void Append(Step step, const Axes& axes) {
    const ValueId x = Recent();
    values_.push_back(Apply(step, x, axes));
  }

  ValueId Apply(Step step, ValueId x, const Axes& axes) {
    switch (step) {
      case Step::kTanh:
        return b_.Binary(CoreOp::kMultiply, b_.Unary(CoreOp::kTanh, x), 1.1);
      case Step::kExp:
        return b_.Unary(CoreOp::kExp, b_.Unary(CoreOp::kNegate, b_.Unary(CoreOp::kAbs, x)));
      case Step::kRoot:
        return b_.Unary(CoreOp::kSqrt, b_.Unary(CoreOp::kAbs, x));
      case Step::kScale:
        return b_.Binary(CoreOp::kAdd, b_.Binary(CoreOp::kMultiply, x, 0.75), 0.25);
      case Step::kMix:
        return b_.Binary(CoreOp::kMultiply, b_.Binary(CoreOp::kAdd, x, Recent()), 0.5);
      case Step::kLargest:
        return b_.Binary(CoreOp::kMaximum, x, Recent());
      case Step::kWeigh:
        return b_.Binary(CoreOp::kMultiply, b_.Binary(CoreOp::kAdd, x, Weights()), 0.5);
      case Step::kCentre:
        return b_.Binary(CoreOp::kAdd, b_.Binary(CoreOp::kSubtract, x, MeanOf(x, axes)), 0.5);
      case Step::kShare: {
        const ValueId mean = MeanOf(b_.Unary(CoreOp::kAbs, x), axes);
        return b_.Binary(CoreOp::kDivide, x, b_.Binary(CoreOp::kAdd, mean, b_.Scalar(dtype_, 0.25)));
      }
      case Step::kAddMean:
        return b_.Binary(CoreOp::kMultiply,
                         b_.Binary(CoreOp::kAdd, x, MeanOf(b_.Binary(CoreOp::kMultiply, x, x), axes)), 0.5);
      case Step::kBelowMax:
        return b_.Unary(CoreOp::kExp, b_.Binary(CoreOp::kSubtract, x, b_.ReduceAndRepeat(ReduceKind::kMax, x, axes)));
    }
    return x;
  }

  RandomChoices choices_;
  StaticGraphBuilder b_;
  const DType dtype_;
  Shape shape_;
  std::vector<ValueId> values_;  // of the whole shape
  int64_t weights_ = 0;
};

}  // namespace

Graph RandomReductionGraph(uint64_t seed, int64_t elements) { return ReductionGraph(seed, elements).Make(); }

}  // namespace tensord
