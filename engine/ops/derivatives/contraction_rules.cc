#include <algorithm>
#include <utility>

#include "engine/ops/contraction.h"
#include "engine/ops/derivatives/extreme_tangent.h"
#include "engine/ops/derivatives/rules.h"
#include "engine/ops/derivatives/terms.h"
#include "engine/ops/semiring.h"

namespace tensord {
namespace {

// The axes of one operand of a contraction, and the place of its free axes in the result.
struct Side {
  std::vector<int64_t> contracted, batch, free;
  int64_t first_free = 0;
};

std::vector<int64_t> Consecutive(int64_t first, size_t count) {
  std::vector<int64_t> axes = AllAxes(count);
  for (int64_t& axis : axes) axis += first;
  return axes;
}

// Contracts the cotangent with the other operand over that one's free axes. The result has the free axes of `side`, its
// contracted ones in the ascending order of the other's, and the batch; they are brought into the order of `side`.
ValueId ContractBack(TransposeCall& call, const Side& side, const Side& other, ValueId other_value, bool is_lhs) {
  Terms e(call.graph);
  const size_t batch_count = side.batch.size(), free_count = side.free.size();
  const std::vector<int64_t> other_places = Consecutive(other.first_free, other.free.size());
  const std::vector<int64_t> batch_places =
      Consecutive(static_cast<int64_t>(free_count + other.free.size()), batch_count);
  Attributes attrs(Def(CoreOp::kDotGeneral).attrs);
  attrs.Set(is_lhs ? "lhs_contracting_dimensions" : "rhs_contracting_dimensions", other_places);
  attrs.Set(is_lhs ? "rhs_contracting_dimensions" : "lhs_contracting_dimensions", other.free);
  attrs.Set(is_lhs ? "lhs_batching_dimensions" : "rhs_batching_dimensions", batch_places);
  attrs.Set(is_lhs ? "rhs_batching_dimensions" : "lhs_batching_dimensions", other.batch);
  const ValueId factor = e.Convert(e.Conj(other_value), call.result_types[0]->dtype);
  const ValueId ct = call.cotangents[0];
  const ValueId product = is_lhs ? call.graph.Add(Def(CoreOp::kDotGeneral), std::move(attrs), {ct, factor})
                                 : call.graph.Add(Def(CoreOp::kDotGeneral), std::move(attrs), {factor, ct});
  // The contracted axes of the other operand as they stand in the product: ascending.
  std::vector<int64_t> ascending = other.contracted;
  std::sort(ascending.begin(), ascending.end());
  const int64_t contracted_at = is_lhs ? static_cast<int64_t>(free_count) : 0;
  const int64_t free_at = is_lhs ? 0 : static_cast<int64_t>(side.contracted.size());
  const int64_t batch_at = static_cast<int64_t>(free_count + side.contracted.size());
  std::vector<int64_t> permutation(free_count + side.contracted.size() + batch_count);
  for (size_t i = 0; i < free_count; ++i) {
    permutation[static_cast<size_t>(side.free[i])] = free_at + static_cast<int64_t>(i);
  }
  for (size_t i = 0; i < side.contracted.size(); ++i) {
    const auto place = std::find(ascending.begin(), ascending.end(), other.contracted[i]) - ascending.begin();
    permutation[static_cast<size_t>(side.contracted[i])] = contracted_at + place;
  }
  for (size_t i = 0; i < batch_count; ++i) {
    permutation[static_cast<size_t>(side.batch[i])] = batch_at + static_cast<int64_t>(i);
  }
  return e.Transpose(product, std::move(permutation));
}

// The axes of an operand among those of all products: lhs free, rhs free, batch, contracted. `free` is the first of
// the operand's free axes there, `batch` the first one of the batch.
std::vector<int64_t> PlacesAmongProducts(int64_t rank, const std::vector<int64_t>& contracted,
                                         const std::vector<int64_t>& batch, int64_t first_free, int64_t first_batch) {
  std::vector<int64_t> places(static_cast<size_t>(rank));
  for (int64_t axis : FreeAxes(rank, contracted, batch)) places[static_cast<size_t>(axis)] = first_free++;
  for (int64_t axis : batch) places[static_cast<size_t>(axis)] = first_batch++;
  for (int64_t axis : contracted) places[static_cast<size_t>(axis)] = first_batch++;
  return places;
}

// Writes all products out, of which the result is the maximum or the minimum.
ValueId TangentOfExtremeProducts(JvpCall& call, Algebra algebra) {
  Terms e(call.graph);
  const TensorType lhs = call.graph.type(call.operands[0]), rhs = call.graph.type(call.operands[1]);
  const SymbolicShape result = call.graph.type(call.results[0]).shape;
  const std::vector<int64_t>& contracted = call.attrs.Ints("lhs_contracting_dimensions");
  const std::vector<int64_t>& lhs_batch = call.attrs.Ints("lhs_batching_dimensions");
  DualTensor products{.x = {}, .t = {}, .shape = result};
  std::vector<int64_t> reduced;
  for (int64_t axis : contracted) {
    reduced.push_back(static_cast<int64_t>(products.shape.size()));
    products.shape.push_back(lhs.shape[static_cast<size_t>(axis)]);
  }
  const auto rank = static_cast<int64_t>(result.size());
  const int64_t first_batch = rank - static_cast<int64_t>(lhs_batch.size());
  const int64_t lhs_free = lhs.rank() - static_cast<int64_t>(contracted.size() + lhs_batch.size());
  const std::vector<int64_t> places[] = {
      PlacesAmongProducts(lhs.rank(), contracted, lhs_batch, 0, first_batch),
      PlacesAmongProducts(rhs.rank(), call.attrs.Ints("rhs_contracting_dimensions"),
                          call.attrs.Ints("rhs_batching_dimensions"), lhs_free, first_batch)};
  const auto repeated = [&](size_t side, ValueId x) { return e.Broadcast(x, products.shape, places[side]); };
  const ValueId a = repeated(0, call.operands[0]), b = repeated(1, call.operands[1]);
  const ValueId others[] = {b, a};
  const bool multiplies = algebra == Algebra::kMaxTimes;
  products.x = multiplies ? e.Mul(a, b) : e.Add(a, b);
  for (size_t side = 0; side < 2; ++side) {
    if (!call.has(side)) continue;
    const ValueId t = repeated(side, call.tangents[side]);
    products.t = e.Sum(products.t, multiplies ? e.Mul(t, others[side]) : t);
  }
  return ExtremeTangent(call.graph, products, lhs.dtype, call.results[0], result, reduced);
}

}  // namespace

void JvpDotGeneral(JvpCall& call) {
  const Algebra algebra = AlgebraOf(call.attrs);
  if (algebra == Algebra::kStandard) return JvpProduct(call);
  call.result_tangents[0] = TangentOfExtremeProducts(call, algebra);
}

void TransposeDotGeneral(TransposeCall& call) {
  Side lhs{.contracted = call.attrs.Ints("lhs_contracting_dimensions"),
           .batch = call.attrs.Ints("lhs_batching_dimensions"),
           .free = {}};
  Side rhs{.contracted = call.attrs.Ints("rhs_contracting_dimensions"),
           .batch = call.attrs.Ints("rhs_batching_dimensions"),
           .free = {}};
  lhs.free = FreeAxes(call.operand_types[0]->rank(), lhs.contracted, lhs.batch);
  rhs.free = FreeAxes(call.operand_types[1]->rank(), rhs.contracted, rhs.batch);
  rhs.first_free = static_cast<int64_t>(lhs.free.size());
  const bool is_lhs = call.is_linear(0);
  const size_t linear = is_lhs ? 0 : 1;
  const ValueId ct = is_lhs ? ContractBack(call, lhs, rhs, call.operands[1], true)
                            : ContractBack(call, rhs, lhs, call.operands[0], false);
  call.operand_cotangents[linear] = Terms(call.graph).Convert(ct, call.operand_types[linear]->dtype);
}

}  // namespace tensord
