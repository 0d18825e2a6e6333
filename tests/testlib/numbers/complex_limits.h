#ifndef TENSORD_TESTS_TESTLIB_NUMBERS_COMPLEX_LIMITS_H_
#define TENSORD_TESTS_TESTLIB_NUMBERS_COMPLEX_LIMITS_H_

#include <cmath>
#include <complex>
#include <limits>
#include <vector>

#include "engine/ops/core_ops.h"

namespace tensord {

// The value that Annex G of C gives a complex function at a limit, on a cut or without a value. A NaN of the result
// stands for any NaN; a zero or an infinity beside one may have either sign if `any_sign` is set.
struct ComplexLimit {
  CoreOp op;
  std::complex<double> z;
  std::complex<double> result;
  bool any_sign = false;

  bool IsMetBy(std::complex<double> value) const {
    const auto same = [](double a, double b, bool any) {
      if (std::isnan(b)) return std::isnan(a);
      const bool close = std::isinf(b) || b == 0 ? std::abs(a) == std::abs(b) : std::abs(a - b) <= 1e-6 * std::abs(b);
      return close && (any || std::signbit(a) == std::signbit(b));
    };
    return same(value.real(), result.real(), any_sign) && same(value.imag(), result.imag(), any_sign);
  }
};

// The functions whose limits the contract promises; conjugates and, of odd and even functions, negatives follow.
inline std::vector<ComplexLimit> ComplexLimits() {
  constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kPi = 3.14159265358979323846;
  using Op = CoreOp;
  const std::vector<ComplexLimit> upper = {{Op::kSinh, {0, 0}, {0, 0}},
                                           {Op::kSinh, {0, kInf}, {0, kNan}, true},
                                           {Op::kSinh, {0, kNan}, {0, kNan}, true},
                                           {Op::kSinh, {2, kInf}, {kNan, kNan}},
                                           {Op::kSinh, {2, kNan}, {kNan, kNan}},
                                           {Op::kSinh, {kInf, 0}, {kInf, 0}},
                                           {Op::kSinh, {kInf, 2}, {-kInf, kInf}},
                                           {Op::kSinh, {kInf, kInf}, {kInf, kNan}, true},
                                           {Op::kSinh, {kInf, kNan}, {kInf, kNan}, true},
                                           {Op::kSinh, {kNan, 0}, {kNan, 0}},
                                           {Op::kSinh, {kNan, 2}, {kNan, kNan}},
                                           {Op::kCosh, {0, 0}, {1, 0}},
                                           {Op::kCosh, {0, kInf}, {kNan, 0}, true},
                                           {Op::kCosh, {0, kNan}, {kNan, 0}, true},
                                           {Op::kCosh, {2, kInf}, {kNan, kNan}},
                                           {Op::kCosh, {kInf, 0}, {kInf, 0}},
                                           {Op::kCosh, {kInf, 2}, {-kInf, kInf}},
                                           {Op::kCosh, {kInf, kInf}, {kInf, kNan}, true},
                                           {Op::kCosh, {kInf, kNan}, {kInf, kNan}},
                                           {Op::kCosh, {kNan, 0}, {kNan, 0}, true},
                                           {Op::kCosh, {kNan, 2}, {kNan, kNan}},
                                           {Op::kAcos, {0, 0}, {kPi / 2, -0.0}},
                                           {Op::kAcos, {-0.0, 0}, {kPi / 2, -0.0}},
                                           {Op::kAcos, {2, 0}, {0, -1.3169578969248167}},
                                           {Op::kAcos, {-2, 0}, {kPi, -1.3169578969248167}},
                                           {Op::kAcos, {0, kNan}, {kPi / 2, kNan}},
                                           {Op::kAcos, {2, kInf}, {kPi / 2, -kInf}},
                                           {Op::kAcos, {2, kNan}, {kNan, kNan}},
                                           {Op::kAcos, {-kInf, 2}, {kPi, -kInf}},
                                           {Op::kAcos, {kInf, 2}, {0, -kInf}},
                                           {Op::kAcos, {-kInf, kInf}, {3 * kPi / 4, -kInf}},
                                           {Op::kAcos, {kInf, kInf}, {kPi / 4, -kInf}},
                                           {Op::kAcos, {kInf, kNan}, {kNan, kInf}, true},
                                           {Op::kAcos, {kNan, 2}, {kNan, kNan}},
                                           {Op::kAcos, {kNan, kInf}, {kNan, -kInf}},
                                           {Op::kAcosh, {0, 0}, {0, kPi / 2}},
                                           {Op::kAcosh, {-0.0, 0}, {0, kPi / 2}},
                                           {Op::kAcosh, {0.5, 0}, {0, 1.0471975511965979}},
                                           {Op::kAcosh, {-2, 0}, {1.3169578969248167, kPi}},
                                           {Op::kAcosh, {2, kInf}, {kInf, kPi / 2}},
                                           {Op::kAcosh, {2, kNan}, {kNan, kNan}},
                                           {Op::kAcosh, {-kInf, 2}, {kInf, kPi}},
                                           {Op::kAcosh, {kInf, 2}, {kInf, 0}},
                                           {Op::kAcosh, {-kInf, kInf}, {kInf, 3 * kPi / 4}},
                                           {Op::kAcosh, {kInf, kInf}, {kInf, kPi / 4}},
                                           {Op::kAcosh, {kInf, kNan}, {kInf, kNan}},
                                           {Op::kAcosh, {kNan, 2}, {kNan, kNan}},
                                           {Op::kAcosh, {kNan, kInf}, {kInf, kNan}},
                                           {Op::kAsinh, {0, 0}, {0, 0}},
                                           {Op::kAsinh, {0, 2}, {1.3169578969248167, kPi / 2}},
                                           {Op::kAsinh, {-0.0, 2}, {-1.3169578969248167, kPi / 2}},
                                           {Op::kAsinh, {2, kInf}, {kInf, kPi / 2}},
                                           {Op::kAsinh, {2, kNan}, {kNan, kNan}},
                                           {Op::kAsinh, {kInf, 2}, {kInf, 0}},
                                           {Op::kAsinh, {kInf, kInf}, {kInf, kPi / 4}},
                                           {Op::kAsinh, {kInf, kNan}, {kInf, kNan}},
                                           {Op::kAsinh, {kNan, 0}, {kNan, 0}},
                                           {Op::kAsinh, {kNan, 2}, {kNan, kNan}},
                                           {Op::kAsinh, {kNan, kInf}, {kInf, kNan}, true},
                                           {Op::kAsin, {0, 0}, {0, 0}},
                                           {Op::kAsin, {2, 0}, {kPi / 2, 1.3169578969248167}},
                                           {Op::kAsin, {-2, 0}, {-kPi / 2, 1.3169578969248167}},
                                           {Op::kAsin, {kInf, 2}, {kPi / 2, kInf}},
                                           {Op::kAsin, {2, kInf}, {0, kInf}},
                                           {Op::kAsin, {kInf, kInf}, {kPi / 4, kInf}},
                                           {Op::kAsin, {kNan, 2}, {kNan, kNan}},
                                           {Op::kAsin, {0, kNan}, {0, kNan}},
                                           {Op::kAtanh, {0, 0}, {0, 0}},
                                           {Op::kAtanh, {0, kNan}, {0, kNan}},
                                           {Op::kAtanh, {1, 0}, {kInf, 0}},
                                           {Op::kAtanh, {2, 0}, {0.5493061443340549, kPi / 2}},
                                           {Op::kAtanh, {2, kInf}, {0, kPi / 2}},
                                           {Op::kAtanh, {2, kNan}, {kNan, kNan}},
                                           {Op::kAtanh, {kInf, 2}, {0, kPi / 2}},
                                           {Op::kAtanh, {kInf, kInf}, {0, kPi / 2}},
                                           {Op::kAtanh, {kInf, kNan}, {0, kNan}},
                                           {Op::kAtanh, {kNan, 2}, {kNan, kNan}},
                                           {Op::kAtanh, {kNan, kInf}, {0, kPi / 2}, true},
                                           {Op::kAtan, {0, 0}, {0, 0}},
                                           {Op::kAtan, {0, 1}, {0, kInf}},
                                           {Op::kAtan, {0, 2}, {kPi / 2, 0.5493061443340549}},
                                           {Op::kAtan, {-0.0, 2}, {-kPi / 2, 0.5493061443340549}},
                                           {Op::kAtan, {kInf, 2}, {kPi / 2, 0}},
                                           {Op::kAtan, {2, kInf}, {kPi / 2, 0}},
                                           {Op::kLog2, {-0.0, 0}, {-kInf, 4.532360141827194}},
                                           {Op::kLog2, {0, 0}, {-kInf, 0}},
                                           {Op::kLog2, {8, 0}, {3, 0}},
                                           {Op::kLog2, {0, 8}, {3, 2.266180070913597}},
                                           {Op::kLog2, {kInf, 2}, {kInf, 0}},
                                           {Op::kLog2, {kNan, kInf}, {kInf, kNan}},
                                           {Op::kExp2, {3, 0}, {8, 0}},
                                           {Op::kExp2, {kInf, 0}, {kInf, 0}},
                                           {Op::kExp2, {kInf, 1}, {kInf, kInf}},
                                           {Op::kExp2, {-kInf, 1}, {0, 0}},
                                           {Op::kExp2, {2, kInf}, {kNan, kNan}},
                                           {Op::kExp2, {kNan, 0}, {kNan, 0}},
                                           {Op::kLog10, {-1000, 0}, {3, 1.3643763538418412}},
                                           {Op::kLog10, {0, 0}, {-kInf, 0}},
                                           {Op::kLog10, {kNan, 2}, {kNan, kNan}}};
  std::vector<ComplexLimit> limits;
  for (const ComplexLimit& limit : upper) {
    limits.push_back(limit);
    limits.push_back({limit.op, std::conj(limit.z), std::conj(limit.result), limit.any_sign});
  }
  return limits;
}

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_NUMBERS_COMPLEX_LIMITS_H_
