#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/autodiff/differentiate.h"
#include "engine/families/all_families.h"
#include "engine/ir/parser.h"
#include "engine/ir/verifier.h"
#include "engine/ops/core_ops.h"
#include "engine/reference/evaluator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testlib/numbers/literal_of.h"

namespace tensord {
namespace {

using testing::ElementsAre;

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

// Returns the cotangents of %a, %b, %c, vectors of F64, for the cotangent 1 of every element of %y.
std::vector<std::vector<double>> Gradients(const std::string& node, const std::vector<std::vector<double>>& arguments,
                                           std::vector<std::string> wrt = {}) {
  std::string text = "graph \"g\" {\n";
  std::vector<Literal> literals;
  for (size_t i = 0; i < arguments.size(); ++i) {
    absl::StrAppend(&text, "%", std::string(1, static_cast<char>('a' + i)), " = input : f64[", arguments[i].size(),
                    "]\n");
    literals.push_back(LiteralOf(arguments[i]));
  }
  absl::StatusOr<Graph> graph = ParseGraph(absl::StrCat(text, node, "\noutput \"y\" = %y\n}"), CoreRegistry());
  EXPECT_TRUE(graph.ok()) << graph.status();
  EXPECT_TRUE(InferTypes(&*graph).ok());
  literals.push_back(*Literal::Create(ToConcreteType(graph->type(graph->outputs()[0].value))));
  for (double& one : literals.back().mutable_values<double>()) one = 1;
  absl::StatusOr<Graph> vjp = Differentiate(*graph, {.mode = DerivativeMode::kVjp, .wrt = std::move(wrt)});
  EXPECT_TRUE(vjp.ok()) << vjp.status();
  const auto guards = InferTypes(&*vjp);
  const auto results = EvaluateReference(*vjp, *guards, literals);
  EXPECT_TRUE(results.ok()) << results.status();
  std::vector<std::vector<double>> gradients;
  for (const Literal& result : *results) {
    gradients.emplace_back(result.values<double>().begin(), result.values<double>().end());
  }
  return gradients;
}

TEST(DerivativesAtEdges, OfTiesAreShared) {
  EXPECT_THAT(Gradients("%y = maximum(%a, %b)", {{1, 2, 3, 0.0}, {1, 3, 2, -0.0}}),
              ElementsAre(ElementsAre(0.5, 0, 1, 0.5), ElementsAre(0.5, 1, 0, 0.5)));
  EXPECT_THAT(Gradients("%y = minimum(%a, %a)", {{1}}), ElementsAre(ElementsAre(1)));
  EXPECT_THAT(Gradients("%y = maximum(%a, %b)", {{kInf}, {kInf}}), ElementsAre(ElementsAre(0.5), ElementsAre(0.5)));
  EXPECT_THAT(Gradients("%y = reduce(%a) {kind = max, dimensions = [0]}", {{3, 1, 3}}),
              ElementsAre(ElementsAre(0.5, 0, 0.5)));
  EXPECT_THAT(Gradients("%y = reduce(%a) {kind = min, dimensions = [0]}", {{-kInf, 1, -kInf}}),
              ElementsAre(ElementsAre(0.5, 0, 0.5)));
}

// One after the other, sums of ones in BF16 stand still at 256.
TEST(DerivativesAtEdges, OfManyGathersOfOneElementAreSummedInMorePrecision) {
  EXPECT_THAT(Gradients("%h = convert(%a) {dtype = bf16} %z = constant() {value = i32[] [0]} %i = broadcast_in_dim(%z) "
                        "{shape = [5000, 1]} %g = gather(%h, %i) {collapsed_slice_dims = [0], start_index_map = [0], "
                        "index_vector_dim = 1, slice_sizes = [1]} %y = convert(%g) {dtype = f64}",
                        {{1}}),
              ElementsAre(ElementsAre(4992)));
}

TEST(DerivativesAtEdges, OfLog10AreNotLostWhereThatTimesTheArgumentOverflows) {
  EXPECT_THAT(Gradients("%y = log10(%a)", {{1e308}}), ElementsAre(ElementsAre(testing::Gt(4e-309))));
}

TEST(DerivativesAtEdges, OfTiesOfProductsAreShared) {
  const auto dot = [](const char* algebra) {
    return absl::StrCat(
        "%y = dot_general(%a, %b) {lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0], algebra = ",
        algebra, "}");
  };
  EXPECT_THAT(
      Gradients(dot("max_plus"), {{1, 3, 0, 2}, {3, 1, 0, 2}}),
      ElementsAre(ElementsAre(testing::DoubleEq(1. / 3), testing::DoubleEq(1. / 3), 0, testing::DoubleEq(1. / 3)),
                  ElementsAre(testing::DoubleEq(1. / 3), testing::DoubleEq(1. / 3), 0, testing::DoubleEq(1. / 3))));
  EXPECT_THAT(Gradients(dot("min_plus"), {{-kInf, 1, 2}, {0, -kInf, 2}}),
              ElementsAre(ElementsAre(0.5, 0.5, 0), ElementsAre(0.5, 0.5, 0)));
  EXPECT_THAT(Gradients(dot("max_times"), {{2, 4, 1}, {4, 2, 1}}),
              ElementsAre(ElementsAre(2, 1, 0), ElementsAre(1, 2, 0)));
  EXPECT_THAT(Gradients(dot("max_plus"), {{}, {}}), ElementsAre(ElementsAre(), ElementsAre()));
}

TEST(DerivativesAtEdges, OfClampAreNobodysAtABound) {
  const std::vector<double> low = {0, 0, 0, 0, 0, 1, 2}, high = {2, 2, 2, 2, 2, 1, 1};
  EXPECT_THAT(Gradients("%y = clamp(%a, %b, %c)", {low, {-1, 0, 1, 2, 3, 1, 0}, high}),
              ElementsAre(ElementsAre(1, 0, 0, 0, 0, 0, 0), ElementsAre(0, 0, 1, 0, 0, 0, 0),
                          ElementsAre(0, 0, 0, 0, 1, 0, 1)));
}

TEST(DerivativesAtEdges, AreZeroWhereFunctionsAreConstant) {
  EXPECT_THAT(Gradients("%y = abs(%a)", {{-2, 0, 2}}), ElementsAre(ElementsAre(-1, 0, 1)));
  EXPECT_THAT(Gradients("%y = floor(%a)", {{1, 1.5}}), ElementsAre(ElementsAre(0, 0)));
  EXPECT_THAT(Gradients("%y = tanh(%a)", {{1000, -1000}}), ElementsAre(ElementsAre(0, 0)));
  EXPECT_THAT(Gradients("%y = logistic(%a)", {{1000, -1000}}), ElementsAre(ElementsAre(0, 0)));
  EXPECT_THAT(Gradients("%y = sqrt(%a)", {{0}}), ElementsAre(ElementsAre(kInf)));
}

TEST(DerivativesAtEdges, OfPowersKnowZeros) {
  EXPECT_THAT(Gradients("%y = pow(%a, %b)", {{0, 0, 0}, {0, 1, 2}}),
              ElementsAre(ElementsAre(0, 1, 0), ElementsAre(0, 0, 0)));
  // The exponent's derivative of a negative base is NaN, and stays there.
  EXPECT_THAT(Gradients("%y = pow(%a, %b)", {{-3}, {2}}, {"a"}), ElementsAre(ElementsAre(-6)));
}

TEST(DerivativesAtEdges, OfProductsDivideByNoZero) {
  const std::string product = "%y = reduce(%a) {kind = product, dimensions = [0]}";
  EXPECT_THAT(Gradients(product, {{2, 3, 4}}), ElementsAre(ElementsAre(12, 8, 6)));
  EXPECT_THAT(Gradients(product, {{2, 0, 4}}), ElementsAre(ElementsAre(0, 8, 0)));
  EXPECT_THAT(Gradients(product, {{0, 0, 4}}), ElementsAre(ElementsAre(0, 0, 0)));
}

TEST(DerivativesAtEdges, DoNotSeeTheBranchThatIsNotTaken) {
  EXPECT_THAT(Gradients(R"(%z = constant() {value = f64[2] [0, 0]} %one = constant() {value = f64[2] [1, 1]}
                           %p = compare(%a, %z) {direction = gt} %safe = select(%p, %a, %one) %l = log(%safe)
                           %y = select(%p, %l, %z))",
                        {{kNan, 2}}),
              ElementsAre(ElementsAre(0, 0.5)));
}

TEST(DerivativesAtEdges, OfScattersAreTheLastOnesAndSkippedOnesGetNothing) {
  const std::string scatter = R"(%i = constant() {value = i32[4] [1, 1, 2, 9]}
    %y = scatter(%a, %i, %b) {inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1)";
  EXPECT_THAT(Gradients(scatter + ", combiner = set}", {{1, 2, 3}, {4, 5, 6, 7}}),
              ElementsAre(ElementsAre(1, 0, 0), ElementsAre(0, 1, 1, 0)));
  EXPECT_THAT(Gradients(scatter + ", combiner = maximum}", {{1, 5, 3}, {5, 5, 6, 7}}),
              ElementsAre(ElementsAre(1, testing::DoubleEq(1.0 / 3), 0),
                          ElementsAre(testing::DoubleEq(1.0 / 3), testing::DoubleEq(1.0 / 3), 1, 0)));
  EXPECT_THAT(Gradients(scatter + ", combiner = multiply}", {{1, 0, 3}, {4, 5, 0, 7}}),
              ElementsAre(ElementsAre(1, 20, 0), ElementsAre(0, 0, 3, 0)));
}

// Returns `node`, a call of functions of %p and %q, which are %a and %b in the dtype.
std::string InDtype(const std::string& dtype, const std::string& node, bool has_second = false) {
  return absl::StrCat("%p = convert(%a) {dtype = ", dtype, "} ",
                      has_second ? absl::StrCat("%q = convert(%b) {dtype = ", dtype, "} ") : "", "%r = ", node,
                      " %y = convert(%r) {dtype = f64}");
}

testing::Matcher<double> About(double value, double error) {
  return testing::DoubleNear(value, error * std::abs(value));
}

TEST(DerivativesAtEdges, OfInverseTangentsStayInRange) {
  EXPECT_THAT(Gradients(InDtype("f16", "atan2(%p, %q)", true), {{300}, {300}}),
              ElementsAre(ElementsAre(About(1.0 / 600, 2e-3)), ElementsAre(About(-1.0 / 600, 2e-3))));
  for (const double size : {1e-25, 1e25}) {
    EXPECT_THAT(
        Gradients(InDtype("f32", "atan2(%p, %q)", true), {{size, 0, size, 3 * size}, {size, -size, 0, -size}}),
        ElementsAre(ElementsAre(About(0.5 / size, 1e-6), About(-1 / size, 1e-6), 0, About(-0.1 / size, 1e-6)),
                    ElementsAre(About(-0.5 / size, 1e-6), 0, About(-1 / size, 1e-6), About(-0.3 / size, 1e-6))));
  }
  EXPECT_THAT(Gradients("%y = atan2(%a, %b)", {{1, kInf}, {kInf, 1}}),
              ElementsAre(ElementsAre(0, 0), ElementsAre(0, 0)));
  EXPECT_THAT(Gradients(InDtype("f16", "atan(%p)"), {{300}}), ElementsAre(ElementsAre(About(1 / 90001.0, 0.01))));
  EXPECT_THAT(Gradients("%y = atan(%a)", {{-1e150, 1e200, kInf, 0, 1}}),
              ElementsAre(ElementsAre(About(1e-300, 1e-15), 0, 0, 1, 0.5)));
  EXPECT_THAT(Gradients(InDtype("f16", "asinh(%p)"), {{-300}}), ElementsAre(ElementsAre(About(1 / 300.0, 2e-3))));
  EXPECT_THAT(Gradients("%y = asinh(%a)", {{-1e200, 1e300, kInf, 0}}),
              ElementsAre(ElementsAre(About(1e-200, 1e-15), About(1e-300, 1e-15), 0, 1)));
}

TEST(DerivativesAtEdges, OfSaturatedFunctionsAreOfTheirResults) {
  EXPECT_THAT(Gradients("%y = logistic(%a)", {{-40, -700}}),
              ElementsAre(ElementsAre(About(std::exp(-40), 1e-14), About(std::exp(-700), 1e-12))));
  // The result is rounded near 1, and with it the derivative: by the last bit of 1, no more.
  constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
  const std::vector<double> far = {5, 15, 19, 30, 36, 40};
  const auto logistic = Gradients("%y = logistic(%a)", {far}), tanh = Gradients("%y = tanh(%a)", {far});
  for (size_t i = 0; i < far.size(); ++i) {
    const double s = 1 / (1 + std::exp(-far[i])), c = std::cosh(far[i]);
    EXPECT_NEAR(logistic[0][i], s * std::exp(-far[i]) * s, 2 * kEpsilon);
    EXPECT_NEAR(tanh[0][i], 1 / (c * c), 4 * kEpsilon);
    EXPECT_GE(logistic[0][i], 0);
    EXPECT_GE(tanh[0][i], 0);
  }
  EXPECT_THAT(Gradients("%y = tanh(%a)", {{0}}), ElementsAre(ElementsAre(1)));
  EXPECT_THAT(Gradients(InDtype("f32", "rsqrt(%p)"), {{1e-20, 1e20, 0, kInf}}),
              ElementsAre(ElementsAre(About(-0.5e30, 1e-6), About(-0.5e-30, 1e-6), -kInf, 0)));
}

// Returns the tangents of the cotangent of `first` for the tangent 1 of `second`: mixed second derivatives of %y.
std::vector<double> SecondDerivatives(const std::string& node, const std::vector<std::vector<double>>& arguments,
                                      const std::string& first, const std::string& second) {
  std::string text = "graph \"g\" {\n";
  std::vector<Literal> literals;
  for (size_t i = 0; i < arguments.size(); ++i) {
    absl::StrAppend(&text, "%", std::string(1, static_cast<char>('a' + i)), " = input : f64[", arguments[i].size(),
                    "]\n");
    literals.push_back(LiteralOf(arguments[i]));
  }
  absl::StatusOr<Graph> graph = ParseGraph(absl::StrCat(text, node, "\noutput \"y\" = %y\n}"), CoreRegistry());
  EXPECT_TRUE(graph.ok()) << graph.status();
  EXPECT_TRUE(InferTypes(&*graph).ok());
  const ConcreteType result = ToConcreteType(graph->type(graph->outputs()[0].value));
  literals.push_back(LiteralOf(std::vector<double>(static_cast<size_t>(result.shape[0]), 1)));
  absl::StatusOr<Graph> vjp = Differentiate(*graph, {.mode = DerivativeMode::kVjp, .wrt = {first}});
  EXPECT_TRUE(vjp.ok()) << vjp.status();
  EXPECT_TRUE(InferTypes(&*vjp).ok());
  absl::StatusOr<Graph> jvp = Differentiate(*vjp, {.mode = DerivativeMode::kJvp, .wrt = {second}});
  EXPECT_TRUE(jvp.ok()) << jvp.status();
  const auto guards = InferTypes(&*jvp);
  literals.push_back(LiteralOf(std::vector<double>(arguments[static_cast<size_t>(second[0] - 'a')].size(), 1)));
  const auto results = EvaluateReference(*jvp, *guards, literals);
  EXPECT_TRUE(results.ok()) << results.status();
  if (!results.ok()) return {};
  return {(*results)[0].values<double>().begin(), (*results)[0].values<double>().end()};
}

TEST(DerivativesAtEdges, OfManyTiesInSixteenBitsAreCountedRight) {
  const std::vector<double> ones(5000, 1);
  for (const std::string dtype : {"f16", "bf16"}) {
    const std::string scatter = absl::StrCat("%i = constant() {value = i32[1] [0]} %z = broadcast_in_dim(%i) {shape = ",
                                             "[5000], broadcast_dimensions = [0]} ");
    const auto gradients =
        Gradients(absl::StrCat(scatter, InDtype(dtype,
                                                "scatter(%p, %z, %q) {inserted_window_dims = [0], "
                                                "scatter_dims_to_operand_dims = [0], index_vector_dim = 1, "
                                                "combiner = maximum}",
                                                true)),
                  {{0}, ones});
    ASSERT_EQ(gradients.size(), 2u);
    EXPECT_THAT(gradients[1], testing::Each(About(1.0 / 5000, 1e-2))) << dtype;
  }
}

TEST(DerivativesAtEdges, OfExtremesSumNoTangentsInSixteenBits) {
  // Tangents of 60000 at four ties: their sum is none of F16, their mean is.
  absl::StatusOr<Graph> graph = ParseGraph(R"(graph "g" { %x = input : f64[4] %h = convert(%x) {dtype = f16}
      %m = reduce(%h) {kind = max, dimensions = [0]} %y = convert(%m) {dtype = f64} output "y" = %y })",
                                           CoreRegistry());
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_TRUE(InferTypes(&*graph).ok());
  absl::StatusOr<Graph> jvp = Differentiate(*graph, {.mode = DerivativeMode::kJvp, .wrt = {}});
  ASSERT_TRUE(jvp.ok()) << jvp.status();
  const auto guards = InferTypes(&*jvp);
  const std::vector<double> x(4, 2), t(4, 60000);
  const auto results = EvaluateReference(*jvp, *guards, {LiteralOf(x), LiteralOf(t)});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_THAT((*results)[0].values<double>(), ElementsAre(60000));
}

TEST(DerivativesAtEdges, OfMultiplyingScattersStayInRange) {
  const auto scatter = [](int updates) {
    return absl::StrCat("%i = constant() {value = i32[1] [0]} %z = broadcast_in_dim(%i) {shape = [", updates,
                        "], broadcast_dimensions = [0]} ",
                        InDtype("f32",
                                "scatter(%p, %z, %q) {inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
                                "index_vector_dim = 1, combiner = multiply}",
                                true));
  };
  EXPECT_THAT(Gradients(scatter(2), {{1e-30}, {1e-30, 1e20}}),
              ElementsAre(ElementsAre(About(1e-10, 1e-6)), ElementsAre(About(1e-10, 1e-6), 0)));
  EXPECT_THAT(Gradients(scatter(1), {{1e30}, {1e30}}),
              ElementsAre(ElementsAre(About(1e30, 1e-6)), ElementsAre(About(1e30, 1e-6))));
  // Too many to compare each with each: by halves, in a wider dtype.
  std::vector<double> many(2000, 1);
  many[0] = many[1] = many[2] = 1e-20, many[3] = many[4] = 1e20;
  const auto gradients = Gradients(scatter(2000), {{1}, many});
  ASSERT_EQ(gradients.size(), 2u);
  EXPECT_THAT(gradients[1][0], About(1, 1e-6));
  EXPECT_THAT(gradients[1][5], About(1e-20, 1e-6));
  many[7] = 0;
  const auto one_zero = Gradients(scatter(2000), {{1}, many});
  ASSERT_EQ(one_zero.size(), 2u);
  EXPECT_EQ(one_zero[1][0], 0);
  EXPECT_THAT(one_zero[1][7], About(1e-20, 1e-6));
}

TEST(DerivativesAtEdges, OfMultiplyingScattersAreRightToSecondOrderAtZeros) {
  const std::string scatter = R"(%i = constant() {value = i32[4] [0, 1, 0, 7]}
    %y = scatter(%a, %i, %b) {inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1,
      combiner = multiply})";
  const std::vector<std::vector<double>> at = {{0, 5}, {3, 0, 0, 9}};
  EXPECT_THAT(SecondDerivatives(scatter, at, "a", "b"), ElementsAre(3, 1));
  EXPECT_THAT(SecondDerivatives(scatter, at, "b", "a"), ElementsAre(0, 1, 3, 0));
  EXPECT_THAT(SecondDerivatives(scatter, {{2, 5}, {0, 0, 0, 9}}, "b", "b"), ElementsAre(2, 0, 2, 0));
}

// 1,500 updates of 700 places, the first 100 of which have three each and the others two.
TEST(DerivativesAtEdges, OfManyMultiplyingUpdatesAreRightToSecondOrderAtZeros) {
  constexpr size_t kUpdates = 1500, kPlaces = 700;
  std::vector<std::string> places;
  for (size_t i = 0; i < kUpdates; ++i) places.push_back(absl::StrCat(i % kPlaces));
  const std::string scatter =
      absl::StrCat("%i = constant() {value = i32[", kUpdates, "] [", absl::StrJoin(places, ", "),
                   "]} %y = scatter(%a, %i, %b) {inserted_window_dims = [0], "
                   "scatter_dims_to_operand_dims = [0], index_vector_dim = 1, "
                   "combiner = multiply}");
  std::vector<double> operand(kPlaces, 1), updates(kUpdates, 1);
  updates[0] = updates[700] = 0, updates[1400] = 3;
  updates[1] = 2, updates[701] = 5, updates[1401] = 7;
  operand[1] = 10;
  const auto gradients = Gradients(scatter, {operand, updates});
  ASSERT_EQ(gradients.size(), 2u);
  EXPECT_THAT((std::vector<double>{gradients[0][0], gradients[0][1], gradients[0][2]}), ElementsAre(0, 70, 1));
  const auto at = [](const std::vector<double>& of) {
    return std::vector<double>{of[0], of[700], of[1400], of[1], of[701], of[1401], of[2], of[1499], of[699]};
  };
  EXPECT_THAT(at(gradients[1]), ElementsAre(0, 0, 0, 350, 140, 100, 1, 1, 1));
  updates[700] = 4;
  EXPECT_THAT(at(Gradients(scatter, {operand, updates})[1]), ElementsAre(12, 0, 0, 350, 140, 100, 1, 1, 1));
  updates[700] = 0;
  EXPECT_THAT(at(SecondDerivatives(scatter, {operand, updates}, "b", "b")), ElementsAre(3, 3, 0, 120, 90, 70, 2, 2, 1));
  EXPECT_THAT(at(SecondDerivatives(scatter, {operand, updates}, "b", "a")), ElementsAre(0, 0, 0, 35, 14, 10, 1, 1, 1));
}

TEST(DerivativesAtEdges, OfPowersAreSymmetricToSecondOrder) {
  const std::vector<std::vector<double>> at = {{2, 4, 0}, {0, 0, 0}};
  EXPECT_THAT(SecondDerivatives("%y = pow(%a, %b)", at, "a", "b"), ElementsAre(0.5, 0.25, 0));
  EXPECT_THAT(SecondDerivatives("%y = pow(%a, %b)", at, "b", "a"), ElementsAre(0.5, 0.25, 0));
  EXPECT_THAT(SecondDerivatives("%y = pow(%a, %b)", {{2, 0, 1e-300, kInf, 0}, {0, 0, 0, 0, 2}}, "a", "a"),
              ElementsAre(0, 0, 0, 0, 2));
}

TEST(DerivativesAtEdges, AskForNoRuleOfAReference) {
  absl::StatusOr<Graph> graph = ParseGraph(R"(graph "g" { %x = input : f64[2] %a = input : f64[3,3]
      %q:2 = tensord.linalg.v1.HouseholderQr(%a) %y = pad_to_match(%x, %q:0) {dimension = 0} output "y" = %y })",
                                           FamilyRegistry());
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto types = InferTypes(&*graph);
  ASSERT_TRUE(types.ok()) << types.status();
  for (const DerivativeMode mode : {DerivativeMode::kJvp, DerivativeMode::kVjp}) {
    const absl::StatusOr<Graph> derivative = Differentiate(*graph, {.mode = mode, .wrt = {}});
    EXPECT_TRUE(derivative.ok()) << derivative.status();
  }
}

}  // namespace
}  // namespace tensord
