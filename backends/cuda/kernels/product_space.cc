#include "backends/cuda/kernels/product_space.h"

#include <utility>

#include "absl/numeric/int128.h"
#include "engine/ops/affine_dot.h"

namespace tensord::cuda {
namespace {

// Tells whether an index moves along an operand at all.
bool IndexMoves(const AffineRead& read, size_t index) {
  for (size_t axis = 0; axis < read.starts.size(); ++axis) {
    if (read.Step(index, axis) != 0) return true;
  }
  return false;
}

// Returns the places along an axis that indices may miss; nothing if they miss none.
std::vector<ProductSpace::Bound> BoundsOf(const AffineRead& read, const Shape& shape, absl::Span<const int64_t> sizes,
                                          absl::Span<const DotRole> roles) {
  std::vector<ProductSpace::Bound> bounds;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    ProductSpace::Bound bound{.size = shape[axis], .start = read.starts[axis]};
    absl::int128 last = bound.start;
    for (size_t i = 0; i < sizes.size(); ++i) {
      bound.steps[roles[i]].push_back(read.Step(i, axis));
      last += absl::int128(read.Step(i, axis)) * (sizes[i] - 1);
    }
    if (bound.start < 0 || last >= bound.size) bounds.push_back(std::move(bound));
  }
  return bounds;
}

}  // namespace

ProductSpace ProductSpaceOf(const BoundInstruction& dot_general) {
  const DotAxes axes = DotAxesOf(*dot_general.attrs);
  return {.axes = DotSpaceOf(dot_general), .conjugates = {axes.conjugates_lhs, axes.conjugates_rhs}};
}

ProductSpace AffineProductSpaceOf(const BoundInstruction& affine_dot) {
  const Attributes& attrs = *affine_dot.attrs;
  const std::vector<int64_t>& sizes = attrs.Ints("sizes");
  const size_t of_result = sizes.size() - static_cast<size_t>(attrs.Int("num_summed"));
  const std::array<AffineRead, 2> reads = {LhsReadOf(attrs), RhsReadOf(attrs)};
  ProductSpace space{.conjugates = {attrs.Int("lhs_conj") != 0, attrs.Int("rhs_conj") != 0}};
  std::vector<DotRole> roles;
  int64_t result_stride = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const bool in_lhs = IndexMoves(reads[kLhs], i), in_rhs = IndexMoves(reads[kRhs], i);
    roles.push_back(i >= of_result ? kSummed : in_lhs && in_rhs ? kBatch : in_rhs ? kColumns : kRows);
    DotAxis axis{.size = sizes[i]};
    for (const DotSide side : {kLhs, kRhs}) {
      int64_t stride = 1;
      for (size_t a = 0; a < reads[side].starts.size(); ++a) {
        axis.strides[side] += reads[side].Step(i, a) * stride;
        stride *= affine_dot.operands[side].shape[a];
      }
    }
    if (i < of_result) {
      axis.strides[kDotResult] = result_stride;
      result_stride *= sizes[i];
    }
    space.axes.roles[roles.back()].push_back(axis);
  }
  for (const DotSide side : {kLhs, kRhs}) {
    const Shape& shape = affine_dot.operands[side].shape;
    int64_t stride = 1;
    for (size_t a = 0; a < shape.size(); ++a) {
      space.offsets[side] += reads[side].starts[a] * stride;
      stride *= shape[a];
    }
    space.bounds[side] = BoundsOf(reads[side], shape, sizes, roles);
  }
  return space;
}

}  // namespace tensord::cuda
