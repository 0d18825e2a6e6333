#include "backends/cpu/elementwise/elementwise.h"

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "backends/cpu/machine/streamed_stores.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/selection.h"
#include "gtest/gtest.h"
#include "tests/unit/backends/cpu/instruction_sets.h"
#include "tests/unit/backends/cpu/sample_values.h"

namespace tensord::cpu {
namespace {

// How far a routine may be from the scalar meaning, in steps of the result's type. That itself is up to 3 steps off the
// true value where it calls the C++ library in double.
int64_t AllowedUlp(CoreOp op, DType dtype) {
  switch (op) {
    case CoreOp::kExp:
    case CoreOp::kExpm1:
    case CoreOp::kLog:
    case CoreOp::kLog1p:
    case CoreOp::kLogistic:
    case CoreOp::kTanh:
    case CoreOp::kSin:
    case CoreOp::kCos:
    case CoreOp::kTan:
    case CoreOp::kRsqrt:
    case CoreOp::kErf:
    case CoreOp::kCbrt:
    case CoreOp::kSinh:
    case CoreOp::kCosh:
    case CoreOp::kAsin:
    case CoreOp::kAcos:
    case CoreOp::kAtan:
    case CoreOp::kAsinh:
    case CoreOp::kAcosh:
    case CoreOp::kAtanh:
    case CoreOp::kLog2:
    case CoreOp::kLog10:
    case CoreOp::kExp2:
    case CoreOp::kPow:
    case CoreOp::kAtan2:
      if (dtype == DType::kF32) return 4;
      if (dtype == DType::kF64) return 5;
      if (dtype == DType::kF16 || dtype == DType::kBF16) return 1;  // the F32 result may round to the other neighbour
      return 0;
    case CoreOp::kAbs:
      return kComplexes.Contains(dtype) ? 2 : 0;
    default:
      return 0;
  }
}

// An array of its own that starts at an odd element and ends in guard bytes.
template <typename T>
class Guarded {
 public:
  explicit Guarded(int64_t n) : size_(n), bytes_((static_cast<size_t>(n) + 3) * sizeof(T), '\x5a') {}
  explicit Guarded(const std::vector<T>& values) : Guarded(static_cast<int64_t>(values.size())) {
    if (!values.empty()) std::memcpy(data(), values.data(), values.size() * sizeof(T));
  }
  char* data() { return bytes_.data() + sizeof(T); }
  T at(int64_t i) {
    T value;
    std::memcpy(&value, data() + static_cast<size_t>(i) * sizeof(T), sizeof(T));
    return value;
  }
  bool guards_hold() const {
    for (size_t i = 0; i < bytes_.size(); ++i) {
      const bool inside = i >= sizeof(T) && i < sizeof(T) * (1 + static_cast<size_t>(size_));
      if (!inside && bytes_[i] != '\x5a') return false;
    }
    return true;
  }

 private:
  int64_t size_;
  std::vector<char> bytes_;
};

template <typename T, typename Result>
void CheckAgainst(Result (*apply)(T, T), int arity, const std::string& name, ElementwiseFunction function,
                  int64_t ulp) {
  for (int64_t n : {0, 1, 7, 64, 1025, 3001}) {
    const std::vector<T> a = SampleValues<T>(n, 3), b = SampleValues<T>(n, 4);
    Guarded<T> x(a), z(b);
    Guarded<Result> y(n);
    function(x.data(), arity == 2 ? z.data() : nullptr, y.data(), n);
    ASSERT_TRUE(y.guards_hold()) << name << " at n = " << n;
    for (int64_t i = 0; i < n; ++i) {
      const Result want = apply(a[static_cast<size_t>(i)], b[static_cast<size_t>(i)]);
      ASSERT_TRUE(Agree(y.at(i), want, ulp)) << name << " of " << Show(x.at(i)) << ", " << Show(z.at(i)) << " is "
                                             << Show(y.at(i)) << ", not " << Show(want) << " (n = " << n << ")";
    }
    if constexpr (sizeof(Result) == sizeof(T)) {  // in place, on either operand
      const auto check_in_place = [&](Guarded<T>& place) {
        function(x.data(), arity == 2 ? z.data() : nullptr, place.data(), n);
        ASSERT_TRUE(place.guards_hold()) << name;
        ASSERT_EQ(std::memcmp(place.data(), y.data(), static_cast<size_t>(n) * sizeof(T)), 0) << name << " in place";
      };
      check_in_place(x);
      x = Guarded<T>(a);
      if (arity == 2) check_in_place(z);
    }
  }
}

template <typename F, int kArity>
void CheckOp(const std::string& op_name, DType dtype, ElementwiseFunction function, int64_t ulp) {
  const std::string name = absl::StrCat(op_name, " ", Name(dtype));
  VisitDType(dtype, [&]<typename T>(TypeTag<T>) {
    if constexpr (TakesElement<F, T, kArity>()) {
      ASSERT_NE(function, nullptr) << name;
      const auto apply = [](T x, [[maybe_unused]] T z) {
        if constexpr (kArity == 1) {
          return scalar::Apply(F(), x);
        } else {
          return scalar::Apply(F(), x, z);
        }
      };
      CheckAgainst<T, decltype(apply(T(), T()))>(apply, kArity, name, function, ulp);
    } else {
      EXPECT_EQ(function, nullptr) << name;
    }
  });
}

TEST(ElementwiseTest, UnaryOpsMeanWhatTheScalarFunctorsMean) {
  ForEachInstructionSet([](const char*) {
    for (DType dtype : kAllDTypes) {
#define TENSORD_UNARY(op, name, functor, summary) \
  CheckOp<scalar::functor, 1>(name, dtype, FindElementwise(CoreOp::op, dtype), AllowedUlp(CoreOp::op, dtype));
#define TENSORD_BINARY(op, name, functor, traits, summary)
#define TENSORD_OP(op, definition)
#include "engine/ops/core_ops.def"
#undef TENSORD_UNARY
#undef TENSORD_BINARY
#undef TENSORD_OP
    }
  });
}

TEST(ElementwiseTest, BinaryOpsMeanWhatTheScalarFunctorsMean) {
  ForEachInstructionSet([](const char*) {
    for (DType dtype : kAllDTypes) {
#define TENSORD_UNARY(op, name, functor, summary)
#define TENSORD_BINARY(op, name, functor, traits, summary) \
  CheckOp<scalar::functor, 2>(name, dtype, FindElementwise(CoreOp::op, dtype), AllowedUlp(CoreOp::op, dtype));
#define TENSORD_OP(op, definition)
#include "engine/ops/core_ops.def"
#undef TENSORD_UNARY
#undef TENSORD_BINARY
#undef TENSORD_OP
    }
  });
}

TEST(ElementwiseTest, ComparisonsMeanWhatTheScalarFunctorsMean) {
  ForEachInstructionSet([](const char*) {
    for (DType dtype : kAllDTypes) {
      for (int64_t d = 1; d <= 6; ++d) {
        const auto direction = static_cast<CompareDirection>(d);
        VisitDirection(direction,
                       [&]<typename F>(F) { CheckOp<F, 2>("compare", dtype, FindCompare(direction, dtype), 0); });
      }
    }
  });
}

TEST(ElementwiseTest, OpsOfOtherKindsHaveNoRoutine) {
  for (DType dtype : kAllDTypes) {
    EXPECT_EQ(FindElementwise(CoreOp::kTranspose, dtype), nullptr);
    EXPECT_EQ(FindElementwise(CoreOp::kDotGeneral, dtype), nullptr);
    EXPECT_EQ(FindCompare(CompareDirection::kUnspecified, dtype), nullptr);
    for (int op = 0; op < kNumCoreOps; ++op) EXPECT_GT(ElementsPerTask(static_cast<CoreOp>(op), dtype), 0);
  }
}

TEST(ElementwiseTest, EdgesThatTheContractNames) {
  const auto f32 = [](CoreOp op, float a, float b) {
    float y;
    FindElementwise(op, DType::kF32)(&a, &b, &y, 1);
    return y;
  };
  const auto i32 = [](CoreOp op, int32_t a, int32_t b) {
    int32_t y;
    FindElementwise(op, DType::kI32)(&a, &b, &y, 1);
    return y;
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(f32(CoreOp::kMaximum, 1, nan)));
  EXPECT_TRUE(std::isnan(f32(CoreOp::kMinimum, nan, 1)));
  EXPECT_FALSE(std::signbit(f32(CoreOp::kMaximum, -0.0f, 0.0f)));
  EXPECT_FALSE(std::signbit(f32(CoreOp::kMaximum, 0.0f, -0.0f)));
  EXPECT_TRUE(std::signbit(f32(CoreOp::kMinimum, 0.0f, -0.0f)));
  EXPECT_TRUE(std::signbit(f32(CoreOp::kSign, -0.0f, 0)));
  EXPECT_TRUE(std::isnan(f32(CoreOp::kSign, nan, 0)));
  EXPECT_TRUE(std::signbit(f32(CoreOp::kRemainder, -4, 2)));
  EXPECT_EQ(f32(CoreOp::kRsqrt, -0.0f, 0), -std::numeric_limits<float>::infinity());
  EXPECT_EQ(f32(CoreOp::kRoundNearestEven, 2.5f, 0), 2);
  constexpr int32_t kMin = std::numeric_limits<int32_t>::min();
  EXPECT_EQ(i32(CoreOp::kDivide, 7, 0), -1);
  EXPECT_EQ(i32(CoreOp::kDivide, kMin, -1), kMin);
  EXPECT_EQ(i32(CoreOp::kRemainder, 7, 0), 7);
  EXPECT_EQ(i32(CoreOp::kRemainder, kMin, -1), 0);
  EXPECT_EQ(i32(CoreOp::kAbs, kMin, 0), kMin);
  EXPECT_EQ(i32(CoreOp::kNegate, kMin, 0), kMin);
}

// Checks every pair of magnitudes, beside neighbours that take another way and alone.
template <typename R>
void CheckModuli(DType dtype) {
  using Limits = std::numeric_limits<R>;
  constexpr R kInf = Limits::infinity(), kNan = Limits::quiet_NaN(), kLeast = Limits::denorm_min();
  std::vector<R> parts = {0,           -R(0),         kInf,          -kInf,          kNan, kLeast,
                          -3 * kLeast, Limits::min(), Limits::max(), -Limits::max(), 3,    -4};
  for (int exponent = Limits::min_exponent; exponent < Limits::max_exponent; exponent += Limits::max_exponent / 16) {
    parts.push_back(std::ldexp(R(0.8125), exponent));
    parts.push_back(-std::ldexp(R(0.9375), exponent));
  }
  std::vector<std::complex<R>> z;
  for (const R real : parts) {
    for (const R imag : parts) z.emplace_back(real, imag);
  }
  const ElementwiseFunction function = FindElementwise(CoreOp::kAbs, dtype);
  std::vector<R> together(z.size());
  function(z.data(), nullptr, together.data(), static_cast<int64_t>(z.size()));
  for (size_t i = 0; i < z.size(); ++i) {
    const R want = std::hypot(z[i].real(), z[i].imag());
    EXPECT_TRUE(Agree(together[i], want, 2)) << Show(z[i]) << ": " << Show(together[i]) << ", not " << Show(want);
    R alone;
    function(&z[i], nullptr, &alone, 1);
    EXPECT_TRUE(Agree(alone, together[i], 0)) << Show(z[i]);
  }
}

TEST(ElementwiseTest, ModuliNeitherOverflowNorVanish) {
  ForEachInstructionSet([](const char*) {
    CheckModuli<float>(DType::kC64);
    CheckModuli<double>(DType::kC128);
  });
}

TEST(ElementwiseTest, StreamCopyCopies) {
  ForEachInstructionSet([](const char*) {
    const std::vector<int32_t> source = SampleValues<int32_t>(300, 1);
    for (int64_t bytes : {0, 1, 4, 63, 64, 65, 200, 1024}) {
      for (size_t offset : {0, 1, 4, 31, 63}) {
        std::vector<char> target(2048, '\x5a');
        StreamCopy(source.data(), target.data() + offset, bytes);
        FlushStreamed();
        EXPECT_EQ(std::memcmp(target.data() + offset, source.data(), static_cast<size_t>(bytes)), 0);
        for (size_t i = 0; i < target.size(); ++i) {
          if (i < offset || i >= offset + static_cast<size_t>(bytes)) {
            ASSERT_EQ(target[i], '\x5a') << bytes << " bytes at " << offset;
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace tensord::cpu
