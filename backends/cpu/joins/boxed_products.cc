#include "backends/cpu/joins/boxed_products.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "backends/cpu/contraction/kernels.h"
#include "backends/cpu/contraction/lane_product.h"
#include "backends/cpu/fft/kernels.h"
#include "backends/cpu/joins/tensor_box.h"
#include "engine/ops/core_ops.h"

namespace tensord::cpu {
namespace {

// The multiplications of a segment for each element that passes.
constexpr double kMostJoinMultiplications = 64;
constexpr int64_t kMostShrinkage = 8;  // of a block below what it may have, where an axis has no better divisor
constexpr size_t kNoAxis = static_cast<size_t>(-1);

// An axis of the contraction's result, and of its operands; kNoAxis where an operand does not have it.
struct JoinAxis {
  size_t result = 0;
  std::array<size_t, 2> operands = {kNoAxis, kNoAxis};
  int64_t size = 1;
  // The bytes read again if it were cut: by each of its parts, a tensor that does not have it.
  int64_t read_again = 0;
  int64_t stride = 0;  // the shortest in what is read from outside
};

std::vector<JoinAxis> ResultAxes(const BoundInstruction& dot) {
  const auto holds = [](const std::vector<int64_t>& axes, size_t axis) {
    return std::find(axes.begin(), axes.end(), static_cast<int64_t>(axis)) != axes.end();
  };
  const auto& lhs_batch = dot.attrs->Ints("lhs_batching_dimensions");
  const auto& rhs_batch = dot.attrs->Ints("rhs_batching_dimensions");
  std::vector<JoinAxis> product;
  for (size_t axis = 0; axis < dot.operands[0].shape.size(); ++axis) {
    if (holds(dot.attrs->Ints("lhs_contracting_dimensions"), axis) || holds(lhs_batch, axis)) continue;
    product.push_back({.operands = {axis, kNoAxis}});
  }
  for (size_t axis = 0; axis < dot.operands[1].shape.size(); ++axis) {
    if (holds(dot.attrs->Ints("rhs_contracting_dimensions"), axis) || holds(rhs_batch, axis)) continue;
    product.push_back({.operands = {kNoAxis, axis}});
  }
  for (size_t i = 0; i < lhs_batch.size(); ++i) {
    product.push_back({.operands = {static_cast<size_t>(lhs_batch[i]), static_cast<size_t>(rhs_batch[i])}});
  }
  const auto& permutation = dot.attrs->Ints("result_permutation");
  std::vector<JoinAxis> axes;
  for (size_t i = 0; i < product.size(); ++i) {
    axes.push_back(product[permutation.empty() ? i : static_cast<size_t>(permutation[i])]);
    axes.back().result = i;
    axes.back().size = dot.results[0].shape[i];
  }
  return axes;
}

// An axis that is cut.
struct JoinCut {
  JoinAxis axis;
  int64_t parts = 1;
};

// The search for the axes to cut. Unlike in a chain any axis may be, and each cut makes its own tensors read again.
class ProductJoin {
 public:
  // The products, and the contraction after them.
  ProductJoin(absl::Span<const SegmentInstruction> segments, const ChainLimits& limits)
      : segments_(segments), products_(segments.first(segments.size() - 1)), dot_(segments.back()), limits_(limits) {}

  // Tells whether they are a join.
  bool Matches() {
    if (!IsOrdinaryDot(dot_.bound)) return false;
    if (dot_.operands[0] == dot_.operands[1] || dot_.bound.results[0].num_bytes() == 0) return false;
    for (const SegmentInstruction& product : products_) {
      if (product.results.size() != 1 || product.num_readers[0] != 1) return false;
      // Blocks of lines are transformed in lanes, which long and few lines do not suit.
      if (product.bound.micro == nullptr && IsFft(*product.bound.op)) return false;
      const size_t side = product.results[0] == dot_.operands[0] ? 0 : 1;
      if (product.results[0] != dot_.operands[side]) return false;
      sides_.push_back(side);
      passed_bytes_ += product.bound.results[0].num_bytes();
    }
    return passed_bytes_ >= limits_.least_join_bytes;
  }

  std::optional<BlockPlan> Plan(int64_t block_bytes) {
    if (!ChooseAxes(block_bytes)) return std::nullopt;
    for (size_t s = 0; s < products_.size(); ++s) orders_.push_back(OrderOf(s));
    BlockPlanner planner(segments_, num_blocks_);
    BlockTraffic traffic;
    double multiplications = 0;
    for (size_t s = 0; s < segments_.size(); ++s) {
      std::optional<SegmentBlocks> cut = Cut(s, axes_);
      if (!cut.has_value()) return std::nullopt;
      traffic.Add(planner.TrafficOf(*cut));
      multiplications = std::max(multiplications, cut->multiplications());
      planner.Add(*std::move(cut));
    }
    if (!traffic.Pays(multiplications, kMostJoinMultiplications) ||
        !AreEnoughBlocks(num_blocks_, passed_bytes_ / num_blocks_, block_bytes, limits_)) {
      return std::nullopt;
    }
    return std::move(planner).Plan(segments_.size());
  }

 private:
  bool Passes(size_t side) const { return std::find(sides_.begin(), sides_.end(), side) != sides_.end(); }

  // Returns the cuts of a passing operand, or of the result; the last of the axes is the fastest from block to block.
  static std::vector<AxisCut> CutsOf(absl::Span<const JoinCut> axes, std::optional<size_t> side) {
    std::vector<AxisCut> cuts;
    for (const auto& [axis, parts] : axes) {
      cuts.insert(cuts.begin(), {.axis = side.has_value() ? axis.operands[*side] : axis.result, .parts = parts});
    }
    return cuts;
  }

  // The segment, cut along these axes.
  std::optional<SegmentBlocks> Cut(size_t s, absl::Span<const JoinCut> axes) const {
    std::vector<PassingBox> passing;
    for (size_t product = 0; product < products_.size(); ++product) {
      const size_t side = sides_[product];
      const Shape& shape = dot_.bound.operands[side].shape;
      passing.push_back({dot_.operands[side], TensorBox(shape, CutsOf(axes, side), OrderAt(product))});
    }
    const std::optional<size_t> side = s < products_.size() ? std::optional(sides_[s]) : std::nullopt;
    return SegmentBlocks::CutBoxes(segments_[s], CutsOf(axes, side), passing);
  }

  absl::Span<const size_t> OrderAt(size_t product) const {
    return product < orders_.size() ? orders_[product] : absl::Span<const size_t>();
  }

  // Returns the order of the axes of a product's box. If its matrices are small, those of the batch come first, so that
  // vectors lie across them, and of these the contraction's summed axes come first.
  std::vector<size_t> OrderOf(size_t s) const {
    const BoundInstruction& product = products_[s].bound;
    if (!IsOrdinaryDot(product)) return {};
    const DType dtype = product.results[0].dtype;
    if (product.operands[0].dtype != dtype || product.operands[1].dtype != dtype) return {};
    const Shape sizes = TensorBox(product.results[0].shape, CutsOf(axes_, sides_[s])).sizes();
    const auto& summed =
        dot_.bound.attrs->Ints(sides_[s] == 0 ? "lhs_contracting_dimensions" : "rhs_contracting_dimensions");
    std::array<std::vector<size_t>, 4> parts;  // summed batch, other batch, rows, columns
    std::array<int64_t, 4> elements = {1, 1, 1, 1};
    for (const JoinAxis& axis : ResultAxes(product)) {
      const bool is_summed = std::find(summed.begin(), summed.end(), static_cast<int64_t>(axis.result)) != summed.end();
      const size_t part = axis.operands[1] == kNoAxis ? 2 : axis.operands[0] == kNoAxis ? 3 : is_summed ? 0 : 1;
      parts[part].push_back(axis.result);
      elements[part] *= sizes[axis.result];
    }
    int64_t terms = 1;
    for (const int64_t axis : product.attrs->Ints("lhs_contracting_dimensions")) {
      terms *= product.operands[0].shape[static_cast<size_t>(axis)];
    }
    if (!LaneProduct::TakesSizes(elements[2], elements[3], terms, elements[0] * elements[1], dtype)) return {};
    std::vector<size_t> order;
    for (const std::vector<size_t>& part : parts) order.insert(order.end(), part.begin(), part.end());
    return order;
  }

  // Returns axes that all passing operands have, the best to be cut first: least is read again, and runs stay long.
  std::vector<JoinAxis> Candidates() const {
    std::vector<JoinAxis> candidates;
    for (JoinAxis& axis : ResultAxes(dot_.bound)) {
      const auto lacks = [&](size_t side) { return axis.operands[side] == kNoAxis; };
      if (axis.size == 1 || std::any_of(sides_.begin(), sides_.end(), lacks)) continue;
      if (Judge(&axis)) candidates.push_back(axis);
    }
    std::stable_sort(candidates.begin(), candidates.end(), [](const JoinAxis& a, const JoinAxis& b) {
      return a.read_again != b.read_again ? a.read_again < b.read_again : a.stride > b.stride;
    });
    return candidates;
  }

  bool Judge(JoinAxis* axis) const {
    axis->stride = std::numeric_limits<int64_t>::max();
    for (size_t s = 0; s < segments_.size(); ++s) {
      const std::optional<SegmentBlocks> cut = Cut(s, {{*axis, axis->size}});
      if (!cut.has_value()) return false;
      const BoundInstruction& bound = segments_[s].bound;
      for (size_t k = 0; k < bound.operands.size(); ++k) {
        if (s == products_.size() && Passes(k)) continue;
        const int64_t step = cut->walk().loops()[0].steps[k];
        if (step == 0) {
          axis->read_again += bound.operands[k].num_bytes();
        } else {
          axis->stride = std::min(axis->stride, std::abs(step));
        }
      }
    }
    return true;
  }

  // Chooses as many axes as it takes for the boxes of a block to have so many bytes.
  bool ChooseAxes(int64_t block_bytes) {
    const int64_t most = std::max<int64_t>(1, block_bytes);
    for (const JoinAxis& axis : Candidates()) {
      const int64_t wanted = std::max<int64_t>(2, (passed_bytes_ / num_blocks_ + most - 1) / most);
      int64_t parts = std::min(axis.size, wanted);
      while (axis.size % parts != 0 && parts < kMostShrinkage * wanted) ++parts;
      if (axis.size % parts != 0) continue;  // blocks would be tiny
      axes_.push_back({axis, parts});
      num_blocks_ *= parts;
      if (passed_bytes_ / num_blocks_ <= most) return true;
    }
    return false;
  }

  const absl::Span<const SegmentInstruction> segments_;
  const absl::Span<const SegmentInstruction> products_;
  const SegmentInstruction& dot_;
  const ChainLimits& limits_;
  absl::InlinedVector<size_t, 2> sides_;  // by product: the operand that it makes
  int64_t passed_bytes_ = 0;
  std::vector<JoinCut> axes_;                // the slowest from block to block first
  std::vector<std::vector<size_t>> orders_;  // by product: of the axes of its box; empty: as they are
  int64_t num_blocks_ = 1;
};

}  // namespace

std::optional<BlockPlan> PlanProductJoin(absl::Span<const SegmentInstruction> segments, const ChainLimits& limits) {
  if (limits.block_bytes <= 0) return std::nullopt;
  for (const size_t products : {size_t{2}, size_t{1}}) {
    if (segments.size() <= products) continue;
    ProductJoin join(segments.subspan(0, products + 1), limits);
    if (!join.Matches()) continue;
    // The rereads of small blocks cost more than the reads of large ones from the last cache.
    std::optional<BlockPlan> plan = join.Plan(std::max(limits.block_bytes, limits.large_block_bytes));
    if (plan.has_value()) return plan;
  }
  return std::nullopt;
}

}  // namespace tensord::cpu
