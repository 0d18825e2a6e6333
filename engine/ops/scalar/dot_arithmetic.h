#ifndef TENSORD_ENGINE_OPS_SCALAR_DOT_ARITHMETIC_H_
#define TENSORD_ENGINE_OPS_SCALAR_DOT_ARITHMETIC_H_

#include <complex>

#include "engine/ops/scalar/scalar_math.h"

namespace tensord {

// The sums of products of the reference rules: in the widest dtype of the result's kind.

template <typename T>
struct DotAccumulator {
  using type = T;
};
template <>
struct DotAccumulator<float> {
  using type = double;
};
template <>
struct DotAccumulator<Complex64> {
  using type = Complex128;
};
template <HalfElement T>
struct DotAccumulator<T> {
  using type = double;
};

// Returns an element of an operand as a factor.
template <typename Accumulator, typename T>
Accumulator DotFactor(T x, bool conjugates) {
  const Accumulator factor = scalar::ConvertElement<Accumulator>(x);
  if constexpr (ComplexElement<Accumulator>) return conjugates ? std::conj(factor) : factor;
  return factor;
}

template <typename Accumulator>
Accumulator AddProduct(Accumulator sum, Accumulator a, Accumulator b) {
  return scalar::Apply(scalar::Add{}, sum, scalar::Apply(scalar::Multiply{}, a, b));
}

template <typename To, typename From>
To RoundedSum(From x) {
  if constexpr (HalfElement<To>) {
    return To(x);
  } else {
    return scalar::ConvertElement<To>(x);
  }
}

}  // namespace tensord

#endif  // TENSORD_ENGINE_OPS_SCALAR_DOT_ARITHMETIC_H_
