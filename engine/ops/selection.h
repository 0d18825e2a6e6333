#ifndef TENSORD_ENGINE_OPS_SELECTION_H_
#define TENSORD_ENGINE_OPS_SELECTION_H_

#include "engine/ops/core_ops.h"
#include "engine/ops/derivatives/rules.h"
#include "engine/ops/elementwise.h"

namespace tensord {

// Elementwise ops that are more than a functor: Compare, Select, Clamp, Convert.

absl::StatusOr<ResultTypes> InferCompare(InferContext& context);
absl::Status ReferenceCompare(const ReferenceCall& call);
absl::StatusOr<ResultTypes> InferSelect(InferContext& context);
absl::Status ReferenceSelect(const ReferenceCall& call);
absl::StatusOr<ResultTypes> InferClamp(InferContext& context);
absl::Status ReferenceClamp(const ReferenceCall& call);
absl::StatusOr<ResultTypes> InferConvert(InferContext& context);
absl::Status ReferenceConvert(const ReferenceCall& call);

// Calls visitor(functor) with the functor of a direction, which must not be kUnspecified.
template <typename Visitor>
decltype(auto) VisitDirection(CompareDirection direction, Visitor&& visitor) {
  switch (direction) {
    case CompareDirection::kEq:
      return visitor(scalar::Equal{});
    case CompareDirection::kNe:
      return visitor(scalar::NotEqual{});
    case CompareDirection::kLt:
      return visitor(scalar::Less{});
    case CompareDirection::kLe:
      return visitor(scalar::LessEqual{});
    case CompareDirection::kGt:
      return visitor(scalar::Greater{});
    case CompareDirection::kGe:
    case CompareDirection::kUnspecified:
      break;
  }
  return visitor(scalar::GreaterEqual{});
}

inline constexpr absl::string_view kDirections[] = {"unspecified", "eq", "ne", "lt", "le", "gt", "ge"};
inline constexpr AttrDef kCompareAttrs[] = {{.name = "direction", .kind = AttrKind::kEnum, .enumerators = kDirections}};
inline constexpr AttrDef kConvertAttrs[] = {{.name = "dtype", .kind = AttrKind::kDType}};
inline constexpr RefusalRule kCompareRefusals[] = {{Refusal::kDtypeMismatch, "lhs and rhs have two dtypes"},
                                                   {Refusal::kDtypeUnsupported, "complex numbers are ordered"},
                                                   {Refusal::kRankMismatch, "lhs and rhs have two ranks"},
                                                   {Refusal::kShapeMismatch, "sizes of lhs and rhs differ"}};
inline constexpr RefusalRule kSelectRefusals[] = {
    {Refusal::kDtypeUnsupported, "pred is not BOOL"},
    {Refusal::kDtypeMismatch, "on_true and on_false have two dtypes"},
    {Refusal::kRankMismatch, "on_true and on_false have two ranks"},
    {Refusal::kShapeMismatch, "sizes of on_true and on_false differ"},
    {Refusal::kRankMismatch, "pred has neither rank 0 nor that of on_true"},
    {Refusal::kShapeMismatch, "sizes of pred and on_true differ"}};
inline constexpr RefusalRule kClampRefusals[] = {
    {Refusal::kDtypeMismatch, "a bound has another dtype than the operand"},
    {Refusal::kRankMismatch, "a bound has neither rank 0 nor that of the operand"},
    {Refusal::kShapeMismatch, "sizes of a bound and the operand differ"}};

inline constexpr OpDef kCompareDef = {
    .family = "core",
    .index = static_cast<uint16_t>(CoreOp::kCompare),
    .name = "compare",
    .summary = "BOOL result. BOOL orders false before true; complex has EQ and NE only.",
    .op_class = OpClass::kPlain,
    .min_operands = 2,
    .max_operands = 2,
    .attrs = kCompareAttrs,
    .traits = kElementwise,
    .dtypes = kAnyDType,
    .infer = &InferCompare,
    .refusals = kCompareRefusals,
    .reference = &ReferenceCompare,
    .permute = &PermuteElementwise,
    .jvp = Facet<JvpRule>::None(kNothingFlows),
    .linear_transpose = Facet<TransposeRule>::None(kNotLinear)};

inline constexpr OpDef kSelectDef = {
    .family = "core",
    .index = static_cast<uint16_t>(CoreOp::kSelect),
    .name = "select",
    .summary = "(pred, on_true, on_false); pred is BOOL, of the result's shape or rank 0.",
    .op_class = OpClass::kPlain,
    .min_operands = 3,
    .max_operands = 3,
    .attrs = {},
    .traits = kElementwise,
    .dtypes = kAnyDType,
    .infer = &InferSelect,
    .refusals = kSelectRefusals,
    .reference = &ReferenceSelect,
    .permute = &PermuteElementwise,
    .jvp = &JvpSelect,
    .linear_transpose = &TransposeSelect};

inline constexpr OpDef kClampDef = {
    .family = "core",
    .index = static_cast<uint16_t>(CoreOp::kClamp),
    .name = "clamp",
    .summary = "(min, x, max): minimum(maximum(x, min), max); bounds have x's shape or rank 0.",
    .op_class = OpClass::kPlain,
    .min_operands = 3,
    .max_operands = 3,
    .attrs = {},
    .traits = kElementwise,
    .dtypes = kAnyDType,
    .infer = &InferClamp,
    .refusals = kClampRefusals,
    .reference = &ReferenceClamp,
    .permute = &PermuteElementwise,
    .jvp = &JvpClamp,
    .linear_transpose = Facet<TransposeRule>::None(kNotLinear)};

inline constexpr OpDef kConvertDef = {.family = "core",
                                      .index = static_cast<uint16_t>(CoreOp::kConvert),
                                      .name = "convert",
                                      .summary =
                                          "Cast. Float to integer truncates and saturates, NaN gives 0; a wider "
                                          "integer wraps; complex takes the real part.",
                                      .op_class = OpClass::kPlain,
                                      .min_operands = 1,
                                      .max_operands = 1,
                                      .attrs = kConvertAttrs,
                                      .traits = kElementwise,
                                      .dtypes = kAnyDType,
                                      .infer = &InferConvert,
                                      .refusals = RefusalTable::None("every dtype converts to every other"),
                                      .reference = &ReferenceConvert,
                                      .permute = &PermuteElementwise,
                                      .jvp = &JvpLinear,
                                      .linear_transpose = &TransposeConvert};

}  // namespace tensord

#endif  // TENSORD_ENGINE_OPS_SELECTION_H_
