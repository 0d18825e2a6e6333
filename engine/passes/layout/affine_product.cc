#include "engine/passes/layout/affine_product.h"

#include <algorithm>
#include <utility>

#include "engine/ops/affine_dot.h"
#include "engine/ops/contraction.h"

namespace tensord {
namespace {

constexpr size_t kMaxIndices = 32;  // of a product: reshapes split axes, and each rule goes over all pairs
constexpr absl::string_view kStarts[] = {"lhs_starts", "rhs_starts"};
constexpr absl::string_view kSteps[] = {"lhs_steps", "rhs_steps"};

using Index = AffineProduct::Index;
using Indices = std::vector<Index>;

Index IndexOf(ProductSide side, const AffineDigit& digit) {
  Index index{.size = digit.size};
  index.steps[side] = digit.steps;
  return index;
}

void CutOff(int64_t size, AffineDigit* digit) {
  digit->size /= size;
  for (int64_t& step : digit->steps) step *= size;
}

// The digits of one axis on both sides as indices; nothing if they cannot be cut alike.
bool AppendPairs(const AffineDigits& lhs, const AffineDigits& rhs, Indices* indices) {
  std::vector<AffineDigit> left(lhs.rbegin(), lhs.rend()), right(rhs.rbegin(), rhs.rend());
  while (!left.empty() && !right.empty()) {
    AffineDigit &l = left.back(), &r = right.back();
    const int64_t size = std::min(l.size, r.size);
    if (l.size % size != 0 || r.size % size != 0) return false;
    indices->push_back({.size = size, .steps = {l.steps, r.steps}});
    CutOff(size, &l);
    CutOff(size, &r);
    if (l.size == 1) left.pop_back();
    if (r.size == 1) right.pop_back();
  }
  return left.empty() && right.empty();
}

void AppendSteps(const Indices& indices, ProductSide side, size_t rank, std::vector<int64_t>* steps) {
  for (const Index& index : indices) {
    for (size_t axis = 0; axis < rank; ++axis) {
      steps->push_back(index.steps[side].empty() ? 0 : index.steps[side][axis]);
    }
  }
}

}  // namespace

bool AffineProduct::fits() const { return result.size() + summed.size() <= kMaxIndices; }

Attributes AffineProduct::AttributesFor(const TensorType& type, const Attributes& product) const {
  Attributes attrs(AffineDotOp().attrs);
  attrs.Set("num_summed", static_cast<int64_t>(summed.size()));
  for (const ProductSide side : {kLhs, kRhs}) {
    std::vector<int64_t> steps;
    for (const Indices* indices : {&result, &summed}) AppendSteps(*indices, side, starts[side].size(), &steps);
    attrs.Set(kStarts[side], starts[side]).Set(kSteps[side], std::move(steps));
  }
  std::vector<int64_t> sizes, shape;
  for (const Indices* indices : {&result, &summed}) {
    for (const Index& index : *indices) sizes.push_back(index.size);
  }
  for (const Dim& dim : type.shape) shape.push_back(dim.size.constant());
  attrs.Set("sizes", std::move(sizes)).Set("shape", std::move(shape));
  attrs.Set("result_dtype", product.GetDType("result_dtype"));
  return attrs.Set("lhs_conj", product.Int("lhs_conj")).Set("rhs_conj", product.Int("rhs_conj"));
}

std::optional<AffineProduct> AffineProductOf(const Graph& graph, const Node& dot, const AffineViews& views) {
  if (AlgebraOf(dot.attrs) != Algebra::kStandard) return std::nullopt;  // an affine_dot adds products up
  // Loops for integers want long rows.
  if (!kInexact.Contains(graph.type(dot.operands[kLhs]).dtype)) return std::nullopt;
  if (!dot.attrs.Ints("result_permutation").empty()) return std::nullopt;
  const std::optional<AffineView> sides[] = {views.Of(dot.operands[kLhs]), views.Of(dot.operands[kRhs])};
  if (!sides[kLhs].has_value() || !sides[kRhs].has_value()) return std::nullopt;
  const std::vector<int64_t>&lc = dot.attrs.Ints("lhs_contracting_dimensions"),
        &rc = dot.attrs.Ints("rhs_contracting_dimensions"), &lb = dot.attrs.Ints("lhs_batching_dimensions"),
        &rb = dot.attrs.Ints("rhs_batching_dimensions");
  const auto axis = [&](ProductSide side, int64_t a) -> const AffineDigits& {
    return sides[side]->axes[static_cast<size_t>(a)];
  };
  AffineProduct product;
  for (const ProductSide side : {kLhs, kRhs}) {
    product.bases[side] = sides[side]->base;
    product.starts[side] = sides[side]->starts[0];
    product.joins = product.joins || sides[side]->joins;
    const int64_t rank = static_cast<int64_t>(sides[side]->axes.size());
    for (const int64_t a : side == kLhs ? FreeAxes(rank, lc, lb) : FreeAxes(rank, rc, rb)) {
      for (const AffineDigit& digit : axis(side, a)) product.result.push_back(IndexOf(side, digit));
    }
  }
  for (size_t i = 0; i < lb.size(); ++i) {
    if (!AppendPairs(axis(kLhs, lb[i]), axis(kRhs, rb[i]), &product.result)) return std::nullopt;
  }
  for (size_t i = 0; i < lc.size(); ++i) {
    if (!AppendPairs(axis(kLhs, lc[i]), axis(kRhs, rc[i]), &product.summed)) return std::nullopt;
  }
  if (!product.fits()) return std::nullopt;
  return product;
}

}  // namespace tensord
