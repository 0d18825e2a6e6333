#ifndef TENSORD_ENGINE_OPS_ELEMENTWISE_H_
#define TENSORD_ENGINE_OPS_ELEMENTWISE_H_

#include <type_traits>

#include "engine/ir/op_def.h"
#include "engine/ops/derivatives/elementwise_rules.h"
#include "engine/ops/scalar/scalar_math.h"

namespace tensord {

// Unary and binary ops derive from their functor of scalar_math.h: the dtypes, the type rule and the reference meaning.

template <typename F, typename T, int kArity>
constexpr bool TakesElement() {
  if constexpr (kArity == 1) {
    return scalar::Takes<F, T>;
  } else {
    return scalar::Takes<F, T, T>;
  }
}

// Returns the dtypes on which a functor of that arity is defined.
template <typename F, int kArity>
consteval DTypeSet DTypesOf() {
  DTypeSet set;
  const auto add = [&set]<typename T>(TypeTag<T>) {
    if constexpr (TakesElement<F, T, kArity>()) set = set | DTypeSet{kDTypeOf<T>};
  };
  add(TypeTag<Bool>{});
  add(TypeTag<int32_t>{});
  add(TypeTag<int64_t>{});
  add(TypeTag<float>{});
  add(TypeTag<double>{});
  add(TypeTag<Complex64>{});
  add(TypeTag<Complex128>{});
  add(TypeTag<Float16>{});
  add(TypeTag<BFloat16>{});
  return set;
}

template <typename F, typename T, int kArity>
constexpr DType ResultDTypeOf() {
  if constexpr (!TakesElement<F, T, kArity>()) {
    return DType::kInvalid;
  } else if constexpr (kArity == 1) {
    return kDTypeOf<decltype(scalar::Apply(F{}, T{}))>;
  } else {
    return kDTypeOf<decltype(scalar::Apply(F{}, T{}, T{}))>;
  }
}

// Operands of one shape and of one of the dtypes; the result's dtype comes from `result_dtype`.
absl::StatusOr<ResultTypes> InferElementwise(InferContext& context, DTypeSet dtypes, DType (*result_dtype)(DType));

template <typename F, int kArity>
DType ElementwiseResult(DType operand) {
  return VisitDType(operand, []<typename T>(TypeTag<T>) { return ResultDTypeOf<F, T, kArity>(); });
}

template <typename F, int kArity>
absl::StatusOr<ResultTypes> InferFunctor(InferContext& context) {
  return InferElementwise(context, DTypesOf<F, kArity>(), &ElementwiseResult<F, kArity>);
}

template <typename F, int kArity>
absl::Status ReferenceFunctor(const ReferenceCall& call) {
  VisitDType(call.operands[0]->dtype(), [&call]<typename T>(TypeTag<T>) {
    if constexpr (TakesElement<F, T, kArity>()) {
      const absl::Span<const T> a = call.operands[0]->values<T>();
      if constexpr (kArity == 1) {
        const auto out = call.results[0].mutable_values<decltype(scalar::Apply(F{}, T{}))>();
        for (size_t i = 0; i < out.size(); ++i) out[i] = scalar::Apply(F{}, a[i]);
      } else {
        const absl::Span<const T> b = call.operands[1]->values<T>();
        const auto out = call.results[0].mutable_values<decltype(scalar::Apply(F{}, T{}, T{}))>();
        for (size_t i = 0; i < out.size(); ++i) out[i] = scalar::Apply(F{}, a[i], b[i]);
      }
    }
  });
  return absl::OkStatus();
}

// All operands of the result's rank are read in one order, in which the result is stored too.
PermutedCall PermuteElementwise(const PermuteContext& context);

inline constexpr RefusalRule kBinaryRefusals[] = {{Refusal::kDtypeMismatch, "lhs and rhs have two dtypes"},
                                                  {Refusal::kRankMismatch, "lhs and rhs have two ranks"},
                                                  {Refusal::kShapeMismatch, "sizes of lhs and rhs differ"}};

template <typename F>
constexpr OpDef UnaryDef(uint16_t index, absl::string_view name, absl::string_view summary) {
  return {.family = "core",
          .index = index,
          .name = name,
          .summary = summary,
          .op_class = OpClass::kUnary,
          .min_operands = 1,
          .max_operands = 1,
          .attrs = {},
          .traits = kElementwise,
          .dtypes = DTypesOf<F, 1>(),
          .infer = &InferFunctor<F, 1>,
          .refusals = RefusalTable::None("a functor of one operand takes every shape"),
          .reference = &ReferenceFunctor<F, 1>,
          .permute = &PermuteElementwise,
          .jvp = ElementwiseDerivative<F>::kJvp,
          .linear_transpose = ElementwiseDerivative<F>::kTranspose};
}

template <typename F>
constexpr OpDef BinaryDef(uint16_t index, absl::string_view name, uint32_t traits, absl::string_view summary) {
  return {.family = "core",
          .index = index,
          .name = name,
          .summary = summary,
          .op_class = OpClass::kBinary,
          .min_operands = 2,
          .max_operands = 2,
          .attrs = {},
          .traits = kElementwise | traits,
          .dtypes = DTypesOf<F, 2>(),
          .infer = &InferFunctor<F, 2>,
          .refusals = kBinaryRefusals,
          .reference = &ReferenceFunctor<F, 2>,
          .permute = &PermuteElementwise,
          .jvp = ElementwiseDerivative<F>::kJvp,
          .linear_transpose = ElementwiseDerivative<F>::kTranspose};
}

}  // namespace tensord

#endif  // TENSORD_ENGINE_OPS_ELEMENTWISE_H_
