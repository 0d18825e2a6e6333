#include "engine/ops/dynamic_truncate.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/ops/axis_checks.h"
#include "engine/ops/axis_order.h"
#include "engine/ops/index_walk.h"

namespace tensord {

int64_t TruncatedSize(const void* size, DType dtype, int64_t extent) {
  int64_t wanted = 0;
  if (dtype == DType::kI32) {
    int32_t narrow;
    std::memcpy(&narrow, size, sizeof(narrow));
    wanted = narrow;
  } else {
    std::memcpy(&wanted, size, sizeof(wanted));
  }
  return std::clamp<int64_t>(wanted, 0, extent);
}

absl::StatusOr<ResultTypes> InferDynamicTruncate(InferContext& context) {
  const TensorType &operand = context.operand(0), &size = context.operand(1);
  RETURN_IF_ERROR(CheckDType(size.dtype, kIntegers, "size"));
  if (size.rank() != 0) {
    return Refuse(Refusal::kRankMismatch, absl::StrCat("size must be a scalar, of rank 0, and is ", ToString(size)));
  }
  const int64_t dimension = context.attrs().Int("dimension");
  RETURN_IF_ERROR(CheckAxis(dimension, operand.rank(), "dimension"));
  TensorType result = operand;
  Dim& truncated = result.shape[static_cast<size_t>(dimension)];
  truncated = context.RunTimeSize(truncated);
  return ResultTypes{std::move(result)};
}

absl::Status ReferenceDynamicTruncate(const ReferenceCall& call) {
  const Literal& in = *call.operands[0];
  Literal& out = call.results[0];
  const Shape strides = ColumnMajorStrides(in.shape());
  const int64_t element = SizeOf(in.dtype());
  for (IndexWalk i(out.shape()); !i.done(); i.Next()) {
    int64_t at = 0;
    for (size_t k = 0; k < strides.size(); ++k) at += i[k] * strides[k];
    std::memcpy(out.mutable_data() + i.linear() * element, in.bytes().data() + at * element,
                static_cast<size_t>(element));
  }
  return absl::OkStatus();
}

PermutedCall PermuteDynamicTruncate(const PermuteContext& context) {
  const AxisOrder& order = context.orders[0];
  PermutedCall call{.attrs = context.attrs, .operand_orders = {order, {}}, .result_order = order};
  call.attrs.Set("dimension", order[static_cast<size_t>(context.attrs.Int("dimension"))]);
  return call;
}

}  // namespace tensord
