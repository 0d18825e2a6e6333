#ifndef TENSORD_TESTS_UNIT_BACKENDS_CPU_SAMPLE_VALUES_H_
#define TENSORD_TESTS_UNIT_BACKENDS_CPU_SAMPLE_VALUES_H_

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/literal.h"

namespace tensord::cpu {

// Elements of any dtype for tests of elementwise kernels: the edges of the type among ordinary numbers.

template <Element T>
T SampleValue(std::mt19937_64& random) {
  const uint64_t draw = random();
  if constexpr (std::is_same_v<T, Bool>) {
    return Bool(draw % 2 == 0);
  } else if constexpr (IntegerElement<T>) {
    using L = std::numeric_limits<T>;
    constexpr T kEdges[] = {0, 1, -1, 2, -2, 31, L::max(), L::min(), static_cast<T>(L::max() - 1), T{1} << 24};
    if (draw % 4 == 0) return kEdges[draw / 4 % std::size(kEdges)];
    if (draw % 4 == 1) return static_cast<T>(draw >> 3);
    return static_cast<T>(static_cast<int64_t>(draw / 4 % 201) - 100);
  } else if constexpr (HalfElement<T>) {
    if (draw % 2 == 0) return T::FromBits(static_cast<uint16_t>(draw >> 8));
    return T(static_cast<float>(static_cast<int64_t>(draw / 2 % 2001) - 1000) * 0.0078125f);
  } else if constexpr (RealElement<T>) {
    using L = std::numeric_limits<T>;
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    constexpr T kEdges[] = {T(0),
                            -T(0),
                            1,
                            -1,
                            T(0.5),
                            T(-1.5),
                            T(2.5),
                            L::infinity(),
                            -L::infinity(),
                            L::quiet_NaN(),
                            L::max(),
                            L::min(),
                            L::denorm_min(),
                            T(2147483648.0),
                            T(-2147483649.0),
                            T(0x1p63),
                            T(-0x1p63)};
    if (draw % 4 == 0) return kEdges[draw / 4 % std::size(kEdges)];
    if (draw % 4 == 1) return std::bit_cast<T>(static_cast<Bits>(draw >> 2));
    return static_cast<T>(std::uniform_real_distribution<double>(-20, 20)(random));
  } else {
    using R = typename T::value_type;
    return T(SampleValue<R>(random), SampleValue<R>(random));
  }
}

template <Element T>
std::vector<T> SampleValues(int64_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<T> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(SampleValue<T>(random));
  return values;
}

// Tells whether two elements agree within `ulp` steps of their type; with 0 steps to the bit, except that any NaN
// equals any NaN.
template <Element T>
bool Agree(T a, T b, int64_t ulp) {
  if constexpr (std::is_same_v<T, Bool>) {
    return a.value == b.value;
  } else if constexpr (IntegerElement<T>) {
    return a == b;
  } else if constexpr (ComplexElement<T>) {
    return Agree(a.real(), b.real(), ulp) && Agree(a.imag(), b.imag(), ulp);
  } else {
    const auto value = [](T x) {
      return static_cast<double>(static_cast<std::conditional_t<HalfElement<T>, float, T>>(x));
    };
    if (std::isnan(value(a)) || std::isnan(value(b))) return std::isnan(value(a)) && std::isnan(value(b));
    using Bits = std::conditional_t<sizeof(T) == 2, int16_t, std::conditional_t<sizeof(T) == 4, int32_t, int64_t>>;
    const Bits x = std::bit_cast<Bits>(a), y = std::bit_cast<Bits>(b);
    if (x == y) return true;
    if ((x < 0) != (y < 0)) return false;
    const int64_t distance = static_cast<int64_t>(x) - static_cast<int64_t>(y);
    return std::abs(distance) <= ulp;
  }
}

template <Element T>
std::string Show(T x) {
  if constexpr (std::is_same_v<T, Bool>) {
    return x.value != 0 ? "true" : "false";
  } else if constexpr (ComplexElement<T>) {
    return absl::StrCat("(", Show(x.real()), ", ", Show(x.imag()), ")");
  } else if constexpr (HalfElement<T>) {
    return Show(static_cast<float>(x));
  } else if constexpr (RealElement<T>) {
    return absl::StrFormat("%.17g", static_cast<double>(x));
  } else {
    return absl::StrCat(x);
  }
}

inline Literal Sample(ConcreteType type, uint64_t seed) {
  Literal literal = *Literal::Create(type);
  VisitDType(type.dtype, [&]<typename T>(TypeTag<T>) {
    const std::vector<T> values = SampleValues<T>(type.num_elements(), seed);
    if (!values.empty()) std::memcpy(literal.mutable_data(), values.data(), values.size() * sizeof(T));
  });
  return literal;
}

}  // namespace tensord::cpu

#endif  // TENSORD_TESTS_UNIT_BACKENDS_CPU_SAMPLE_VALUES_H_
