#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/ops/derivatives/rules.h"
#include "engine/ops/derivatives/terms.h"

namespace tensord {
namespace {

int64_t EntryOr(const std::vector<int64_t>& entries, size_t i, int64_t unset) {
  return entries.empty() ? unset : entries[i];
}

ValueId Pad(DerivativeBuilder& graph, ValueId x, ValueId value, std::vector<int64_t> low, std::vector<int64_t> high,
            std::vector<int64_t> interior) {
  Attributes attrs(Def(CoreOp::kPad).attrs);
  attrs.Set("edge_padding_low", std::move(low));
  attrs.Set("edge_padding_high", std::move(high));
  attrs.Set("interior_padding", std::move(interior));
  return graph.Add(Def(CoreOp::kPad), std::move(attrs), {x, value});
}

}  // namespace

// Puts zeros where the slice took nothing. An axis of a symbolic size is padded to it at its high end.
void TransposeSlice(TransposeCall& call) {
  const auto &starts = call.attrs.Ints("start_indices"), &strides = call.attrs.Ints("strides");
  const TensorType &operand = *call.operand_types[0], &result = *call.result_types[0];
  std::vector<int64_t> low, high, interior;
  for (size_t i = 0; i < starts.size(); ++i) {
    const int64_t stride = EntryOr(strides, i, 1), length = result.shape[i].size.constant();
    // A stride past the only element, or past none, skips nothing.
    const int64_t step = length > 1 ? stride : 1;
    const int64_t end = length == 0 ? starts[i] : starts[i] + (length - 1) * step + 1;
    low.push_back(starts[i]);
    interior.push_back(step - 1);
    high.push_back(operand.shape[i].is_static() ? operand.shape[i].size.constant() - end : 0);
  }
  ValueId ct = Pad(call.graph, call.cotangents[0], Terms(call.graph).Scalar(0, operand.dtype), std::move(low),
                   std::move(high), std::move(interior));
  for (size_t i = 0; i < operand.shape.size(); ++i) {
    if (!operand.shape[i].is_static()) ct = Terms(call.graph).PaddedTo(ct, i, operand.shape[i]);
  }
  call.operand_cotangents[0] = ct;
}

void JvpPad(JvpCall& call) {
  Terms e(call.graph);
  const ValueId t = e.OrZeros(call.tangents[0], call.graph.type(call.operands[0]));
  const ValueId value = e.OrZeros(call.tangents[1], call.graph.type(call.operands[1]));
  call.result_tangents[0] = call.graph.Add(call.op, call.attrs, {t, value});
}

// Crops for the operand; sums the padded places for the padding value.
void TransposePad(TransposeCall& call) {
  Terms e(call.graph);
  const auto &low = call.attrs.Ints("edge_padding_low"), &high = call.attrs.Ints("edge_padding_high"),
             &interior = call.attrs.Ints("interior_padding");
  const TensorType& operand = *call.operand_types[0];
  const ValueId ct = call.cotangents[0], zero = e.Scalar(0, operand.dtype);
  if (call.is_linear(1)) {
    const TensorType mask{.dtype = DType::kBool, .shape = operand.shape};
    const ValueId is_padded = call.graph.Add(call.op, call.attrs, {e.Zeros(mask), e.Scalar(1, DType::kBool)});
    call.operand_cotangents[1] =
        e.Reduce(ReduceKind::kSum, e.Select(is_padded, ct, e.Fill(0, ct)), AllAxes(operand.shape.size()));
  }
  if (!call.is_linear(0)) return;
  const bool has_gaps = std::any_of(interior.begin(), interior.end(), [](int64_t gap) { return gap != 0; });
  std::vector<int64_t> cut_low, cut_high, limits, strides;
  for (size_t i = 0; i < low.size(); ++i) {
    cut_low.push_back(-low[i]);
    cut_high.push_back(-high[i]);
    strides.push_back(EntryOr(interior, i, 0) + 1);
    if (!has_gaps) continue;
    if (!operand.shape[i].is_static()) {
      return call.graph.Fail(Refuse(Refusal::kUnsupportedRequest,
                                    absl::StrCat("there is no derivative of interior padding where the size of axis ",
                                                 i, " is symbolic: ", ToString(operand.shape[i]))));
    }
    const int64_t n = operand.shape[i].size.constant();
    limits.push_back(n == 0 ? 0 : (n - 1) * strides.back() + 1);
  }
  ValueId cropped = Pad(call.graph, ct, zero, std::move(cut_low), std::move(cut_high), {});
  if (has_gaps) cropped = e.Slice(cropped, std::vector<int64_t>(low.size(), 0), std::move(limits), std::move(strides));
  call.operand_cotangents[0] = cropped;
}

void JvpConcatenate(JvpCall& call) {
  Terms e(call.graph);
  DerivativeBuilder::Values parts;
  for (size_t i = 0; i < call.operands.size(); ++i) {
    parts.push_back(e.OrZeros(call.tangents[i], call.graph.type(call.operands[i])));
  }
  call.result_tangents[0] = call.graph.Add(call.op, call.attrs, parts);
}

// Cuts the parts out. Those behind a symbolic size begin at a place that the run computes.
void TransposeConcatenate(TransposeCall& call) {
  Terms e(call.graph);
  const size_t axis = static_cast<size_t>(call.attrs.Int("dimension"));
  const size_t rank = call.result_types[0]->shape.size();
  DimExpr offset(0);
  for (size_t i = 0; i < call.operands.size(); ++i) {
    const TensorType& part = *call.operand_types[i];
    if (call.is_linear(i) && part.is_static() && offset.is_constant()) {
      std::vector<int64_t> starts(rank, 0), limits;
      for (const Dim& dim : part.shape) limits.push_back(dim.size.constant());
      starts[axis] = offset.constant();
      limits[axis] += offset.constant();
      call.operand_cotangents[i] = e.Slice(call.cotangents[0], std::move(starts), std::move(limits), {});
    } else if (call.is_linear(i)) {
      const ValueId at = e.Reshape(e.SizeOf(offset), {Dim(1)});
      const ValueId starts = Pad(call.graph, at, e.Scalar(0, DType::kI64), {static_cast<int64_t>(axis)},
                                 {static_cast<int64_t>(rank - axis) - 1}, {});
      call.operand_cotangents[i] = e.Window(call.cotangents[0], starts, part.shape);
    }
    absl::StatusOr<DimExpr> next = DimExpr::Add(offset, part.shape[axis].size);
    if (!next.ok()) return call.graph.Fail(next.status());
    offset = *std::move(next);
  }
}

void TransposeReverse(TransposeCall& call) {
  call.operand_cotangents[0] = call.graph.Add(call.op, call.attrs, {call.cotangents[0]});
}

void TransposePadToMatch(TransposeCall& call) {
  if (call.is_linear(0))
    call.operand_cotangents[0] = Terms(call.graph).Head(call.cotangents[0], call.operand_types[0]->shape);
}

void TransposeDynamicTruncate(TransposeCall& call) {
  const size_t axis = static_cast<size_t>(call.attrs.Int("dimension"));
  call.operand_cotangents[0] = Terms(call.graph).PaddedTo(call.cotangents[0], axis, call.operand_types[0]->shape[axis]);
}

void TransposeDynamicSlice(TransposeCall& call) {
  const ValueId zeros = Terms(call.graph).Zeros(*call.operand_types[0]);
  call.operand_cotangents[0] =
      call.graph.Add(Def(CoreOp::kDynamicUpdateSlice), {zeros, call.cotangents[0], call.operands[1]});
}

void JvpDynamicUpdateSlice(JvpCall& call) {
  Terms e(call.graph);
  const ValueId t = e.OrZeros(call.tangents[0], call.graph.type(call.operands[0]));
  const ValueId update = e.OrZeros(call.tangents[1], call.graph.type(call.operands[1]));
  call.result_tangents[0] = call.graph.Add(call.op, {t, update, call.operands[2]});
}

void TransposeDynamicUpdateSlice(TransposeCall& call) {
  Terms e(call.graph);
  const ValueId ct = call.cotangents[0], starts = call.operands[2];
  const TensorType& update = *call.operand_types[1];
  if (call.is_linear(0)) call.operand_cotangents[0] = call.graph.Add(call.op, {ct, e.Zeros(update), starts});
  if (!call.is_linear(1)) return;
  if (!update.is_static()) {
    call.operand_cotangents[1] = e.Window(ct, starts, update.shape);
    return;
  }
  std::vector<int64_t> sizes;
  for (const Dim& dim : update.shape) sizes.push_back(dim.size.constant());
  Attributes attrs(Def(CoreOp::kDynamicSlice).attrs);
  attrs.Set("slice_sizes", std::move(sizes));
  call.operand_cotangents[1] = call.graph.Add(Def(CoreOp::kDynamicSlice), std::move(attrs), {ct, starts});
}

}  // namespace tensord
