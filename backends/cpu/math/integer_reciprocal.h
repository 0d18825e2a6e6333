#ifndef TENSORD_BACKENDS_CPU_MATH_INTEGER_RECIPROCAL_H_
#define TENSORD_BACKENDS_CPU_MATH_INTEGER_RECIPROCAL_H_

#include <bit>
#include <cstdint>
#include <type_traits>

namespace tensord::cpu {

// The multiplier and the shift that divide: the upper half of |x| times the multiplier, shifted right, is |x| /
// |divisor| rounded down for every x, after Granlund and Montgomery. The divisor is neither 0 nor 1 nor -1.
template <typename T>
struct IntegerReciprocal {
  using Unsigned = std::make_unsigned_t<T>;

  explicit IntegerReciprocal(T divisor) {
    using Product = std::conditional_t<sizeof(T) == 4, uint64_t, unsigned __int128>;
    constexpr int kBits = 8 * static_cast<int>(sizeof(T));
    const Unsigned size = divisor < 0 ? Unsigned{0} - static_cast<Unsigned>(divisor) : static_cast<Unsigned>(divisor);
    shift = kBits - 1 - std::countl_zero(static_cast<Unsigned>(size - 1));
    factor = static_cast<Unsigned>((Product{1} << (kBits + shift)) / size + 1);
  }

  static bool Has(int64_t divisor) { return divisor < -1 || divisor > 1; }

  int shift = 0;
  Unsigned factor = 0;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_MATH_INTEGER_RECIPROCAL_H_
