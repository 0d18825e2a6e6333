#ifndef TENSORD_ENGINE_OPS_SCALAR_SCALAR_MATH_H_
#define TENSORD_ENGINE_OPS_SCALAR_SCALAR_MATH_H_

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "engine/ops/scalar/inexact_math.h"
#include "engine/tensor/dtype.h"

// The meaning of every elementwise op on one element, one functor an op. An op takes and gives the dtypes that its
// functor takes and gives: the op table, the reference evaluator and the kernels that are not vectorised all derive
// from here. 16-bit floats are computed in float and rounded once (Apply does it), so functors need not know them. F32
// transcendentals are computed in double, which makes them right to well under one ulp.
namespace tensord::scalar {

template <typename T>
concept Real = RealElement<T>;
template <typename T>
concept Complex = ComplexElement<T>;
template <typename T>
concept Integer = IntegerElement<T>;
template <typename T>
concept Inexact = Real<T> || Complex<T>;
template <typename T>
concept Number = Integer<T> || Inexact<T>;

template <Integer T>
T Wrap(std::make_unsigned_t<T> bits) {
  return static_cast<T>(bits);
}
template <Integer T>
std::make_unsigned_t<T> Bits(T value) {
  return static_cast<std::make_unsigned_t<T>>(value);
}

// float → double, complex<float> → complex<double>: the precision that transcendentals are computed in.
inline double Wide(float x) { return x; }
inline double Wide(double x) { return x; }
inline Complex128 Wide(Complex64 z) { return Complex128(z); }
inline Complex128 Wide(Complex128 z) { return z; }

inline bool IsNan(double x) { return std::isnan(x); }
template <Complex T>
bool IsNan(T z) {
  return std::isnan(z.real()) || std::isnan(z.imag());
}

template <Complex T>
T BothNan() {
  using R = typename T::value_type;
  return T(std::numeric_limits<R>::quiet_NaN(), std::numeric_limits<R>::quiet_NaN());
}

// Returns the product as written, without the recovery of infinities of C's Annex G, like StableHLO's backends.
template <Complex T>
T Product(T a, T b) {
  return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
}

// ---- Unary ----

struct Negate {
  template <Inexact T>
  T operator()(T x) const {
    return -x;
  }
  template <Integer T>
  T operator()(T x) const {
    return Wrap<T>(0 - Bits(x));
  }
};

struct Conj {
  template <Number T>
  T operator()(T x) const {
    if constexpr (Complex<T>) {
      return std::conj(x);
    } else {
      return x;
    }
  }
};

struct Abs {
  template <Real T>
  T operator()(T x) const {
    return std::abs(x);
  }
  template <Complex T>
  typename T::value_type operator()(T z) const {
    return std::hypot(z.real(), z.imag());
  }
  template <Integer T>
  T operator()(T x) const {
    return x < 0 ? Wrap<T>(0 - Bits(x)) : x;
  }
};

struct Sign {
  template <Real T>
  T operator()(T x) const {
    return x > 0 ? T(1) : x < 0 ? T(-1) : x;  // keeps ±0 and NaN
  }
  template <Complex T>
  T operator()(T z) const {
    if (IsNan(z)) return BothNan<T>();
    return T(SignOf(Wide(z)));
  }
  template <Integer T>
  T operator()(T x) const {
    return (x > 0) - (x < 0);
  }
};

// Defines a functor over real and complex elements that computes EXPR of `x` (a double or a Complex128).
#define TENSORD_SCALAR_INEXACT(Name, expr) \
  struct Name {                            \
    template <Inexact T>                   \
    T operator()(T element) const {        \
      const auto x = Wide(element);        \
      return static_cast<T>(expr);         \
    }                                      \
  };

TENSORD_SCALAR_INEXACT(Exp, ExpOf(x))
TENSORD_SCALAR_INEXACT(Log, std::log(x))
TENSORD_SCALAR_INEXACT(Sin, std::sin(x))
TENSORD_SCALAR_INEXACT(Cos, std::cos(x))
TENSORD_SCALAR_INEXACT(Tan, std::tan(x))
TENSORD_SCALAR_INEXACT(Tanh, std::tanh(x))
TENSORD_SCALAR_INEXACT(Sqrt, std::sqrt(x))
TENSORD_SCALAR_INEXACT(Rsqrt, RsqrtOf(x))
TENSORD_SCALAR_INEXACT(Expm1, Expm1Of(x))
TENSORD_SCALAR_INEXACT(Log1p, Log1pOf(x))
TENSORD_SCALAR_INEXACT(Logistic, LogisticOf(x))
TENSORD_SCALAR_INEXACT(Cbrt, CbrtOf(x))
TENSORD_SCALAR_INEXACT(Sinh, std::sinh(x))
TENSORD_SCALAR_INEXACT(Cosh, std::cosh(x))
TENSORD_SCALAR_INEXACT(Asin, std::asin(x))
TENSORD_SCALAR_INEXACT(Acos, std::acos(x))
TENSORD_SCALAR_INEXACT(Atan, std::atan(x))
TENSORD_SCALAR_INEXACT(Asinh, std::asinh(x))
TENSORD_SCALAR_INEXACT(Acosh, std::acosh(x))
TENSORD_SCALAR_INEXACT(Atanh, std::atanh(x))
TENSORD_SCALAR_INEXACT(Log2, Log2Of(x))
TENSORD_SCALAR_INEXACT(Log10, Log10Of(x))
TENSORD_SCALAR_INEXACT(Exp2, Exp2Of(x))
#undef TENSORD_SCALAR_INEXACT

struct Erf {
  template <Real T>
  T operator()(T x) const {
    return static_cast<T>(std::erf(Wide(x)));
  }
};

struct Floor {
  template <Real T>
  T operator()(T x) const {
    return std::floor(x);
  }
};

struct Ceil {
  template <Real T>
  T operator()(T x) const {
    return std::ceil(x);
  }
};

struct RoundNearestEven {
  template <Real T>
  T operator()(T x) const {
    return std::nearbyint(x);  // in the default rounding mode, which tensord never changes
  }
};

struct IsFinite {
  template <Real T>
  Bool operator()(T x) const {
    return Bool(std::isfinite(x));
  }
};

struct Not {
  Bool operator()(Bool x) const { return Bool(!static_cast<bool>(x)); }
  template <Integer T>
  T operator()(T x) const {
    return static_cast<T>(~x);
  }
};

struct RealPart {
  template <Real T>
  T operator()(T x) const {
    return x;
  }
  template <Complex T>
  typename T::value_type operator()(T z) const {
    return z.real();
  }
};

struct ImagPart {
  template <Real T>
  T operator()(T) const {
    return T(0);
  }
  template <Complex T>
  typename T::value_type operator()(T z) const {
    return z.imag();
  }
};

// ---- Binary ----

struct Add {
  Bool operator()(Bool a, Bool b) const { return Bool((a.value | b.value) != 0); }
  template <Inexact T>
  T operator()(T a, T b) const {
    return a + b;
  }
  template <Integer T>
  T operator()(T a, T b) const {
    return Wrap<T>(Bits(a) + Bits(b));
  }
};

struct Subtract {
  template <Inexact T>
  T operator()(T a, T b) const {
    return a - b;
  }
  template <Integer T>
  T operator()(T a, T b) const {
    return Wrap<T>(Bits(a) - Bits(b));
  }
};

struct Multiply {
  Bool operator()(Bool a, Bool b) const { return Bool((a.value & b.value) != 0); }
  template <Real T>
  T operator()(T a, T b) const {
    return a * b;
  }
  template <Complex T>
  T operator()(T a, T b) const {
    return Product(a, b);
  }
  template <Integer T>
  T operator()(T a, T b) const {
    return Wrap<T>(Bits(a) * Bits(b));
  }
};

struct Divide {
  template <Inexact T>
  T operator()(T a, T b) const {
    return a / b;
  }
  template <Integer T>
  T operator()(T a, T b) const {
    if (b == 0) return T(-1);
    if (b == -1) return Wrap<T>(0 - Bits(a));
    return a / b;
  }
};

struct Remainder {
  template <Real T>
  T operator()(T a, T b) const {
    return std::fmod(a, b);
  }
  template <Integer T>
  T operator()(T a, T b) const {
    if (b == 0) return a;
    if (b == -1) return 0;
    return a % b;
  }
};

struct Maximum {
  Bool operator()(Bool a, Bool b) const { return Bool((a.value | b.value) != 0); }
  template <Real T>
  T operator()(T a, T b) const {
    if (std::isnan(a)) return a;
    if (std::isnan(b)) return b;
    if (a == b) return std::signbit(a) ? b : a;
    return a > b ? a : b;
  }
  template <Integer T>
  T operator()(T a, T b) const {
    return a > b ? a : b;
  }
  template <Complex T>
  T operator()(T a, T b) const {
    if (IsNan(a) || IsNan(b)) return BothNan<T>();
    if (a.real() != b.real()) return a.real() > b.real() ? a : b;
    return a.imag() >= b.imag() ? a : b;
  }
};

struct Minimum {
  Bool operator()(Bool a, Bool b) const { return Bool((a.value & b.value) != 0); }
  template <Real T>
  T operator()(T a, T b) const {
    if (std::isnan(a)) return a;
    if (std::isnan(b)) return b;
    if (a == b) return std::signbit(a) ? a : b;
    return a < b ? a : b;
  }
  template <Integer T>
  T operator()(T a, T b) const {
    return a < b ? a : b;
  }
  template <Complex T>
  T operator()(T a, T b) const {
    if (IsNan(a) || IsNan(b)) return BothNan<T>();
    if (a.real() != b.real()) return a.real() < b.real() ? a : b;
    return a.imag() <= b.imag() ? a : b;
  }
};

struct Pow {
  template <Real T>
  T operator()(T a, T b) const {
    if (Wide(b) == 1) return a;
    if (Wide(b) == 2) return static_cast<T>(Wide(a) * Wide(a));
    return static_cast<T>(std::pow(Wide(a), Wide(b)));
  }
  template <Complex T>
  T operator()(T a, T b) const {
    if (b == T(0)) return T(1);
    if (a == T(0) && b.real() > 0) return T(0);
    return PowOf(a, b);
  }
  // Wraps; a negative exponent gives 1/a^|b| truncated toward zero, as XLA.
  template <Integer T>
  T operator()(T a, T b) const {
    if (b < 0) return a == 1 ? T(1) : a == -1 ? (b % 2 != 0 ? T(-1) : T(1)) : T(0);
    std::make_unsigned_t<T> result = 1, base = Bits(a);
    for (auto exponent = Bits(b); exponent != 0; exponent >>= 1) {
      if (exponent & 1) result *= base;
      base *= base;
    }
    return Wrap<T>(result);
  }
};

struct Atan2 {
  template <Real T>
  T operator()(T a, T b) const {
    return static_cast<T>(std::atan2(Wide(a), Wide(b)));
  }
};

#define TENSORD_SCALAR_BITWISE(Name, op)                                              \
  struct Name {                                                                       \
    Bool operator()(Bool a, Bool b) const { return Bool((a.value op b.value) != 0); } \
    template <Integer T>                                                              \
    T operator()(T a, T b) const {                                                    \
      return static_cast<T>(a op b);                                                  \
    }                                                                                 \
  };
TENSORD_SCALAR_BITWISE(And, &)
TENSORD_SCALAR_BITWISE(Or, |)
TENSORD_SCALAR_BITWISE(Xor, ^)
#undef TENSORD_SCALAR_BITWISE

struct MakeComplex {
  template <Real T>
  std::complex<T> operator()(T real, T imag) const {
    return {real, imag};
  }
};

// ---- Compare: one functor a direction; BOOL orders false before true, complex has EQ and NE only ----

struct Equal {
  template <Element T>
  requires(!HalfElement<T>) Bool operator()(T a, T b) const { return Bool(a == b); }
};

struct NotEqual {
  template <Element T>
  requires(!HalfElement<T>) Bool operator()(T a, T b) const { return Bool(!(a == b)); }
};

#define TENSORD_SCALAR_ORDER(Name, op)                                                       \
  struct Name {                                                                              \
    Bool operator()(Bool a, Bool b) const { return Bool(a.value op b.value); }               \
    template <typename T>                                                                    \
    requires(Real<T> || Integer<T>) Bool operator()(T a, T b) const { return Bool(a op b); } \
  };
TENSORD_SCALAR_ORDER(Less, <)
TENSORD_SCALAR_ORDER(LessEqual, <=)
TENSORD_SCALAR_ORDER(Greater, >)
TENSORD_SCALAR_ORDER(GreaterEqual, >=)
#undef TENSORD_SCALAR_ORDER

// ---- Half floats, and what a functor takes ----

template <typename T>
struct ComputeTypeOf {
  using type = T;
};
template <HalfElement T>
struct ComputeTypeOf<T> {
  using type = float;
};
// The type in which an element is computed: float for 16-bit floats, else the element's own type.
template <typename T>
using ComputeType = typename ComputeTypeOf<T>::type;

template <typename F, typename... T>
concept Takes = std::is_invocable_v<const F&, ComputeType<T>...>;

// The functor on elements of any dtype that it takes.
template <typename F, typename T, typename... Rest>
requires Takes<F, T, Rest...>
auto Apply(const F& f, T x, Rest... rest) {
  if constexpr (HalfElement<T>) {
    const auto result = f(static_cast<float>(x), static_cast<float>(rest)...);
    if constexpr (std::is_same_v<decltype(result), const float>) {
      return T(result);
    } else {
      return result;
    }
  } else {
    return f(x, rest...);
  }
}

// ---- Convert ----

template <Integer To, Real From>
To Truncate(From x) {
  if (std::isnan(x)) return 0;
  // The bounds are powers of two, so they are exact in either float.
  constexpr From kEnd = static_cast<From>(std::make_unsigned_t<To>(1) << (sizeof(To) * 8 - 1));
  if (x >= kEnd) return std::numeric_limits<To>::max();
  if (x < -kEnd) return std::numeric_limits<To>::min();
  return static_cast<To>(x);
}

// Returns the contract's Convert, on one element.
template <Element To, Element From>
To ConvertElement(From x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (HalfElement<From>) {
    return ConvertElement<To>(static_cast<float>(x));
  } else if constexpr (Complex<From> && Complex<To>) {
    return To(static_cast<typename To::value_type>(x.real()), static_cast<typename To::value_type>(x.imag()));
  } else if constexpr (Complex<From>) {
    return ConvertElement<To>(x.real());
  } else if constexpr (std::is_same_v<To, Bool>) {
    return Bool(!(x == From(0)));
  } else if constexpr (std::is_same_v<From, Bool>) {
    return ConvertElement<To>(static_cast<int32_t>(x.value != 0));
  } else if constexpr (Complex<To>) {
    return To(ConvertElement<typename To::value_type>(x), 0);
  } else if constexpr (HalfElement<To>) {
    if constexpr (Integer<From>) {
      // Past 2^53 the low bits are folded into one sticky bit, so that the double is exact and one rounding remains.
      if (static_cast<int64_t>(x) > -(int64_t{1} << 53) && static_cast<int64_t>(x) < int64_t{1} << 53) {
        return To(static_cast<double>(x));
      }
      const uint64_t magnitude = x < 0 ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
      const double folded = static_cast<double>((magnitude >> 12 << 12) | ((magnitude & 0xfff) != 0 ? 0x1000 : 0));
      return To(x < 0 ? -folded : folded);
    } else {
      return To(x);
    }
  } else if constexpr (Integer<To> && Real<From>) {
    return Truncate<To>(x);
  } else {
    return static_cast<To>(x);  // integer wraps, or rounds once to a float; float to float rounds once
  }
}

}  // namespace tensord::scalar

#endif  // TENSORD_ENGINE_OPS_SCALAR_SCALAR_MATH_H_
