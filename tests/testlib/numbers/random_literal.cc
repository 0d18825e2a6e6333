#include "tests/testlib/numbers/random_literal.h"

#include <cmath>
#include <limits>

namespace tensord {
namespace {

// std::uniform_real_distribution takes a logarithm in 80 bits for each number.
double Uniform(double least, double most, std::mt19937_64* random) {
  return least + (most - least) * (static_cast<double>((*random)() >> 11) * 0x1p-53);
}

double RandomReal(Values values, std::mt19937_64* random) {
  if (values == Values::kIntegers) return static_cast<double>(static_cast<int64_t>((*random)() % 7) - 3);
  if (values == Values::kNearOne) {
    return Uniform(0.98, 1.02, random) * ((*random)() % 2 == 0 ? 1 : -1);
  }
  return Uniform(-4, 4, random);
}

template <typename T>
T RandomFloat(Values values, std::mt19937_64* random) {
  using L = std::numeric_limits<T>;
  const T edges[] = {
      L::quiet_NaN(), L::infinity(), -L::infinity(), T(0),         -T(0),   L::denorm_min(), -L::denorm_min(),
      L::max(),       L::lowest(),   L::min(),       L::epsilon(), T(1),    T(-1),           T(0.5),
      T(2.5),         T(-2.5),       T(1e5),         T(-1e5),      T(88.8), T(-104)};
  if (values == Values::kEdges && (*random)() % 2 == 0) return edges[(*random)() % std::size(edges)];
  return static_cast<T>(RandomReal(values, random));
}

template <typename T>
T RandomElement(Values values, std::mt19937_64* random) {
  if constexpr (std::is_same_v<T, Bool>) {
    return Bool((*random)() % 2 == 0);
  } else if constexpr (IntegerElement<T>) {
    using L = std::numeric_limits<T>;
    const T edges[] = {L::max(), L::min(), 0, 1, -1, 2, -2, L::max() - 1};
    if (values == Values::kEdges && (*random)() % 2 == 0) return edges[(*random)() % std::size(edges)];
    return static_cast<T>(RandomReal(values, random) * (values == Values::kIntegers ? 1 : 25));
  } else if constexpr (HalfElement<T>) {
    if (values == Values::kEdges) return T::FromBits(static_cast<uint16_t>((*random)()));
    return T(RandomReal(values, random));
  } else if constexpr (ComplexElement<T>) {
    using R = typename T::value_type;
    if (values == Values::kNearOne)
      return T(
          std::polar<R>(static_cast<R>(std::abs(RandomReal(values, random))), static_cast<R>(Uniform(0, 6, random))));
    return T(RandomFloat<R>(values, random), RandomFloat<R>(values, random));
  } else {
    return RandomFloat<T>(values, random);
  }
}

}  // namespace

Literal RandomLiteral(const ConcreteType& type, Values values, std::mt19937_64* random) {
  Literal literal = Literal::Create(type).value();
  VisitDType(type.dtype, [&]<typename T>(TypeTag<T>) {
    for (T& element : literal.mutable_values<T>()) element = RandomElement<T>(values, random);
  });
  return literal;
}

}  // namespace tensord
