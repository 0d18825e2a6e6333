#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/ops/derivatives/product_of_others.h"
#include "engine/ops/derivatives/rules.h"
#include "engine/ops/derivatives/terms.h"
#include "engine/ops/index_windows.h"

namespace tensord {
namespace {

// The windows of a gather or a scatter: their axes, their sizes by axis of the operand, and the indices.
class IndexedWindows {
 public:
  IndexedWindows(DerivativeBuilder& graph, WindowAxes axes, const SymbolicShape& operand, ValueId indices,
                 const SymbolicShape& windows)
      : graph_(graph),
        terms_(graph),
        axes_(std::move(axes)),
        operand_(operand),
        windows_(windows),
        indices_(indices),
        indices_type_(graph.type(indices)),
        sizes_(operand.size(), Dim(1)) {
    const std::vector<int64_t> window_axes = axes_.OperandWindowAxes(static_cast<int64_t>(operand.size()));
    for (size_t k = 0; k < window_axes.size(); ++k) {
      sizes_[static_cast<size_t>(window_axes[k])] = windows[static_cast<size_t>(axes_.window_dims[k])];
    }
  }

  // Tells whether no window can fit into the operand.
  bool never_fit() const {
    for (size_t i = 0; i < sizes_.size(); ++i) {
      if (!operand_[i].is_static() || !sizes_[i].is_static()) continue;
      if (operand_[i].size.constant() < sizes_[i].size.constant()) return true;
    }
    return false;
  }

  // Returns the indices moved so that all windows fit, as Gather moves them.
  ValueId ClampedIndices() {
    if (axes_.index_map.empty()) return indices_;
    return graph_.Add(Def(CoreOp::kClamp), {terms_.Scalar(0, indices_type_.dtype), indices_, LastStarts()});
  }

  // Returns a BOOL of the shape of the windows: whether the window fits, and so is not skipped.
  ValueId Fits() {
    const std::vector<int64_t> batch = axes_.BatchDims(indices_type_.rank());
    if (axes_.index_map.empty()) return terms_.Full(1, {.dtype = DType::kBool, .shape = windows_});
    const ValueId low = terms_.Compare(CompareDirection::kGe, indices_, terms_.Fill(0, indices_));
    const ValueId high = terms_.Compare(CompareDirection::kLe, indices_, LastStarts());
    ValueId fits = terms_.Binary(CoreOp::kAnd, low, high);
    if (axes_.index_vector_dim < indices_type_.rank()) {
      fits = terms_.Reduce(ReduceKind::kAnd, fits, {axes_.index_vector_dim});
    }
    return terms_.Broadcast(fits, windows_, batch);
  }

  ValueId Gather(ValueId from) {
    const bool is_static = std::all_of(sizes_.begin(), sizes_.end(), [](const Dim& size) { return size.is_static(); });
    const OpDef& op = Def(is_static ? CoreOp::kGather : CoreOp::kGatherDynamicSliceSizes);
    Attributes attrs(op.attrs);
    axes_.SetOn(&attrs, kGatherNames);
    if (!is_static) return graph_.AddSized(op, std::move(attrs), "slice_sizes", sizes_, {from, indices_});
    std::vector<int64_t> sizes;
    for (const Dim& size : sizes_) sizes.push_back(size.size.constant());
    attrs.Set("slice_sizes", std::move(sizes));
    return graph_.Add(op, std::move(attrs), {from, indices_});
  }

  ValueId Scatter(ScatterCombiner combiner, ValueId into, ValueId indices, ValueId updates) {
    Attributes attrs(Def(CoreOp::kScatter).attrs);
    axes_.SetOn(&attrs, kScatterNames);
    attrs.Set("combiner", static_cast<int64_t>(combiner));
    return graph_.Add(Def(CoreOp::kScatter), std::move(attrs), {into, indices, updates});
  }
  ValueId Scatter(ScatterCombiner combiner, ValueId into, ValueId updates) {
    return Scatter(combiner, into, indices_, updates);
  }

 private:
  // Returns the last start of a window that fits, for each component of an index vector, in the shape of the indices.
  ValueId LastStarts() {
    const DType dtype = indices_type_.dtype;
    const int64_t most =
        dtype == DType::kI32 ? std::numeric_limits<int32_t>::max() : std::numeric_limits<int64_t>::max();
    DerivativeBuilder::Values starts;
    for (int64_t axis : axes_.index_map) {
      const size_t i = static_cast<size_t>(axis);
      absl::StatusOr<DimExpr> last = DimExpr::Subtract(operand_[i].size, sizes_[i].size);
      if (!last.ok()) {
        graph_.Fail(last.status());
        return {};
      }
      ValueId start;
      if (last->is_constant()) {
        start = terms_.Integers({std::min(last->constant(), most)}, dtype);
      } else {
        start = terms_.Reshape(terms_.Convert(terms_.SizeOf(*last), dtype), {Dim(1)});
      }
      starts.push_back(start);
    }
    if (axes_.index_vector_dim >= indices_type_.rank()) {
      return terms_.Broadcast(terms_.Reshape(starts[0], {}), indices_type_.shape, {});
    }
    Attributes attrs(Def(CoreOp::kConcatenate).attrs);
    attrs.Set("dimension", int64_t{0});
    const ValueId all =
        starts.size() == 1 ? starts[0] : graph_.Add(Def(CoreOp::kConcatenate), std::move(attrs), starts);
    return terms_.Broadcast(all, indices_type_.shape, {axes_.index_vector_dim});
  }

  DerivativeBuilder& graph_;
  Terms terms_;
  const WindowAxes axes_;
  const SymbolicShape operand_, windows_;
  const ValueId indices_;
  const TensorType indices_type_;
  SymbolicShape sizes_;
};

// Returns a number for each element of the updates, counted from 1.
ValueId NumberUpdates(DerivativeBuilder& graph, const SymbolicShape& updates) {
  Terms e(graph);
  const TensorType numbers{.dtype = DType::kI64, .shape = updates};
  ValueId number = e.Zeros(numbers);
  for (size_t axis = updates.size(); axis-- > 0;) {
    const ValueId size = e.Broadcast(e.SizeOf(updates[axis].size), updates, {});
    const ValueId place = e.Broadcast(e.Counting(updates[axis]), updates, {static_cast<int64_t>(axis)});
    number = e.Add(e.Mul(number, size), place);
  }
  return e.Add(number, e.Full(1, numbers));
}

// Everybody who equals the result takes an equal part of the tangent.
ValueId ExtremeTangent(JvpCall& call, IndexedWindows& windows) {
  Terms e(call.graph);
  const ValueId x = call.operands[0], updates = call.operands[2], y = call.results[0];
  const TensorType operand = call.graph.type(x), update = call.graph.type(updates);
  const DType counted = CountingType(operand.dtype), summed = SummingType(operand.dtype);
  const ValueId stays = e.Compare(CompareDirection::kEq, x, y);
  const ValueId equal = e.Compare(CompareDirection::kEq, updates, windows.Gather(y));
  const ValueId wins = e.Binary(CoreOp::kAnd, equal, windows.Fits());
  const auto full = [&e](double value, DType dtype, const TensorType& like) {
    return e.Full(value, {.dtype = dtype, .shape = like.shape});
  };
  const ValueId count =
      windows.Scatter(ScatterCombiner::kAdd, e.Select(stays, full(1, counted, operand), full(0, counted, operand)),
                      e.Select(wins, full(1, counted, update), full(0, counted, update)));
  const ValueId nothing = full(0, summed, operand), no_update = full(0, summed, update);
  const ValueId own = call.has(0) ? e.Select(stays, e.Convert(call.tangents[0], summed), nothing) : nothing;
  const ValueId moved = call.has(2) ? e.Select(wins, e.Convert(call.tangents[2], summed), no_update) : no_update;
  const ValueId sum = windows.Scatter(ScatterCombiner::kAdd, own, moved);
  return e.Convert(e.Div(sum, e.Convert(count, summed)), operand.dtype);
}

// The most elements of updates for which each is compared with each: one kernel, where halves take a few for each bit.
constexpr int64_t kMostCompared = 1024;

// Returns the number of elements, or -1 if it is not known.
int64_t CountOf(const SymbolicShape& shape) {
  int64_t count = 1;
  for (const Dim& dim : shape) {
    if (!dim.is_static() || __builtin_mul_overflow(count, dim.size.constant(), &count)) return -1;
  }
  return count;
}

// Returns for each update the product of the other updates at its place. No zero divides, and derivatives of any order
// follow; but it takes the square of their count.
ValueId OthersByComparing(DerivativeBuilder& graph, IndexedWindows& windows, const SymbolicShape& operand,
                          ValueId updates) {
  Terms e(graph);
  const TensorType update = graph.type(updates);
  const Dim count(CountOf(update.shape));
  if (count.size.constant() == 1) return e.Fill(1, updates);
  const SymbolicShape line = {count}, square = {count, count};
  const auto numbers = [&](int64_t size) {
    Attributes attrs(Def(CoreOp::kIota).attrs);
    attrs.Set("type", SharedType(TensorType{.dtype = DType::kI64, .shape = {Dim(size)}}));
    return graph.Add(Def(CoreOp::kIota), std::move(attrs), {});
  };
  const auto both_ways = [&](CompareDirection direction, ValueId of) {
    return e.Compare(direction, e.Broadcast(of, square, {0}), e.Broadcast(of, square, {1}));
  };
  const ValueId places = e.Reshape(windows.Gather(e.Reshape(numbers(CountOf(operand)), operand)), line);
  const ValueId fits = e.Broadcast(e.Reshape(windows.Fits(), line), square, {0});
  const ValueId is_other = both_ways(CompareDirection::kNe, numbers(count.size.constant()));
  const ValueId counts =
      e.Binary(CoreOp::kAnd, e.Binary(CoreOp::kAnd, is_other, fits), both_ways(CompareDirection::kEq, places));
  const ValueId repeated = e.Broadcast(e.Reshape(updates, line), square, {0});
  const ValueId factors = e.Select(counts, repeated, e.Full(1, {.dtype = update.dtype, .shape = square}));
  return e.Reshape(e.Reduce(ReduceKind::kProduct, factors, {0}), update.shape);
}

// Returns the number of elements as the size of an axis.
absl::StatusOr<Dim> LineOf(const SymbolicShape& shape) {
  if (shape.size() == 1) return shape[0];
  DimExpr size(1), bound(1);
  Extent extent = Extent::kExact;
  for (const Dim& dim : shape) {
    ASSIGN_OR_RETURN(size, DimExpr::Multiply(size, dim.size));
    extent = std::max(extent, dim.extent);
    if (extent == Extent::kUnknown) continue;
    ASSIGN_OR_RETURN(bound, DimExpr::Multiply(bound, dim.extent == Extent::kExact ? dim.size : *dim.bound));
  }
  Dim line(std::move(size));
  line.extent = extent;
  if (extent == Extent::kUpperBound) line.bound = std::move(bound);
  return line;
}

// The same by halves of halves of the updates of a place, for any number of them.
ValueId OthersByHalves(DerivativeBuilder& graph, IndexedWindows& windows, const SymbolicShape& operand,
                       ValueId updates) {
  Terms e(graph);
  const SymbolicShape shape = graph.type(updates).shape;
  const absl::StatusOr<Dim> count = LineOf(shape);
  if (!count.ok()) {
    graph.Fail(count.status());
    return {};
  }
  const SymbolicShape line = {*count};
  const ValueId factors = e.Reshape(e.Select(windows.Fits(), updates, e.Fill(1, updates)), line);
  const ValueId numbers = e.Add(e.Counting(*count), e.Full(1, {.dtype = DType::kI64, .shape = line}));
  const ValueId nobody = e.Zeros({.dtype = DType::kI64, .shape = operand});
  const ValueId last = windows.Scatter(ScatterCombiner::kSet, nobody, e.Reshape(numbers, shape));
  const ValueId groups = e.Reshape(windows.Gather(last), line);
  return e.Reshape(ProductOfOthers(graph, {.count = *count, .factors = factors, .numbers = numbers, .groups = groups}),
                   shape);
}

// Each factor's tangent, times all other factors at its place.
ValueId ProductTangent(JvpCall& call, IndexedWindows& windows) {
  Terms e(call.graph);
  const ValueId x = call.operands[0], updates = call.operands[2];
  const TensorType operand = call.graph.type(x);
  ValueId own = e.Zeros(operand);
  if (call.has(0)) {
    own = e.Mul(call.tangents[0], windows.Scatter(ScatterCombiner::kMultiply, e.Full(1, operand), updates));
  }
  if (!call.has(2)) return own;
  const int64_t count = CountOf(call.graph.type(updates).shape);
  const bool is_small = count >= 0 && count <= kMostCompared && CountOf(operand.shape) >= 0;
  const ValueId others = is_small ? OthersByComparing(call.graph, windows, operand.shape, updates)
                                  : OthersByHalves(call.graph, windows, operand.shape, updates);
  const ValueId slopes = e.Mul(windows.Gather(x), others);
  return windows.Scatter(ScatterCombiner::kAdd, own, e.Mul(call.tangents[2], slopes));
}

}  // namespace

void TransposeGather(TransposeCall& call) {
  const TensorType& operand = *call.operand_types[0];
  IndexedWindows windows(call.graph, WindowAxes::Of(call.attrs, kGatherNames), operand.shape, call.operands[1],
                         call.result_types[0]->shape);
  // Many rows may meet in one, and sums of 16-bit floats soon stand still.
  Terms e(call.graph);
  TensorType summed = operand;
  summed.dtype = SummingType(operand.dtype);
  const ValueId sum = windows.Scatter(ScatterCombiner::kAdd, e.Zeros(summed), windows.ClampedIndices(),
                                      e.Convert(call.cotangents[0], summed.dtype));
  call.operand_cotangents[0] = e.Convert(sum, operand.dtype);
}

void JvpScatter(JvpCall& call) {
  Terms e(call.graph);
  const TensorType operand = call.graph.type(call.operands[0]), updates = call.graph.type(call.operands[2]);
  IndexedWindows windows(call.graph, WindowAxes::Of(call.attrs, kScatterNames), operand.shape, call.operands[1],
                         updates.shape);
  if (windows.never_fit()) {
    call.result_tangents[0] = call.tangents[0];
    return;
  }
  switch (static_cast<ScatterCombiner>(call.attrs.Int("combiner"))) {
    case ScatterCombiner::kAdd:
    case ScatterCombiner::kSet: {
      const ValueId t = e.OrZeros(call.tangents[0], operand), moved = e.OrZeros(call.tangents[2], updates);
      call.result_tangents[0] = call.graph.Add(call.op, call.attrs, {t, call.operands[1], moved});
      return;
    }
    case ScatterCombiner::kMultiply:
      call.result_tangents[0] = ProductTangent(call, windows);
      return;
    case ScatterCombiner::kMinimum:
    case ScatterCombiner::kMaximum:
      call.result_tangents[0] = ExtremeTangent(call, windows);
      return;
  }
}

// Of sums, and of SET: there the update that came last at a place has its cotangent, and no other, nor the operand.
void TransposeScatter(TransposeCall& call) {
  Terms e(call.graph);
  const TensorType &operand = *call.operand_types[0], &updates = *call.operand_types[2];
  const ValueId ct = call.cotangents[0];
  IndexedWindows windows(call.graph, WindowAxes::Of(call.attrs, kScatterNames), operand.shape, call.operands[1],
                         updates.shape);
  if (static_cast<ScatterCombiner>(call.attrs.Int("combiner")) == ScatterCombiner::kAdd) {
    if (call.is_linear(0)) call.operand_cotangents[0] = ct;
    if (call.is_linear(2)) {
      call.operand_cotangents[2] = e.Select(windows.Fits(), windows.Gather(ct), e.Zeros(updates));
    }
    return;
  }
  const ValueId numbers = NumberUpdates(call.graph, updates.shape);
  const ValueId nobody = e.Zeros({.dtype = DType::kI64, .shape = operand.shape});
  const ValueId last = windows.Scatter(ScatterCombiner::kSet, nobody, numbers);
  if (call.is_linear(0)) {
    call.operand_cotangents[0] = e.Select(e.Compare(CompareDirection::kEq, last, nobody), ct, e.Fill(0, ct));
  }
  if (call.is_linear(2)) {
    const ValueId is_last = e.Compare(CompareDirection::kEq, windows.Gather(last), numbers);
    call.operand_cotangents[2] =
        e.Select(e.Binary(CoreOp::kAnd, is_last, windows.Fits()), windows.Gather(ct), e.Zeros(updates));
  }
}

}  // namespace tensord
