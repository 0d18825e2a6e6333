// The error of sums, products and contractions against exact ones, on the terms that are hardest for naive loops,
// through compiled programs of each backend. Prints the worst cases, of which docs/use/numerics.md quotes the CPU's.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "engine/ops/scalar/scalar_math.h"
#include "tests/conformance/backends_under_test.h"
#include "tests/testlib/graphs/node_case.h"
#include "tests/testlib/numbers/exact_real.h"
#include "tests/testlib/runs/compiled_run.h"

namespace tensord {
namespace {

// Real parts and imaginary parts are summed apart, so complex numbers are tested as pairs of reals.
template <typename T>
struct PartsOf {
  using Real = T;
  static constexpr int kCount = 1;
};
template <typename R>
struct PartsOf<std::complex<R>> {
  using Real = R;
  static constexpr int kCount = 2;
};

// Far more digits than the accumulators: of millions of terms the sum is as good as exact.
template <typename T>
using Exact = std::conditional_t<sizeof(typename PartsOf<T>::Real) == 8, exact::Wide, long double>;

// Half an epsilon of what T is accumulated in, and of T.
template <typename T>
double Rounding() {
  return sizeof(typename PartsOf<T>::Real) == 8 ? 0x1p-53 : 0x1p-24;
}
template <typename T>
double ResultRounding() {
  return std::is_same_v<T, Float16> ? 0x1p-11 : std::is_same_v<T, BFloat16> ? 0x1p-8 : Rounding<T>();
}
template <typename T>
double LeastResult() {  // half the smallest subnormal number, where that counts
  return std::is_same_v<T, Float16> ? 0x1p-25 : 0;
}

enum class Terms { kTenths, kAlternating, kOneAndMany, kRandom, kManyMagnitudes };
const char* NameOf(Terms terms) {
  switch (terms) {
    case Terms::kTenths:
      return "tenths";
    case Terms::kAlternating:
      return "large ones that cancel";
    case Terms::kOneAndMany:
      return "one and many that are tiny";
    case Terms::kRandom:
      return "random in (0, 1)";
    case Terms::kManyMagnitudes:
      return "random of many magnitudes";
  }
  return "";
}
constexpr Terms kAllTerms[] = {Terms::kTenths, Terms::kAlternating, Terms::kOneAndMany, Terms::kRandom,
                               Terms::kManyMagnitudes};

// Sums of a million of them stay within F16, whose terms are smaller for it.
template <typename T>
std::vector<double> MakeTerms(Terms kind, int64_t count) {
  const double scale = std::is_same_v<T, Float16> ? 0x1p-10 : 1;
  const double tiny = Rounding<T>() / 2;
  std::mt19937_64 random(31);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<double> terms(static_cast<size_t>(count));
  for (size_t i = 0; i < terms.size(); ++i) {
    switch (kind) {
      case Terms::kTenths:
        terms[i] = 0.1 * scale;
        break;
      case Terms::kAlternating:
        terms[i] = (i % 2 == 0 ? 100.0 : -100.0 + static_cast<double>(i % 7)) * scale;
        break;
      case Terms::kOneAndMany:
        terms[i] = (i == 0 ? 1.0 : std::is_same_v<T, Float16> ? 0x1p-14 : tiny) * scale;
        break;
      case Terms::kRandom:
        terms[i] = uniform(random) * scale;
        break;
      case Terms::kManyMagnitudes:
        terms[i] = std::exp2(-14 * uniform(random)) * (uniform(random) < 0.3 ? -1 : 1) * scale;
        break;
    }
  }
  return terms;
}

template <typename T>
T MakeElement(double re, double im) {
  using R = typename PartsOf<T>::Real;
  if constexpr (ComplexElement<T>) {
    return T(static_cast<R>(re), static_cast<R>(im));
  } else {
    return T(re);
  }
}

template <typename T>
double PartOf(T x, int part) {
  if constexpr (ComplexElement<T>) {
    return part == 0 ? x.real() : x.imag();
  } else {
    return scalar::ConvertElement<double>(x);
  }
}

// Complex numbers are x - i x.
template <typename T>
Literal SumLiteral(const std::vector<double>& values, Shape shape) {
  Literal literal = Literal::Create({kDTypeOf<T>, std::move(shape)}).value();
  const auto elements = literal.mutable_values<T>();
  for (size_t i = 0; i < elements.size(); ++i) elements[i] = MakeElement<T>(values[i], -values[i]);
  return literal;
}

struct Sum {
  Shape shape;
  std::vector<int64_t> axes;
};

std::string ToString(const Sum& sum) {
  return absl::StrCat("[", absl::StrJoin(sum.shape, ","), "] over {", absl::StrJoin(sum.axes, ","), "}");
}

// Whole tensors, long rows, short leading axes, strided ones, kept and reduced axes by turns.
const std::vector<Sum>& Sums() {
  static const auto* const sums = new std::vector<Sum>{
      {{1000000}, {0}},          {{8000}, {0}},           {{130}, {0}},
      {{2, 150000}, {1}},        {{2, 150000}, {0}},      {{150000, 2}, {0}},
      {{600, 500}, {0}},         {{600, 500}, {1}},       {{600, 500}, {0, 1}},
      {{17, 20000}, {1}},        {{3000, 100}, {1}},      {{5, 20000, 3}, {1}},
      {{5, 20000, 3}, {0, 2}},   {{70, 5, 900}, {0, 2}},  {{70, 1, 900, 4}, {0, 2}},
      {{513, 2, 3, 90}, {1, 3}}, {{600, 400, 1, 2}, {1}}, {{2, 3, 2, 50, 2, 70, 2, 3}, {1, 3, 5, 7}}};
  return *sums;
}

// For each element the result that it goes into.
std::vector<int64_t> ResultIndices(const Sum& sum, int64_t count) {
  std::vector<int64_t> strides(sum.shape.size(), 0);
  int64_t stride = 1;
  for (size_t k = 0; k < sum.shape.size(); ++k) {
    if (std::find(sum.axes.begin(), sum.axes.end(), static_cast<int64_t>(k)) != sum.axes.end()) continue;
    strides[k] = stride;
    stride *= sum.shape[k];
  }
  std::vector<int64_t> indices(static_cast<size_t>(count), 0);
  for (size_t e = 0; e < indices.size(); ++e) {
    int64_t rest = static_cast<int64_t>(e);
    for (size_t k = 0; k < sum.shape.size(); ++k) {
      indices[e] += rest % sum.shape[k] * strides[k];
      rest /= sum.shape[k];
    }
  }
  return indices;
}

// Elements of T on one of kCpuAndCuda.
template <typename T, size_t backend>
struct On {
  using Element = T;
  static const BackendUnderTest& Device() { return kCpuAndCuda[backend]; }
};

template <typename Case>
class Summation : public testing::Test {
 protected:
  using T = typename Case::Element;

  Literal Run(CoreOp op, Attributes attrs, std::vector<Literal> operands) {
    NodeCase node_case{.name = "node", .op = &Def(op), .attrs = std::move(attrs)};
    for (const Literal& operand : operands) node_case.operands.push_back(operand.type());
    auto results = CompileAndRun(GraphOf(node_case), {.backend = backend_.get()}, operands);
    EXPECT_TRUE(results.ok()) << results.status();
    return results.ok() ? std::move((*results)[0]) : Literal();
  }

  Literal Reduce(ReduceKind kind, const std::vector<int64_t>& axes, Literal operand) {
    Attributes attrs(Def(CoreOp::kReduce).attrs);
    attrs.Set("kind", static_cast<int64_t>(kind)).Set("dimensions", axes);
    std::vector<Literal> operands;
    operands.push_back(std::move(operand));
    return Run(CoreOp::kReduce, std::move(attrs), std::move(operands));
  }

  // The worst error of a case in units of rounding · log2(2n) · Σ|x|, apart from the rounding of the result.
  double WorstOf(const Sum& sum, Terms kind) {
    int64_t count = 1;
    for (const int64_t size : sum.shape) count *= size;
    const Literal x = SumLiteral<T>(MakeTerms<T>(kind, count), sum.shape);
    const Literal result = Reduce(ReduceKind::kSum, sum.axes, x);
    const std::vector<int64_t> indices = ResultIndices(sum, count);
    const double terms = static_cast<double>(count) / static_cast<double>(result.num_elements());
    double worst = 0;
    for (int part = 0; part < PartsOf<T>::kCount; ++part) {
      std::vector<Exact<T>> exact(static_cast<size_t>(result.num_elements()), 0);
      std::vector<double> magnitude(exact.size(), 0);
      for (size_t e = 0; e < indices.size(); ++e) {
        const double term = PartOf(x.values<T>()[e], part);
        exact[static_cast<size_t>(indices[e])] += term;
        magnitude[static_cast<size_t>(indices[e])] += std::abs(term);
      }
      for (size_t i = 0; i < exact.size(); ++i) {
        const double want = static_cast<double>(exact[i]);
        const double error = std::abs(static_cast<double>(PartOf(result.values<T>()[i], part) - exact[i]));
        const double rounded = 1.001 * std::abs(want) * ResultRounding<T>() + LeastResult<T>();
        worst = std::max(worst, (error - rounded) / (Rounding<T>() * std::log2(2 * terms) * magnitude[i]));
      }
    }
    return worst;
  }

  void Print(const char* what, const std::string& worst) {
    std::printf("| %s | %s | %s | %s |\n", Case::Device().name.c_str(), std::string(Name(kDTypeOf<T>)).c_str(), what,
                worst.c_str());
  }

  const std::unique_ptr<Backend> backend_ = Case::Device().make();
};

using ElementTypes =
    testing::Types<On<float, 0>, On<double, 0>, On<Complex64, 0>, On<Complex128, 0>, On<Float16, 0>, On<BFloat16, 0>,
                   On<float, 1>, On<double, 1>, On<Complex64, 1>, On<Complex128, 1>, On<Float16, 1>, On<BFloat16, 1>>;
TYPED_TEST_SUITE(Summation, ElementTypes);

TYPED_TEST(Summation, ErrorOfASumGrowsWithTheLogarithmOfItsLength) {
  // Sixteen additions one after the other to a level of the cascade, which is sixteen times as long as the one before.
  constexpr double kFactor = 4;
  double worst = 0;
  std::string worst_case;
  for (const Sum& sum : Sums()) {
    for (const Terms terms : kAllTerms) {
      const double factor = this->WorstOf(sum, terms);
      EXPECT_LE(factor, kFactor) << ToString(sum) << ", " << NameOf(terms);
      if (factor <= worst) continue;
      worst = factor;
      worst_case = absl::StrCat(ToString(sum), ", ", NameOf(terms));
    }
  }
  this->Print("sum", absl::StrFormat("%.3f u log2(2n) sum|x| | %s", worst, worst_case));
}

TYPED_TEST(Summation, MillionsOfTenthsHaveTheMeanOfATenth) {
  using T = typename TypeParam::Element;
  // As many as the dtype can hold the sum of, and as there is time for.
  constexpr int64_t kCount = std::is_same_v<T, Float16> ? 500000 : sizeof(T) <= 4 ? 10000000 : 2000000;
  const Literal x = SumLiteral<T>(std::vector<double>(kCount, 0.1), {kCount});
  const Literal result = this->Reduce(ReduceKind::kSum, {0}, x);
  const double tenth = PartOf(x.values<T>()[0], 0);
  const double mean = PartOf(result.values<T>()[0], 0) / kCount;
  EXPECT_NEAR(mean, tenth, tenth * (ResultRounding<T>() + 50 * Rounding<T>()));
}

TYPED_TEST(Summation, ErrorOfAProductIsOneRoundingAFactor) {
  using T = typename TypeParam::Element;
  double worst = 0;
  for (const Sum& product : {Sum{{100000}, {0}}, Sum{{300, 70}, {0}}, Sum{{300, 70}, {1}}, Sum{{5, 400, 3}, {0, 2}}}) {
    int64_t count = 1;
    for (const int64_t size : product.shape) count *= size;
    std::mt19937_64 random(37);
    std::uniform_real_distribution<double> near_one(0.99, 1.0102), angle(-3, 3);
    Literal x = Literal::Create({kDTypeOf<T>, product.shape}).value();
    for (T& element : x.mutable_values<T>()) {
      const double modulus = near_one(random), turn = PartsOf<T>::kCount == 2 ? angle(random) : 0;
      element = MakeElement<T>(modulus * std::cos(turn), modulus * std::sin(turn));
    }
    const Literal result = this->Reduce(ReduceKind::kProduct, product.axes, x);
    const std::vector<int64_t> indices = ResultIndices(product, count);
    std::vector<std::pair<Exact<T>, Exact<T>>> exact(static_cast<size_t>(result.num_elements()), {1, 0});
    for (size_t e = 0; e < indices.size(); ++e) {
      auto& [re, im] = exact[static_cast<size_t>(indices[e])];
      const double a = PartOf(x.values<T>()[e], 0), b = PartsOf<T>::kCount == 2 ? PartOf(x.values<T>()[e], 1) : 0;
      std::tie(re, im) = std::make_pair(re * a - im * b, re * b + im * a);
    }
    const double factors = static_cast<double>(count) / static_cast<double>(result.num_elements());
    for (size_t i = 0; i < exact.size(); ++i) {
      const double re = static_cast<double>(PartOf(result.values<T>()[i], 0) - exact[i].first);
      const double im =
          PartsOf<T>::kCount == 2 ? static_cast<double>(PartOf(result.values<T>()[i], 1) - exact[i].second) : 0;
      const double size = std::hypot(static_cast<double>(exact[i].first), static_cast<double>(exact[i].second));
      const double relative = std::hypot(re, im) / size - 1.001 * ResultRounding<T>();
      worst = std::max(worst, relative / (factors * Rounding<T>()));
    }
  }
  // A complex product has up to sqrt(5) roundings.
  EXPECT_LE(worst, PartsOf<T>::kCount == 2 ? 2.24 : 1.0);
  this->Print("product", absl::StrFormat("%.3f n u", worst));
}

// a·b, whose terms are those of Terms times one, over k. OpenBLAS adds most of them, in an order of its own: without
// vectors it is one after the other. Long ones are cut into parts here.
double RoundingsInSequence(int64_t k) { return std::min(static_cast<double>(k), 4096 + static_cast<double>(k) / 16); }

TYPED_TEST(Summation, ErrorOfAContractionIsThatOfItsParts) {
  using T = typename TypeParam::Element;
  struct Product {
    int64_t m, k, n;
  };
  double worst = 0;
  std::string worst_case;
  for (const Product& p : {Product{1, 1000000, 1}, Product{1, 3000, 1}, Product{3, 16, 4}, Product{1, 200000, 4},
                           Product{4, 200000, 1}, Product{40, 9000, 30}, Product{200, 2000, 20}, Product{2000, 8, 3},
                           Product{700, 900, 1}, Product{1, 900, 700}}) {
    for (const Terms kind : kAllTerms) {
      for (const bool transposed : {false, true}) {
        const std::vector<double> terms = MakeTerms<T>(kind, p.k);
        std::vector<double> a(static_cast<size_t>(p.m * p.k));
        for (int64_t i = 0; i < p.m; ++i) {
          for (int64_t q = 0; q < p.k; ++q) {
            a[static_cast<size_t>(transposed ? q + i * p.k : i + q * p.m)] = terms[static_cast<size_t>(q)];
          }
        }
        using Ints = std::vector<int64_t>;
        Attributes attrs(Def(CoreOp::kDotGeneral).attrs);
        attrs.Set("lhs_contracting_dimensions", Ints{transposed ? 0 : 1}).Set("rhs_contracting_dimensions", Ints{0});
        std::vector<Literal> operands;
        operands.push_back(SumLiteral<T>(a, transposed ? Shape{p.k, p.m} : Shape{p.m, p.k}));
        Literal rhs = Literal::Create({kDTypeOf<T>, {p.k, p.n}}).value();
        for (T& element : rhs.template mutable_values<T>()) element = MakeElement<T>(1, 0);
        operands.push_back(std::move(rhs));
        Exact<T> exact = 0;
        double magnitude = 0;
        for (int64_t q = 0; q < p.k; ++q) {
          const double term = PartOf(MakeElement<T>(terms[static_cast<size_t>(q)], 0), 0);
          exact += term;
          magnitude += std::abs(term);
        }
        const Literal result = this->Run(CoreOp::kDotGeneral, std::move(attrs), std::move(operands));
        const double want = static_cast<double>(exact);
        const double rounded = 1.001 * std::abs(want) * ResultRounding<T>() + LeastResult<T>();
        double error = 0;
        for (const T& element : result.values<T>()) {
          for (int part = 0; part < PartsOf<T>::kCount; ++part) {
            const double value = PartOf(element, part) * (part == 0 ? 1 : -1);
            error = std::max(error, std::abs(static_cast<double>(value - exact)) - rounded);
          }
        }
        const double roundings = error / (Rounding<T>() * magnitude);
        const std::string name =
            absl::StrCat(p.m, "x", p.k, "x", p.n, transposed ? " transposed, " : ", ", NameOf(kind));
        EXPECT_LE(roundings, RoundingsInSequence(p.k)) << name;
        if (roundings <= worst) continue;
        worst = roundings;
        worst_case = name;
      }
    }
  }
  this->Print("dot_general", absl::StrFormat("%.0f u sum|ab| | %s", worst, worst_case));
}

}  // namespace
}  // namespace tensord
