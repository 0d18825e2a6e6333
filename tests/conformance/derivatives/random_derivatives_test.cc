// Derivatives of random graphs: against central differences of the reference evaluator, against each other, and against
// themselves.

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/autodiff/differentiate.h"
#include "engine/base/status_macros.h"
#include "engine/ir/printer.h"
#include "engine/ir/verifier.h"
#include "engine/reference/evaluator.h"
#include "tests/conformance/derivatives/smooth_text.h"
#include "tests/testlib/graphs/derivative_check.h"
#include "tests/testlib/graphs/parsed_graph.h"
#include "tests/testlib/property/seed_range.h"

namespace tensord {
namespace {

constexpr double kMostJvpError = 1e-6, kMostAdjointError = 1e-12;

std::vector<Literal> RandomPoint(const Graph& graph, int64_t p, int64_t q, std::mt19937_64* random) {
  std::uniform_real_distribution<double> number(-0.9, 0.9);
  std::vector<Literal> arguments;
  for (const GraphInput& input : graph.inputs()) {
    ConcreteType type{.dtype = input.type.dtype, .shape = {}};
    for (const Dim& dim : input.type.shape) {
      type.shape.push_back(*dim.size.Evaluate(
          [&](const DimAtom& atom) -> absl::StatusOr<int64_t> { return atom.symbol == "p" ? p : q; }));
    }
    Literal literal = *Literal::Create(type);
    double* const parts = reinterpret_cast<double*>(literal.mutable_data());
    for (size_t i = 0; i < literal.bytes().size() / sizeof(double); ++i) parts[i] = number(*random);
    arguments.push_back(std::move(literal));
  }
  return arguments;
}

// Returns the errors at one of a few points. Between central differences there may be a kink, which another point has
// elsewhere.
absl::StatusOr<DerivativeErrors> MeasuredErrors(const Graph& graph, uint64_t seed) {
  DerivativeErrors errors;
  for (uint64_t point = 0; point < 4; ++point) {
    std::mt19937_64 random(4 * seed + point);
    const int64_t p = 1 + static_cast<int64_t>(random() % 3), q = 1 + static_cast<int64_t>(random() % 3);
    ASSIGN_OR_RETURN(errors, MeasureDerivatives(graph, RandomPoint(graph, p, q, &random), &random));
    if (errors.adjoint > kMostAdjointError || errors.jvp <= kMostJvpError) break;
  }
  return errors;
}

void ExpectRight(const Graph& graph, uint64_t seed, const std::string& what) {
  const absl::StatusOr<DerivativeErrors> errors = MeasuredErrors(graph, seed);
  ASSERT_TRUE(errors.ok()) << what << " of seed " << seed << ": " << errors.status() << "\n" << PrintGraph(graph);
  EXPECT_LE(errors->jvp, kMostJvpError) << what << " of seed " << seed << "\n" << PrintGraph(graph);
  EXPECT_LE(errors->adjoint, kMostAdjointError) << what << " of seed " << seed << "\n" << PrintGraph(graph);
}

TEST(RandomDerivatives, AgreeWithDifferencesAndWithEachOther) {
  const property::SeedRange seeds = property::ChosenSeeds({.first = 1, .count = 200});
  for (int64_t i = 0; i < seeds.count && !HasFailure(); ++i) {
    const uint64_t seed = seeds.first + static_cast<uint64_t>(i);
    const Graph graph = TypedGraph(MakeSmoothText(seed));
    ExpectRight(graph, seed, "the graph");
    for (const DerivativeMode mode : {DerivativeMode::kJvp, DerivativeMode::kVjp}) {
      const DerivativeRequest request{.mode = mode, .wrt = {}, .keep_outputs = true};
      absl::StatusOr<Graph> derivative = Differentiate(graph, request);
      ASSERT_TRUE(derivative.ok()) << derivative.status();
      const absl::StatusOr<Graph> again = Differentiate(graph, request);
      ASSERT_TRUE(again.ok());
      ASSERT_EQ(PrintGraph(*derivative), PrintGraph(*again)) << "seed " << seed;
      const absl::Status verified = VerifyTypes(*derivative);
      ASSERT_TRUE(verified.ok()) << "seed " << seed << ": " << verified << PrintGraph(*derivative);
      if (seed % 4 == 0) ExpectRight(*derivative, seed, "a derivative");
    }
  }
}

absl::StatusOr<std::vector<Literal>> Evaluate(Graph graph, const std::vector<Literal>& arguments) {
  ASSIGN_OR_RETURN(const std::vector<ShapeGuard> guards, InferTypes(&graph));
  return EvaluateReference(graph, guards, arguments);
}

// Names some of the values, or an input alone.
std::vector<std::string> RandomCheckpoints(const Graph& graph, std::mt19937_64* random) {
  std::vector<std::string> names = {graph.inputs()[0].name};
  const uint64_t one_in = 2 + (*random)() % 4;
  for (const Node& node : graph.nodes()) {
    if ((*random)() % one_in == 0) names.push_back(node.name);
  }
  return names;
}

// What is computed again is what was computed before, bit for bit.
TEST(RandomDerivatives, AreTheSameWithAnyCheckpoints) {
  const property::SeedRange seeds = property::ChosenSeeds({.first = 1, .count = 200});
  int64_t compared = 0;
  for (int64_t i = 0; i < seeds.count && !HasFailure(); ++i) {
    const uint64_t seed = seeds.first + static_cast<uint64_t>(i);
    const Graph graph = TypedGraph(MakeSmoothText(seed));
    if (graph.inputs().empty()) continue;
    std::mt19937_64 random(seed);
    const int64_t p = 1 + static_cast<int64_t>(random() % 3), q = 1 + static_cast<int64_t>(random() % 3);
    DerivativeRequest request{.mode = DerivativeMode::kVjp, .wrt = {}, .keep_outputs = true};
    absl::StatusOr<Graph> all = Differentiate(graph, request);
    ASSERT_TRUE(all.ok()) << all.status();
    const std::vector<Literal> arguments = RandomPoint(*all, p, q, &random);
    request.checkpoints = RandomCheckpoints(graph, &random);
    const absl::StatusOr<Graph> some = Differentiate(graph, request);
    ASSERT_TRUE(some.ok()) << "seed " << seed << ": " << some.status();
    const absl::Status verified = VerifyTypes(*some);
    ASSERT_TRUE(verified.ok()) << "seed " << seed << ": " << verified << PrintGraph(*some);
    const absl::StatusOr<std::vector<Literal>> expected = Evaluate(*all, arguments), found = Evaluate(*some, arguments);
    ASSERT_EQ(expected.ok(), found.ok()) << "seed " << seed << ": " << expected.status() << found.status();
    if (!expected.ok()) continue;  // a point that the graph refuses, as a singular matrix
    ++compared;
    ASSERT_EQ(expected->size(), found->size());
    for (size_t k = 0; k < found->size(); ++k) {
      ASSERT_EQ((*expected)[k].bytes(), (*found)[k].bytes())
          << "seed " << seed << ", output " << k << PrintGraph(*some);
    }
  }
  EXPECT_GT(compared, seeds.count / 2);
}

}  // namespace
}  // namespace tensord
