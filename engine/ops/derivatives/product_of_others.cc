#include "engine/ops/derivatives/product_of_others.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/ops/derivatives/terms.h"
#include "engine/ops/index_windows.h"

namespace tensord {
namespace {

// The bits of a count that only the run knows: no memory holds more factors.
constexpr int kMostBits = 40;

DType WiderType(DType dtype) {
  switch (dtype) {
    case DType::kF16:
    case DType::kBF16:
      return DType::kF32;
    case DType::kF32:
      return DType::kF64;
    case DType::kC64:
      return DType::kC128;
    default:
      return dtype;
  }
}

// A vector as a table, of which elements are read and written by their places.
class Lookup {
 public:
  explicit Lookup(DerivativeBuilder& graph) : graph_(graph) {}

  ValueId Read(ValueId table, ValueId places) {
    Attributes attrs(Def(CoreOp::kGather).attrs);
    attrs.Set("collapsed_slice_dims", std::vector<int64_t>{0});
    attrs.Set("start_index_map", std::vector<int64_t>{0});
    attrs.Set("index_vector_dim", int64_t{1});
    attrs.Set("slice_sizes", std::vector<int64_t>{1});
    return graph_.Add(Def(CoreOp::kGather), std::move(attrs), {table, places});
  }

  ValueId Write(ValueId table, ValueId places, ValueId elements) {
    Attributes attrs(Def(CoreOp::kScatter).attrs);
    attrs.Set("inserted_window_dims", std::vector<int64_t>{0});
    attrs.Set("scatter_dims_to_operand_dims", std::vector<int64_t>{0});
    attrs.Set("index_vector_dim", int64_t{1});
    attrs.Set("combiner", static_cast<int64_t>(ScatterCombiner::kSet));
    return graph_.Add(Def(CoreOp::kScatter), std::move(attrs), {table, places, elements});
  }

 private:
  DerivativeBuilder& graph_;
};

// Splits groups by each bit of the numbers, from the highest to the lowest, until each factor is alone. Returns by bit
// the number of a factor in the other half of the factor's group, 0 if that half is empty.
std::vector<ValueId> OtherHalves(DerivativeBuilder& graph, const GroupedFactors& of, int bits) {
  Terms e(graph);
  Lookup lookup(graph);
  const TensorType line{.dtype = DType::kI64, .shape = {of.count}};
  absl::StatusOr<DimExpr> places = DimExpr::Add(of.count.size, DimExpr(1));
  if (places.ok()) places = DimExpr::Multiply(*places, DimExpr(2));
  if (!places.ok()) {
    graph.Fail(places.status());
    return {};
  }
  const ValueId one = e.Full(1, line), zero = e.Zeros(line), places_from_0 = e.Sub(of.numbers, one);
  const ValueId nobody = e.Zeros({.dtype = DType::kI64, .shape = {Dim(*places)}});
  std::vector<ValueId> others(static_cast<size_t>(bits));
  ValueId groups = of.groups;
  for (int bit = bits; bit-- > 0 && graph.ok();) {
    const ValueId mask = e.Full(std::exp2(bit), line);
    const ValueId is_high = e.Compare(CompareDirection::kNe, e.Binary(CoreOp::kAnd, places_from_0, mask), zero);
    const ValueId low = e.Add(groups, groups), high = e.Add(low, one);
    const ValueId own = e.Select(is_high, high, low);
    const ValueId last = lookup.Write(nobody, own, of.numbers);
    others[static_cast<size_t>(bit)] = lookup.Read(last, e.Select(is_high, low, high));
    groups = lookup.Read(last, own);
  }
  return others;
}

}  // namespace

ValueId ProductOfOthers(DerivativeBuilder& graph, const GroupedFactors& of) {
  if (!graph.ok()) return {};
  Terms e(graph);
  Lookup lookup(graph);
  const DType given = graph.type(of.factors).dtype;
  const TensorType type{.dtype = WiderType(given), .shape = {of.count}};
  const int bits = of.count.is_static() ? std::bit_width(static_cast<uint64_t>(of.count.size.constant())) : kMostBits;
  const std::vector<ValueId> other_halves = OtherHalves(graph, of, bits);
  const ValueId one = e.Full(1, {.dtype = type.dtype, .shape = {Dim(1)}});
  // From the lowest bit on: the product of the group that the factor is in, and of that without the factor.
  ValueId all = e.Convert(of.factors, type.dtype), others = e.Full(1, type);
  for (const ValueId other_half : other_halves) {
    Attributes attrs(Def(CoreOp::kConcatenate).attrs);
    attrs.Set("dimension", int64_t{0});
    const ValueId numbered = graph.Add(Def(CoreOp::kConcatenate), std::move(attrs), {one, all});  // 0: an empty half
    const ValueId factor = lookup.Read(numbered, other_half);
    others = e.Mul(others, factor);
    all = e.Mul(all, factor);
  }
  return e.Convert(others, given);
}

}  // namespace tensord
