#include "engine/ops/slicing.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/base/checked_math.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/base/stop_signal.h"
#include "engine/ops/axis_checks.h"
#include "engine/ops/axis_order.h"
#include "engine/ops/element_copy.h"
#include "engine/ops/index_walk.h"

namespace tensord {
namespace {

int64_t At(const std::vector<int64_t>& values, size_t i, int64_t if_empty) {
  return values.empty() ? if_empty : values[i];
}

}  // namespace

absl::StatusOr<ResultTypes> InferSlice(InferContext& context) {
  const TensorType& operand = context.operand(0);
  const auto &starts = context.attrs().Ints("start_indices"), &limits = context.attrs().Ints("limit_indices"),
             &strides = context.attrs().Ints("strides");
  RETURN_IF_ERROR(CheckLength(starts.size(), operand.rank(), "start_indices"));
  RETURN_IF_ERROR(CheckLength(limits.size(), operand.rank(), "limit_indices"));
  if (!strides.empty()) RETURN_IF_ERROR(CheckLength(strides.size(), operand.rank(), "strides"));
  TensorType result{.dtype = operand.dtype};
  for (size_t i = 0; i < starts.size(); ++i) {
    const int64_t stride = At(strides, i, 1);
    if (stride < 1) {
      return Refuse(Refusal::kAttributeInvalid, absl::StrCat("the stride of axis ", i, " is not positive: ", stride));
    }
    if (starts[i] < 0 || limits[i] < starts[i]) {
      return Refuse(Refusal::kShapeMismatch,
                    absl::StrCat("the slice of axis ", i, " is no range: start ", starts[i], ", limit ", limits[i]));
    }
    RETURN_IF_ERROR(context.RequireAtMost(limits[i], operand.shape[i],
                                          absl::StrCat("the slice's limit is past the end of axis ", i)));
    const int64_t length = limits[i] - starts[i];
    result.shape.push_back(Dim(length / stride + (length % stride != 0 ? 1 : 0)));
  }
  return ResultTypes{std::move(result)};
}

absl::Status ReferenceSlice(const ReferenceCall& call) {
  const Literal& in = *call.operands[0];
  const auto &starts = call.attrs.Ints("start_indices"), &strides = call.attrs.Ints("strides");
  const Shape in_strides = ColumnMajorStrides(in.shape());
  for (IndexWalk i(call.results[0].shape()); !i.done(); i.Next()) {
    int64_t at = 0;
    for (size_t k = 0; k < starts.size(); ++k) at += (starts[k] + i[k] * At(strides, k, 1)) * in_strides[k];
    CopyElement(in, at, &call.results[0], i.linear());
  }
  return absl::OkStatus();
}

PermutedCall PermuteSlice(const PermuteContext& context) {
  const AxisOrder& order = context.orders[0];
  PermutedCall call{.attrs = context.attrs, .operand_orders = {order}, .result_order = order};
  for (absl::string_view name : {"start_indices", "limit_indices", "strides"}) {
    call.attrs.Set(name, ToStored(context.attrs.Ints(name), order));
  }
  return call;
}

absl::StatusOr<ResultTypes> InferPad(InferContext& context) {
  const TensorType &operand = context.operand(0), &value = context.operand(1);
  const auto &low = context.attrs().Ints("edge_padding_low"), &high = context.attrs().Ints("edge_padding_high"),
             &interior = context.attrs().Ints("interior_padding");
  RETURN_IF_ERROR(CheckSameDType(operand, value, "operand and padding_value"));
  if (value.rank() != 0) {
    return Refuse(Refusal::kRankMismatch, absl::StrCat("padding_value must have rank 0, and is ", ToString(value)));
  }
  RETURN_IF_ERROR(CheckLength(low.size(), operand.rank(), "edge_padding_low"));
  RETURN_IF_ERROR(CheckLength(high.size(), operand.rank(), "edge_padding_high"));
  if (!interior.empty()) RETURN_IF_ERROR(CheckLength(interior.size(), operand.rank(), "interior_padding"));
  TensorType result{.dtype = operand.dtype};
  for (size_t i = 0; i < low.size(); ++i) {
    const int64_t between = At(interior, i, 0);
    if (between < 0) {
      return Refuse(Refusal::kAttributeInvalid,
                    absl::StrCat("the interior padding of axis ", i, " is negative: ", between));
    }
    const std::optional<int64_t> edges = CheckedAdd(low[i], high[i]);
    const std::optional<int64_t> step = CheckedAdd(between, 1);
    if (!edges.has_value() || !step.has_value()) {
      return Refuse(Refusal::kShapeOverflow, absl::StrCat("the padding of axis ", i, " overflows 64 bits"));
    }
    // (n - 1) * step + 1 elements for n > 0, none for n = 0: n*step - min(n, 1)*between.
    const DimExpr& size = operand.shape[i].size;
    ASSIGN_OR_RETURN(DimExpr padded, DimExpr::Multiply(size, DimExpr(*step)));
    ASSIGN_OR_RETURN(const DimExpr some, DimExpr::Minimum(size, DimExpr(1)));
    ASSIGN_OR_RETURN(const DimExpr missing, DimExpr::Multiply(some, DimExpr(between)));
    ASSIGN_OR_RETURN(padded, DimExpr::Subtract(padded, missing));
    ASSIGN_OR_RETURN(padded, DimExpr::Add(padded, DimExpr(*edges)));
    if (padded.is_constant() && padded.constant() < 0) {
      return Refuse(Refusal::kShapeMismatch,
                    absl::StrCat("negative padding takes more from axis ", i, " than it has: size ",
                                 ToString(operand.shape[i]), ", low ", low[i], ", high ", high[i]));
    }
    result.shape.push_back(Dim(std::move(padded)));
  }
  return ResultTypes{std::move(result)};
}

absl::Status ReferencePad(const ReferenceCall& call) {
  const Literal &in = *call.operands[0], &value = *call.operands[1];
  const auto &low = call.attrs.Ints("edge_padding_low"), &interior = call.attrs.Ints("interior_padding");
  const Shape in_strides = ColumnMajorStrides(in.shape());
  for (IndexWalk i(call.results[0].shape()); !i.done(); i.Next()) {
    int64_t at = 0;
    bool inside = true;
    for (size_t k = 0; k < low.size(); ++k) {
      const int64_t offset = i[k] - low[k], step = At(interior, k, 0) + 1;
      inside = inside && offset >= 0 && offset % step == 0 && offset / step < in.shape()[k];
      at += offset / step * in_strides[k];
    }
    CopyElement(inside ? in : value, inside ? at : 0, &call.results[0], i.linear());
  }
  return absl::OkStatus();
}

PermutedCall PermutePad(const PermuteContext& context) {
  const AxisOrder& order = context.orders[0];
  PermutedCall call{.attrs = context.attrs, .operand_orders = {order, {}}, .result_order = order};
  for (absl::string_view name : {"edge_padding_low", "edge_padding_high", "interior_padding"}) {
    call.attrs.Set(name, ToStored(context.attrs.Ints(name), order));
  }
  return call;
}

absl::StatusOr<ResultTypes> InferConcatenate(InferContext& context) {
  const TensorType& first = context.operand(0);
  const int64_t dimension = context.attrs().Int("dimension");
  RETURN_IF_ERROR(CheckAxis(dimension, first.rank(), "dimension"));
  TensorType result = first;
  const size_t joined = static_cast<size_t>(dimension);
  for (size_t k = 1; k < context.num_operands(); ++k) {
    RETURN_IF_ERROR(CheckStopped());  // there may be 2,000,000
    const TensorType& operand = context.operand(k);
    RETURN_IF_ERROR(CheckSameDType(first, operand, absl::StrCat("operands 0 and ", k)));
    if (operand.rank() != first.rank()) {
      return Refuse(Refusal::kRankMismatch, absl::StrCat("operands 0 and ", k, " must have one rank, and are ",
                                                         ToString(first), " and ", ToString(operand)));
    }
    for (size_t i = 0; i < operand.shape.size(); ++i) {
      if (i == joined) continue;
      RETURN_IF_ERROR(context.RequireEqual(first.shape[i], operand.shape[i],
                                           absl::StrCat("sizes of axis ", i, " of operands 0 and ", k, " differ")));
    }
    absl::StatusOr<DimExpr> sum = DimExpr::Add(result.shape[joined].size, operand.shape[joined].size);
    if (!sum.ok()) {
      const bool is_number = result.shape[joined].size.is_constant() && operand.shape[joined].size.is_constant();
      return is_number ? Refuse(Refusal::kShapeOverflow, "the joined axis overflows 64 bits") : sum.status();
    }
    result.shape[joined].size = *std::move(sum);
  }
  return ResultTypes{std::move(result)};
}

absl::Status ReferenceConcatenate(const ReferenceCall& call) {
  const size_t joined = static_cast<size_t>(call.attrs.Int("dimension"));
  Literal& out = call.results[0];
  const Shape strides = ColumnMajorStrides(out.shape());
  int64_t offset = 0;
  for (const Literal* operand : call.operands) {
    for (IndexWalk i(operand->shape()); !i.done(); i.Next()) {
      int64_t at = offset * strides[joined];
      for (size_t k = 0; k < strides.size(); ++k) at += i[k] * strides[k];
      CopyElement(*operand, i.linear(), &out, at);
    }
    offset += operand->shape()[joined];
  }
  return absl::OkStatus();
}

PermutedCall PermuteConcatenate(const PermuteContext& context) {
  const AxisOrder& order = context.orders[0];
  PermutedCall call{.attrs = context.attrs, .result_order = order};
  call.operand_orders.assign(context.operands.size(), order);
  call.attrs.Set("dimension", order[static_cast<size_t>(context.attrs.Int("dimension"))]);
  return call;
}

absl::StatusOr<ResultTypes> InferReverse(InferContext& context) {
  RETURN_IF_ERROR(CheckAxes(context.attrs().Ints("dimensions"), context.operand(0).rank(), "dimensions"));
  return ResultTypes{context.operand(0)};
}

absl::Status ReferenceReverse(const ReferenceCall& call) {
  const Literal& in = *call.operands[0];
  const auto& dimensions = call.attrs.Ints("dimensions");
  const Shape strides = ColumnMajorStrides(in.shape());
  for (IndexWalk i(in.shape()); !i.done(); i.Next()) {
    int64_t at = i.linear();
    for (int64_t d : dimensions) {
      const size_t k = static_cast<size_t>(d);
      at += (in.shape()[k] - 1 - 2 * i[k]) * strides[k];
    }
    CopyElement(in, at, &call.results[0], i.linear());
  }
  return absl::OkStatus();
}

PermutedCall PermuteReverse(const PermuteContext& context) {
  const AxisOrder& order = context.orders[0];
  PermutedCall call{.attrs = context.attrs, .operand_orders = {order}, .result_order = order};
  call.attrs.Set("dimensions", MapAxes(context.attrs.Ints("dimensions"), order));
  return call;
}

}  // namespace tensord
