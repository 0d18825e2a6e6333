#include "engine/ops/triangle.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/ops/axis_checks.h"
#include "engine/ops/axis_order.h"
#include "engine/ops/element_copy.h"
#include "engine/ops/index_walk.h"

namespace tensord {
namespace {

template <typename Keeps>
absl::Status KeepWhere(const ReferenceCall& call, const Keeps& keeps) {
  const Literal& in = *call.operands[0];
  const auto [row, column] = MatrixAxes(call.attrs);
  for (IndexWalk i(in.shape()); !i.done(); i.Next()) {
    const int64_t offset = i[static_cast<size_t>(column)] - i[static_cast<size_t>(row)];
    if (keeps(offset, call.attrs.Int("diagonal"))) CopyElement(in, i.linear(), &call.results[0], i.linear());
  }
  return absl::OkStatus();
}

}  // namespace

std::pair<int64_t, int64_t> MatrixAxes(const Attributes& attrs) {
  const std::vector<int64_t>& axes = attrs.Ints("matrix_axes");
  return axes.empty() ? std::pair<int64_t, int64_t>(0, 1) : std::pair(axes[0], axes[1]);
}

absl::StatusOr<ResultTypes> InferTriangle(InferContext& context) {
  const TensorType& operand = context.operand(0);
  if (operand.rank() < 2) {
    return Refuse(
        Refusal::kRankMismatch,
        absl::StrCat("a triangle needs matrices, of rank 2 at least, and the operand is ", ToString(operand)));
  }
  const std::vector<int64_t>& axes = context.attrs().Ints("matrix_axes");
  if (!axes.empty()) RETURN_IF_ERROR(CheckEngineAxes(axes, 2, operand.rank(), "matrix_axes"));
  return ResultTypes{operand};
}

absl::Status ReferenceTril(const ReferenceCall& call) {
  return KeepWhere(call, [](int64_t offset, int64_t diagonal) { return offset <= diagonal; });
}

absl::Status ReferenceTriu(const ReferenceCall& call) {
  return KeepWhere(call, [](int64_t offset, int64_t diagonal) { return offset >= diagonal; });
}

PermutedCall PermuteTriangle(const PermuteContext& context) {
  const AxisOrder& order = context.orders[0];
  PermutedCall call{.attrs = context.attrs, .operand_orders = {order}, .result_order = order};
  const auto [row, column] = MatrixAxes(context.attrs);
  std::vector<int64_t> axes = MapAxes({row, column}, order);
  if (IsIdentity(axes)) axes.clear();
  call.attrs.Set("matrix_axes", std::move(axes));
  return call;
}

}  // namespace tensord
