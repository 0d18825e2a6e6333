#include "backends/cpu/contraction/contraction_plan.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "backends/cpu/contraction/matrix_products.h"
#include "backends/cpu/contraction/panels.h"
#include "backends/cpu/contraction/tiled_gemm.h"
#include "backends/cpu/machine/cache_line.h"
#include "backends/cpu/matmul/gemm.h"

namespace tensord::cpu {
namespace {

// All panels of a contraction together: in proportion to the tensors, between these.
constexpr int64_t kMinPanelBytes = int64_t{256} << 10;
constexpr int64_t kMaxPanelBytes = int64_t{4} << 20;
constexpr int64_t kTensorsToPanels = 12;
// The most bytes of a result in F32 alone, to be rounded: operands are packed again for every box of it.
constexpr int64_t kMaxRoundedBytes = int64_t{16} << 20;

// Nanoseconds on one core, to choose by; only ratios matter.
constexpr double kCallTime = 60;
constexpr double kCheapCallTime = 5;
constexpr double kByteTime = 0.03;
constexpr double kPackedByteTime = 0.12;

int64_t InnermostStride(const DotAxisList& axes, DotSide side) {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const DotAxis& axis : axes) {
    if (axis.size > 1) least = std::min(least, axis.strides[side]);
  }
  return least;
}

// Summed axes may be walked in any order, the same on both sides. Starts with `first`. Each next axis is one with the
// axis before it on both sides, if there is such an axis; else on the preferred side, else on the other; else it is the
// closest one.
DotAxisList OrderFrom(size_t first, DotSide preferred, const DotAxisList& axes) {
  DotAxisList rest = axes, ordered;
  const DotSide other = preferred == kLhs ? kRhs : kLhs;
  size_t next = first;
  while (true) {
    ordered.push_back(rest[next]);
    rest.erase(rest.begin() + static_cast<ptrdiff_t>(next));
    if (rest.empty()) return MergeAxes(ordered);
    const DotAxis& last = ordered.back();
    const auto continues = [&](const DotAxis& axis, DotSide side) {
      return axis.strides[side] == last.strides[side] * last.size;
    };
    int best = -1;
    for (size_t i = 0; i < rest.size(); ++i) {
      const int score = (continues(rest[i], preferred) ? 2 : 0) + (continues(rest[i], other) ? 1 : 0);
      const bool is_closer = score == best && rest[i].strides[preferred] < rest[next].strides[preferred];
      if (score > best || is_closer) {
        best = score;
        next = i;
      }
    }
  }
}

std::vector<DotAxisList> SummedOrders(const DotAxisList& axes) {
  if (axes.size() <= 1) return {axes};
  const auto first_by = [&axes](auto key) {
    const auto less = [key](const DotAxis& a, const DotAxis& b) { return key(a) < key(b); };
    return static_cast<size_t>(std::min_element(axes.begin(), axes.end(), less) - axes.begin());
  };
  const size_t firsts[] = {first_by([](const DotAxis& axis) { return axis.strides[kLhs]; }),
                           first_by([](const DotAxis& axis) { return axis.strides[kRhs]; }),
                           first_by([](const DotAxis& axis) { return -axis.size; })};
  std::vector<DotAxisList> orders;
  for (size_t first : firsts) {
    for (DotSide preferred : {kLhs, kRhs}) orders.push_back(OrderFrom(first, preferred, axes));
  }
  return orders;
}

class Planner {
 public:
  Planner(const DotSpace& space, DType computed, const std::array<DotOperand, 2>& operands, bool rounds)
      : space_(space), computed_(computed), operands_(operands), rounds_(rounds) {}

  DotPlan Best() const {
    if (space_.Size(kSummed) == 0) return Unpacked();
    if (WidensInTiles(space_, computed_, operands_)) {
      DotPlan plan;
      plan.space = space_;
      plan.widens_in_tiles = true;
      ChooseBoxes(&plan);
      return plan;
    }
    if (!needs_panels() && TiledGemm::IsFastest(space_, computed_)) return Unpacked();
    DotPlan best;
    double least = std::numeric_limits<double>::infinity();
    for (const DotAxisList& order : SummedOrders(space_.roles[kSummed])) {
      for (int packs = 0; packs < 4; ++packs) {
        DotPlan plan;
        plan.space = space_;
        plan.space.roles[kSummed] = order;
        plan.packs = {(packs & 1) != 0, (packs & 2) != 0};
        const double time = Consider(&plan);
        if (time < least) {
          least = time;
          best = plan;
        }
        if (packs == 0 && time < std::numeric_limits<double>::infinity() && IsOneProduct(plan)) break;
      }
    }
    ChooseBoxes(&best);
    return best;
  }

 private:
  // Panels are needed for conversions, and for a batch that lies innermost, which is packed by whole cache lines.
  bool needs_panels() const {
    if (rounds_) return true;
    for (DotSide side : {kLhs, kRhs}) {
      if (operands_[side].dtype != computed_ || InnermostStride(space_.roles[kBatch], side) == 1) return true;
    }
    return false;
  }

  DotPlan Unpacked() const {
    DotPlan plan;
    plan.space = space_;
    ChooseBoxes(&plan);
    return plan;
  }

  static bool IsOneProduct(const DotPlan& plan) {
    const MatrixProduct product = DotProducts::Matrices(plan.space);
    return product.m == plan.space.Size(kRows) && product.n == plan.space.Size(kColumns) &&
           product.k == plan.space.Size(kSummed);
  }

  // The time that the plan would take; infinite where it cannot be done.
  double Consider(DotPlan* plan) const {
    constexpr double kNever = std::numeric_limits<double>::infinity();
    DotSpace box = plan->space;
    double time = 0;
    for (DotSide side : {kLhs, kRhs}) {
      const DotOperand& operand = operands_[side];
      if (operand.dtype != computed_ && !plan->packs[side]) return kNever;
      if (!plan->packs[side]) continue;
      const DotAxisList& free = plan->space.roles[FreeRole(side)];
      // Integer products read rows of lhs.
      plan->summed_first[side] = !(side == kLhs && kIntegral.Contains(computed_)) &&
                                 InnermostStride(plan->space.roles[kSummed], side) < InnermostStride(free, side);
      const int64_t elements = DotPanel::Lay(side, plan->summed_first[side], &box);
      time += kPackedByteTime * static_cast<double>(elements * SizeOf(computed_));
    }
    MatrixProduct product = DotProducts::Matrices(box);
    if (!Gemm::CanReadLhs(computed_, product) || !Gemm::CanReadRhs(computed_, product)) return kNever;
    for (DotSide side : {kLhs, kRhs}) {
      if (!operands_[side].conjugates) continue;
      const bool can =
          side == kLhs ? Gemm::CanConjugateLhs(computed_, product) : Gemm::CanConjugateRhs(computed_, product);
      plan->product_conjugates[side] = can && !(plan->packs[side] && operands_[side].dtype != computed_);
      if (!can && !plan->packs[side]) return kNever;
    }
    plan->fits_blas = kIntegral.Contains(computed_) || Gemm::FitsBlas(product);
    const double m = static_cast<double>(product.m), n = static_cast<double>(product.n),
                 k = static_cast<double>(product.k);
    const double products = static_cast<double>(box.Size(kRows)) / m * (static_cast<double>(box.Size(kColumns)) / n) *
                            (static_cast<double>(box.Size(kSummed)) / k) * static_cast<double>(box.Size(kBatch));
    const double bytes = static_cast<double>(SizeOf(computed_));
    const double sums = static_cast<double>(box.Size(kSummed)) / k;
    const bool is_cheap = Gemm::IsCheapToCall(computed_, product);
    const double small = is_cheap ? 0 : 4;  // what is lost at the edges of small products
    const double arithmetic = m * n * k * 0.005 * bytes * (1 + small / m) * (1 + small / n) * (1 + small / k);
    const double traffic = (m * k + k * n + m * n * (sums > 1 ? 3 : 1)) * bytes * kByteTime;
    const double call = is_cheap ? kCheapCallTime : kCallTime;
    return time + products * (call + std::max(arithmetic, traffic)) + (plan->fits_blas ? 0 : 1e30);
  }

  // Halves the longest sides of boxes until the panels are small.
  void ChooseBoxes(DotPlan* plan) const {
    const DotSpace& space = plan->space;
    int64_t size[kNumDotRoles];
    for (size_t role = 0; role < kNumDotRoles; ++role) size[role] = space.Size(static_cast<DotRole>(role));
    std::copy(std::begin(size), std::end(size), plan->most.begin());
    const auto element_bytes = [&](DotSide side) {
      return SizeOf(computed_) + (operands_[side].dtype != computed_ ? SizeOf(operands_[side].dtype) : 0);
    };
    const auto panels = [&](const int64_t* of) {
      double bytes = 0;
      const double m = static_cast<double>(of[kRows]), n = static_cast<double>(of[kColumns]),
                   k = static_cast<double>(of[kSummed]);
      if (plan->packs[kLhs]) bytes += m * k * static_cast<double>(element_bytes(kLhs));
      if (plan->packs[kRhs]) bytes += k * n * static_cast<double>(element_bytes(kRhs));
      if (rounds_) bytes += m * n * static_cast<double>(SizeOf(computed_));
      return bytes * static_cast<double>(of[kBatch]);
    };
    const double tensors =
        static_cast<double>(size[kBatch]) * (static_cast<double>(size[kRows]) * static_cast<double>(size[kSummed]) *
                                                 static_cast<double>(SizeOf(operands_[kLhs].dtype)) +
                                             static_cast<double>(size[kSummed]) * static_cast<double>(size[kColumns]) *
                                                 static_cast<double>(SizeOf(operands_[kRhs].dtype)) +
                                             static_cast<double>(size[kRows]) * static_cast<double>(size[kColumns]) *
                                                 static_cast<double>(SizeOf(computed_)));
    const double most = std::clamp(tensors / kTensorsToPanels, static_cast<double>(kMinPanelBytes),
                                   static_cast<double>(plan->widens_in_tiles ? kMaxRoundedBytes : kMaxPanelBytes));
    // A single panel is packed once however it is cut: best across its free axis. Each of two panels is packed again
    // for every part of the other's free axis, which had better be long.
    const bool packs_both = plan->packs[kLhs] && plan->packs[kRhs];
    const double summed_weight = packs_both ? 2 : rounds_ ? 1 : 0.25;
    // A batch that lies innermost is packed by whole cache lines.
    int64_t least_batch = 1;
    for (DotSide side : {kLhs, kRhs}) {
      const bool is_innermost = plan->packs[side] && InnermostStride(space.roles[kBatch], side) == 1;
      if (is_innermost) least_batch = std::max(least_batch, kLineBytes / SizeOf(operands_[side].dtype));
    }
    while (panels(plan->most.data()) > most) {
      size_t longest = kBatch;
      double length = 0;
      const auto consider = [&](DotRole role, bool matters, double weight) {
        const double weighted = weight * static_cast<double>(plan->most[role]);
        if (!matters || plan->most[role] <= 1 || weighted <= length) return;
        longest = role;
        length = weighted;
      };
      if (plan->most[kBatch] <= least_batch) {
        consider(kRows, plan->packs[kLhs] || rounds_, 1);
        consider(kColumns, plan->packs[kRhs] || rounds_, 1);
        consider(kSummed, plan->packs[kLhs] || plan->packs[kRhs], summed_weight);
      }
      if (plan->most[longest] <= 1) return;
      plan->most[longest] = (plan->most[longest] + 1) / 2;
    }
  }

  const DotSpace& space_;
  const DType computed_;
  const std::array<DotOperand, 2>& operands_;
  const bool rounds_;
};

}  // namespace

bool WidensInTiles(const DotSpace& space, DType computed, const std::array<DotOperand, 2>& operands) {
  const bool has_half = kHalves.Contains(operands[kLhs].dtype) || kHalves.Contains(operands[kRhs].dtype);
  if (computed != DType::kF32 || !has_half || !TiledGemm::IsFastest(space, computed)) return false;
  for (DotSide side : {kLhs, kRhs}) {
    if (!kHalves.Contains(operands[side].dtype) && operands[side].dtype != computed) return false;
    // A batch that lies innermost is packed by whole cache lines.
    if (InnermostStride(space.roles[kBatch], side) == 1) return false;
  }
  return true;
}

DotPlan PlanDot(const DotSpace& space, DType computed, const std::array<DotOperand, 2>& operands, bool rounds) {
  return Planner(space, computed, operands, rounds).Best();
}

}  // namespace tensord::cpu
