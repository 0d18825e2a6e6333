#include "tests/testlib/numbers/literal_compare.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "engine/ops/scalar/scalar_math.h"

namespace tensord {
namespace {

// Distance between neighbouring values of the dtype near x.
template <typename T>
double UlpAt(double x) {
  int digits = 24, least_exponent = -149;
  if constexpr (std::is_same_v<T, double> || std::is_same_v<T, Complex128>) {
    digits = 53, least_exponent = -1074;
  } else if constexpr (std::is_same_v<T, Float16>) {
    digits = 11, least_exponent = -24;
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    digits = 8, least_exponent = -133;
  }
  if (x == 0) return std::ldexp(1.0, least_exponent);
  return std::ldexp(1.0, std::max(std::ilogb(x) - digits + 1, least_exponent));
}

template <typename T>
double ToDouble(T x) {
  return scalar::ConvertElement<double>(x);
}

template <typename T>
bool RealClose(double got, double want, const Tolerance& tolerance, double norm) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
  if (got == want) return true;
  if (std::isinf(want) || std::isinf(got)) {
    // A value next to the largest finite one may round to infinity.
    if (tolerance.ulps == 0 && tolerance.norm_relative == 0) return false;
    const double finite = std::isinf(want) ? got : want, infinite = std::isinf(want) ? want : got;
    const double largest = std::is_same_v<T, float> || std::is_same_v<T, Complex64> || std::is_same_v<T, BFloat16>
                               ? std::numeric_limits<float>::max()
                           : std::is_same_v<T, Float16> ? 65504
                                                        : std::numeric_limits<double>::max();
    return std::signbit(finite) == std::signbit(infinite) && std::abs(finite) >= largest * (1 - 1e-2);
  }
  return std::abs(got - want) <= std::max(tolerance.ulps * UlpAt<T>(want), tolerance.norm_relative * norm);
}

}  // namespace

std::string Difference(const Literal& got, const Literal& want, const Tolerance& tolerance) {
  if (!(got.type() == want.type())) {
    return absl::StrCat("type ", ToString(got.type()), ", want ", ToString(want.type()));
  }
  return VisitDType(want.dtype(), [&]<typename T>(TypeTag<T>) -> std::string {
    const auto g = got.values<T>(), w = want.values<T>();
    if constexpr (std::is_same_v<T, Bool> || IntegerElement<T>) {
      for (size_t i = 0; i < w.size(); ++i) {
        if (!(g[i] == w[i])) {
          return absl::StrCat("element ", i, " is ", scalar::ConvertElement<int64_t>(g[i]), ", want ",
                              scalar::ConvertElement<int64_t>(w[i]));
        }
      }
    } else {
      double norm = tolerance.least_norm;
      const auto parts = [](T x) -> std::pair<double, double> {
        if constexpr (ComplexElement<T>) {
          return {x.real(), x.imag()};
        } else {
          return {ToDouble(x), 0.0};
        }
      };
      for (const T& x : w) {
        const auto [re, im] = parts(x);
        if (std::isfinite(re)) norm = std::max(norm, std::abs(re));
        if (std::isfinite(im)) norm = std::max(norm, std::abs(im));
      }
      for (size_t i = 0; i < w.size(); ++i) {
        const auto [gr, gi] = parts(g[i]);
        const auto [wr, wi] = parts(w[i]);
        if (RealClose<T>(gr, wr, tolerance, norm) && RealClose<T>(gi, wi, tolerance, norm)) continue;
        return absl::StrCat("element ", i, " is (", gr, ", ", gi, "), want (", wr, ", ", wi, ")");
      }
    }
    return "";
  });
}

}  // namespace tensord
