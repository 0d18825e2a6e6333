#include "engine/ops/selection.h"

#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/ops/axis_checks.h"

namespace tensord {
namespace {

// Index of an operand that has the result's shape or rank 0.
size_t BroadcastIndex(const Literal& operand, size_t i) { return operand.shape().empty() ? 0 : i; }

}  // namespace

absl::StatusOr<ResultTypes> InferCompare(InferContext& context) {
  const TensorType& lhs = context.operand(0);
  RETURN_IF_ERROR(CheckSameDType(lhs, context.operand(1), "lhs and rhs"));
  const auto direction = static_cast<CompareDirection>(context.attrs().Int("direction"));
  const bool equality = direction == CompareDirection::kEq || direction == CompareDirection::kNe;
  if (!equality && kComplexes.Contains(lhs.dtype)) {
    return Refuse(Refusal::kDtypeUnsupported, "complex numbers have no order; compare with EQ or NE, or their parts");
  }
  RETURN_IF_ERROR(context.RequireSameShape(lhs, context.operand(1), "lhs and rhs"));
  return ResultTypes{{.dtype = DType::kBool, .shape = lhs.shape}};
}

absl::Status ReferenceCompare(const ReferenceCall& call) {
  const auto direction = static_cast<CompareDirection>(call.attrs.Int("direction"));
  VisitDType(call.operands[0]->dtype(), [&]<typename T>(TypeTag<T>) {
    VisitDirection(direction, [&]<typename F>(F functor) {
      if constexpr (scalar::Takes<F, T, T>) {
        const auto a = call.operands[0]->values<T>(), b = call.operands[1]->values<T>();
        const auto out = call.results[0].mutable_values<Bool>();
        for (size_t i = 0; i < out.size(); ++i) out[i] = scalar::Apply(functor, a[i], b[i]);
      }
    });
  });
  return absl::OkStatus();
}

absl::StatusOr<ResultTypes> InferSelect(InferContext& context) {
  const TensorType &pred = context.operand(0), &on_true = context.operand(1), &on_false = context.operand(2);
  RETURN_IF_ERROR(CheckDType(pred.dtype, kBoolOnly, "pred"));
  RETURN_IF_ERROR(CheckSameDType(on_true, on_false, "on_true and on_false"));
  RETURN_IF_ERROR(context.RequireSameShape(on_true, on_false, "on_true and on_false"));
  if (pred.rank() != 0) RETURN_IF_ERROR(context.RequireSameShape(pred, on_true, "pred and on_true"));
  return ResultTypes{on_true};
}

absl::Status ReferenceSelect(const ReferenceCall& call) {
  const auto pred = call.operands[0]->values<Bool>();
  VisitDType(call.results[0].dtype(), [&]<typename T>(TypeTag<T>) {
    const auto a = call.operands[1]->values<T>(), b = call.operands[2]->values<T>();
    const auto out = call.results[0].mutable_values<T>();
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = static_cast<bool>(pred[BroadcastIndex(*call.operands[0], i)]) ? a[i] : b[i];
    }
  });
  return absl::OkStatus();
}

absl::StatusOr<ResultTypes> InferClamp(InferContext& context) {
  const TensorType &low = context.operand(0), &x = context.operand(1), &high = context.operand(2);
  RETURN_IF_ERROR(CheckSameDType(low, x, "min and operand"));
  RETURN_IF_ERROR(CheckSameDType(high, x, "max and operand"));
  if (low.rank() != 0) RETURN_IF_ERROR(context.RequireSameShape(low, x, "min and operand"));
  if (high.rank() != 0) RETURN_IF_ERROR(context.RequireSameShape(high, x, "max and operand"));
  return ResultTypes{x};
}

absl::Status ReferenceClamp(const ReferenceCall& call) {
  VisitDType(call.results[0].dtype(), [&]<typename T>(TypeTag<T>) {
    const auto low = call.operands[0]->values<T>(), x = call.operands[1]->values<T>(),
               high = call.operands[2]->values<T>();
    const auto out = call.results[0].mutable_values<T>();
    for (size_t i = 0; i < out.size(); ++i) {
      const T raised = scalar::Apply(scalar::Maximum{}, x[i], low[BroadcastIndex(*call.operands[0], i)]);
      out[i] = scalar::Apply(scalar::Minimum{}, raised, high[BroadcastIndex(*call.operands[2], i)]);
    }
  });
  return absl::OkStatus();
}

absl::StatusOr<ResultTypes> InferConvert(InferContext& context) {
  return ResultTypes{{.dtype = context.attrs().GetDType("dtype"), .shape = context.operand(0).shape}};
}

absl::Status ReferenceConvert(const ReferenceCall& call) {
  VisitDType(call.operands[0]->dtype(), [&]<typename From>(TypeTag<From>) {
    VisitDType(call.results[0].dtype(), [&]<typename To>(TypeTag<To>) {
      const auto x = call.operands[0]->values<From>();
      const auto out = call.results[0].mutable_values<To>();
      for (size_t i = 0; i < out.size(); ++i) out[i] = scalar::ConvertElement<To>(x[i]);
    });
  });
  return absl::OkStatus();
}

}  // namespace tensord
