#ifndef TENSORD_TESTS_UNIT_ENGINE_AUTODIFF_RULE_CASE_H_
#define TENSORD_TESTS_UNIT_ENGINE_AUTODIFF_RULE_CASE_H_

#include <random>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "engine/autodiff/differentiate.h"
#include "engine/families/all_families.h"
#include "engine/ir/parser.h"
#include "engine/ir/printer.h"
#include "engine/ir/verifier.h"
#include "gtest/gtest.h"
#include "tests/testlib/graphs/derivative_check.h"

namespace tensord {

// A function: its inputs, with numbers between `low` and `high`, and its nodes, the last of which is %y.
struct RuleCase {
  std::string name, inputs, nodes;
  double low = 0.2, high = 0.9;
};

inline Graph Parsed(const RuleCase& c, absl::string_view dtype) {
  const std::string text =
      absl::StrReplaceAll(absl::StrCat("graph \"g\" {\n", c.inputs, "\n", c.nodes, "\n output \"y\" = %y\n}"),
                          {{"T[", absl::StrCat(dtype, "[")}});
  absl::StatusOr<Graph> graph = ParseGraph(text, FamilyRegistry());
  EXPECT_TRUE(graph.ok()) << graph.status() << "\n" << text;
  if (!graph.ok()) return {};
  const auto guards = InferTypes(&*graph);
  EXPECT_TRUE(guards.ok()) << guards.status() << "\n" << text;
  return *std::move(graph);
}

// The sizes of symbols; 3 of those that are not there.
using SymbolSizes = absl::flat_hash_map<std::string, int64_t>;

// Arguments for the inputs.
inline std::vector<Literal> RandomArguments(const Graph& graph, double low, double high, std::mt19937_64* random,
                                            const SymbolSizes& sizes = {}) {
  const auto size_of = [&sizes](const DimAtom& atom) -> absl::StatusOr<int64_t> {
    const auto found = sizes.find(atom.symbol);
    return found == sizes.end() ? 3 : found->second;
  };
  std::uniform_real_distribution<double> number(low, high);
  std::vector<Literal> arguments;
  for (const GraphInput& input : graph.inputs()) {
    ConcreteType type{.dtype = input.type.dtype, .shape = {}};
    for (const Dim& dim : input.type.shape) {
      type.shape.push_back(dim.size.Evaluate(size_of).value());
    }
    absl::StatusOr<Literal> literal = Literal::Create(type);
    EXPECT_TRUE(literal.ok());
    double* const parts = reinterpret_cast<double*>(literal->mutable_data());
    for (size_t i = 0; i < literal->bytes().size() / sizeof(double); ++i) parts[i] = number(*random);
    arguments.push_back(*std::move(literal));
  }
  return arguments;
}

inline void ExpectRightDerivatives(const Graph& graph, const RuleCase& c, absl::string_view what,
                                   const SymbolSizes& sizes = {}) {
  std::mt19937_64 random(7);
  const std::vector<Literal> arguments = RandomArguments(graph, c.low, c.high, &random, sizes);
  const absl::StatusOr<DerivativeErrors> errors = MeasureDerivatives(graph, arguments, &random);
  ASSERT_TRUE(errors.ok()) << c.name << " " << what << ": " << errors.status() << "\n" << PrintGraph(graph);
  EXPECT_LT(errors->jvp, 1e-7) << c.name << " " << what << "\n" << PrintGraph(graph);
  EXPECT_LT(errors->adjoint, 1e-12) << c.name << " " << what << "\n" << PrintGraph(graph);
}

// Checks the function, and the derivatives of its JVP and of its VJP.
inline void ExpectRightRule(const RuleCase& c, absl::string_view dtype, const SymbolSizes& sizes = {}) {
  const Graph graph = Parsed(c, dtype);
  if (graph.nodes().empty()) return;
  ExpectRightDerivatives(graph, c, dtype, sizes);
  for (const DerivativeMode mode : {DerivativeMode::kJvp, DerivativeMode::kVjp}) {
    absl::StatusOr<Graph> derivative = Differentiate(graph, {.mode = mode, .wrt = {}, .keep_outputs = true});
    ASSERT_TRUE(derivative.ok()) << derivative.status();
    const auto guards = InferTypes(&*derivative);
    ASSERT_TRUE(guards.ok()) << guards.status() << "\n" << PrintGraph(*derivative);
    ExpectRightDerivatives(*derivative, c, mode == DerivativeMode::kJvp ? "of its JVP" : "of its VJP", sizes);
  }
}

}  // namespace tensord

#endif  // TENSORD_TESTS_UNIT_ENGINE_AUTODIFF_RULE_CASE_H_
