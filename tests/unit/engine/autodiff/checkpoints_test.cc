// Derivatives that keep few values, and derivatives in two graphs.
#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/autodiff/differentiate.h"
#include "engine/base/refusal.h"
#include "engine/base/stop_signal.h"
#include "engine/ir/printer.h"
#include "engine/ir/verifier.h"
#include "engine/ops/core_ops.h"
#include "engine/reference/evaluator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testlib/graphs/parsed_graph.h"
#include "tests/unit/engine/autodiff/rule_case.h"

namespace tensord {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<Literal> Evaluated(Graph graph, const std::vector<Literal>& arguments) {
  const auto guards = InferTypes(&graph);
  EXPECT_TRUE(guards.ok()) << guards.status() << "\n" << PrintGraph(graph);
  if (!guards.ok()) return {};
  absl::StatusOr<std::vector<Literal>> results = EvaluateReference(graph, *guards, arguments);
  EXPECT_TRUE(results.ok()) << results.status() << "\n" << PrintGraph(graph);
  return results.ok() ? *std::move(results) : std::vector<Literal>();
}

Literal Doubles(const std::vector<double>& values) {
  Literal literal = *Literal::Create({.dtype = DType::kF64, .shape = {static_cast<int64_t>(values.size())}});
  std::copy(values.begin(), values.end(), literal.mutable_values<double>().begin());
  return literal;
}

// x is multiplied with w, and goes through sine, layer by layer: h1, h2, ….
Graph Chain(int layers) {
  std::string text = "graph \"chain\" {\n  %x = input : f64[n,3]\n";
  for (int i = 1; i <= layers; ++i) absl::StrAppend(&text, "  %w", i, " = input : f64[3,3]\n");
  for (int i = 1; i <= layers; ++i) {
    absl::StrAppend(&text, "  %z", i, " = dot_general(%", i == 1 ? "x" : absl::StrCat("h", i - 1), ", %w", i,
                    ") {lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]}\n  %h", i, " = sin(%z", i,
                    ")\n");
  }
  absl::StrAppend(&text, "  %y = reduce(%h", layers, ") {kind = sum, dimensions = [0, 1]}\n  output \"y\" = %y\n}");
  return TypedGraph(text);
}

std::vector<Literal> ArgumentsOf(const Graph& graph, uint64_t seed = 7) {
  std::mt19937_64 random(seed);
  return RandomArguments(graph, 0.2, 0.9, &random);
}

TEST(Checkpoints, GiveTheSameValues) {
  const Graph chain = Chain(9);
  const std::vector<Literal> arguments = ArgumentsOf(chain);
  const auto all = Differentiate(chain, {.mode = DerivativeMode::kGrad, .keep_outputs = true});
  ASSERT_TRUE(all.ok()) << all.status();
  const std::vector<Literal> expected = Evaluated(*all, arguments);
  for (const std::vector<std::string>& kept :
       std::vector<std::vector<std::string>>{{"x"}, {"h3", "h6"}, {"h3:0", "z7", "y"}, {"h9"}}) {
    const DerivativeRequest request{.mode = DerivativeMode::kGrad, .keep_outputs = true, .checkpoints = kept};
    const auto some = Differentiate(chain, request);
    ASSERT_TRUE(some.ok()) << some.status();
    EXPECT_EQ(Evaluated(*some, arguments), expected) << PrintGraph(*some);
    EXPECT_EQ(PrintGraph(*some), PrintGraph(*Differentiate(chain, request)));
  }
}

// Each node is computed again at most once, after the backward pass has gone through the layers behind it.
TEST(Checkpoints, AreFollowedByLateRecomputation) {
  const auto derivative =
      Differentiate(Chain(8), {.mode = DerivativeMode::kGrad, .keep_outputs = true, .checkpoints = {"h2", "h4", "h6"}});
  ASSERT_TRUE(derivative.ok()) << derivative.status();
  std::vector<std::string> order;
  for (const Node& node : derivative->nodes()) {
    if (absl::EndsWith(node.name, ".again")) order.push_back(node.name);
    if (node.op == &Def(CoreOp::kOptimizationBarrier)) order.push_back("barrier");
    // The cotangent of a weight ends its layer.
    if (Is(*node.op, CoreOp::kDotGeneral) && absl::StrContains(node.name, ".vjp")) order.push_back("vjp");
  }
  std::vector<size_t> at;
  for (const char* name : {"z8.again", "z6.again", "z4.again", "z2.again"}) {
    const auto found = std::find(order.begin(), order.end(), name);
    ASSERT_NE(found, order.end()) << name << "\n" << PrintGraph(*derivative);
    EXPECT_EQ(std::count(order.begin(), order.end(), name), 1);
    at.push_back(static_cast<size_t>(found - order.begin()));
  }
  for (size_t k = 1; k < at.size(); ++k) {
    EXPECT_LT(at[k - 1], at[k]);
    EXPECT_GE(
        std::count(order.begin() + static_cast<int64_t>(at[k - 1]), order.begin() + static_cast<int64_t>(at[k]), "vjp"),
        2)
        << PrintGraph(*derivative);
  }
  EXPECT_EQ(std::find(order.begin(), order.end(), "h2.again"), order.end());
}

TEST(Checkpoints, StayLinearInLongGraphs) {
  std::string body = "graph \"g\" {\n  %x = input : f64[]\n  %a0 = sin(%x)\n";
  for (int i = 1; i < 5000; ++i) absl::StrAppend(&body, "  %a", i, " = sin(%a", i - 1, ")\n");
  const Graph graph = TypedGraph(absl::StrCat(body, "  output \"y\" = %a4999\n}"));
  const auto all = Differentiate(graph, {.mode = DerivativeMode::kGrad});
  const auto none = Differentiate(graph, {.mode = DerivativeMode::kGrad, .checkpoints = {"x"}});
  ASSERT_TRUE(all.ok() && none.ok()) << none.status();
  EXPECT_LE(none->nodes().size(), all->nodes().size() + 2);  // barriers; the forward pass is computed once here
  const DerivativeBounds bounds{.nodes = 12'000};
  const absl::Status refused =
      Differentiate(graph,
                    {.mode = DerivativeMode::kGrad, .keep_outputs = true, .checkpoints = {"x"}, .bounds = bounds})
          .status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
}

TEST(Checkpoints, KeepSizesThatTheRunDecidesAndAllResultsOfANode) {
  const Graph graph = TypedGraph(R"(graph "g" {
  %x = input : f64[n,n]
  %k = input : i64[]
  %q:2 = tensord.linalg.v1.Qr(%x)
  %r = sin(%q:1)
  %t = dynamic_truncate(%r, %k) {dimension = 0}
  %s = exp(%t)
  %u = multiply(%s, %s)
  %y = reduce(%u) {kind = sum, dimensions = [0, 1]}
  output "y" = %y
})");
  std::vector<Literal> arguments =
      ArgumentsOf(TypedGraph("graph \"g\" {\n %x = input : f64[n,n]\n output \"y\" = %x\n}"));
  arguments.push_back(Literal::Scalar(int64_t{2}));
  const auto all = Differentiate(graph, {.mode = DerivativeMode::kGrad, .wrt = {"x"}});
  const auto kept = Differentiate(graph, {.mode = DerivativeMode::kGrad, .wrt = {"x"}, .checkpoints = {"q"}});
  ASSERT_TRUE(all.ok() && kept.ok()) << all.status() << kept.status();
  EXPECT_EQ(Evaluated(*kept, arguments), Evaluated(*all, arguments));
  const std::string text = PrintGraph(*kept);
  EXPECT_THAT(text, testing::Not(HasSubstr("q.again"))) << text;
  EXPECT_THAT(text, testing::Not(HasSubstr("t.again"))) << text;
  EXPECT_THAT(PrintGraph(*Differentiate(graph, {.mode = DerivativeMode::kGrad, .wrt = {"x"}, .checkpoints = {"x"}})),
              HasSubstr("q.again"));
}

TEST(Checkpoints, Refuse) {
  const Graph chain = Chain(2);
  struct Case {
    DerivativeMode mode;
    std::vector<std::string> names;
    Refusal refusal;
    std::string words;
  };
  for (const Case& c : {
           Case{DerivativeMode::kVjp, {"h9"}, Refusal::kValueUnknown, "checkpoints name \"h9\", which is no value"},
           Case{DerivativeMode::kVjp, {"h1:1"}, Refusal::kValueUnknown, "\"h1:1\""},
           Case{DerivativeMode::kVjp, {"h1:"}, Refusal::kValueUnknown, "\"h1:\""},
           Case{DerivativeMode::kVjp, {"h1:-1"}, Refusal::kValueUnknown, "\"h1:-1\""},
           Case{DerivativeMode::kVjp, {""}, Refusal::kValueUnknown, "\"\""},
           Case{DerivativeMode::kGrad, {"h1", "h2", "h1:0"}, Refusal::kNameDuplicate, "\"h1:0\" twice"},
           Case{DerivativeMode::kJvp, {"h1"}, Refusal::kAttributeInvalid, "no backward pass"},
       }) {
    const absl::Status status = Differentiate(chain, {.mode = c.mode, .checkpoints = c.names}).status();
    EXPECT_TRUE(IsRefusal(status, c.refusal)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.words));
  }
  const absl::Status split = DifferentiateInTwo(chain, {.mode = DerivativeMode::kJvp}).status();
  EXPECT_TRUE(IsRefusal(split, Refusal::kAttributeInvalid)) << split;
}

// Runs both passes, the second with the first one's residuals, and compares with the whole.
void ExpectSameInTwo(const Graph& graph, const DerivativeRequest& request, const std::vector<Literal>& arguments) {
  DerivativeRequest kept = request;
  kept.keep_outputs = true;
  const auto whole = Differentiate(graph, kept);
  const auto passes = DifferentiateInTwo(graph, request);
  ASSERT_TRUE(whole.ok() && passes.ok()) << whole.status() << passes.status();
  const size_t inputs = graph.inputs().size(), outputs = graph.outputs().size();
  const std::vector<Literal> given(arguments.begin(), arguments.begin() + static_cast<int64_t>(inputs));
  std::vector<Literal> found = Evaluated(passes->forward, given);
  ASSERT_EQ(found.size(), passes->forward.outputs().size());
  std::vector<Literal> for_backward;
  size_t cotangents = 0;
  for (const GraphInput& input : passes->backward.inputs()) {
    const auto named = [&](const auto& one) { return one.name == input.name; };
    const auto own = std::find_if(graph.inputs().begin(), graph.inputs().end(), named);
    const auto& from = passes->forward.outputs();
    const auto residual = std::find_if(from.begin() + static_cast<int64_t>(outputs), from.end(), named);
    if (own != graph.inputs().end()) {
      for_backward.push_back(given[static_cast<size_t>(own - graph.inputs().begin())]);
    } else if (residual != from.end()) {
      for_backward.push_back(found[static_cast<size_t>(residual - from.begin())]);
    } else {
      for_backward.push_back(arguments[inputs + cotangents++]);
    }
  }
  EXPECT_EQ(inputs + cotangents, arguments.size());
  found.resize(outputs);
  for (Literal& slope : Evaluated(passes->backward, for_backward)) found.push_back(std::move(slope));
  EXPECT_EQ(found, Evaluated(*whole, arguments)) << PrintGraph(passes->forward) << PrintGraph(passes->backward);
}

TEST(InTwo, GivesWhatTheWholeGives) {
  const Graph chain = Chain(4);
  ExpectSameInTwo(chain, {.mode = DerivativeMode::kGrad}, ArgumentsOf(chain));
  ExpectSameInTwo(chain, {.mode = DerivativeMode::kGrad, .checkpoints = {"h2"}}, ArgumentsOf(chain));
  const Graph several = TypedGraph(R"(graph "g" {
  %x = input : f64[n,2]
  %v = input : f64[2]
  %unused = input : f64[5]
  %c = constant() {value = f64[2] [2, 3]}
  %p = multiply(%v, %c)
  %b = broadcast_in_dim(%p) {shape = [n, 2], broadcast_dimensions = [1]}
  %m = multiply(%x, %b)
  %e = exp(%m)
  output "e" = %e
  output "x" = %x
  output "p" = %p
})");
  std::vector<Literal> arguments = ArgumentsOf(several);
  for (const Literal& ct : Evaluated(several, arguments)) arguments.push_back(ct);
  ExpectSameInTwo(several, {.mode = DerivativeMode::kVjp}, arguments);
  ExpectSameInTwo(several, {.mode = DerivativeMode::kVjp, .wrt = {"v"}, .checkpoints = {"v"}}, arguments);
}

TEST(InTwo, NamesResidualsAndLeavesOutWhatIsNotRead) {
  const auto passes = DifferentiateInTwo(TypedGraph(R"(graph "g" {
  %x = input : f64[2]
  %bias = input : f64[2]
  %w = input : f64[2]
  %s = sin(%x)
  %e = exp(%s)
  %m = multiply(%e, %w)
  %z = add(%m, %bias)
  output "e.residual" = %z
})"),
                                         {.mode = DerivativeMode::kVjp});
  ASSERT_TRUE(passes.ok()) << passes.status();
  std::vector<std::string> outputs, inputs;
  for (const GraphOutput& output : passes->forward.outputs()) outputs.push_back(output.name);
  for (const GraphInput& input : passes->backward.inputs()) inputs.push_back(input.name);
  EXPECT_THAT(outputs, ElementsAre("e.residual", "e.residual2"));
  EXPECT_THAT(inputs, ElementsAre("x", "w", "e.residual2", "e.residual.cotangent"));
  EXPECT_TRUE(VerifyTypes(passes->forward).ok() && VerifyTypes(passes->backward).ok());
}

TEST(InTwo, GivesSizesThatTheRunDecidesSymbols) {
  const Graph graph = TypedGraph(R"(graph "g" {
  %x = input : f64[4]
  %k = input : i64[]
  %t = dynamic_truncate(%x, %k) {dimension = 0}
  %y = exp(%t)
  output "y" = %y
})");
  const auto passes = DifferentiateInTwo(graph, {.mode = DerivativeMode::kVjp});
  ASSERT_TRUE(passes.ok()) << passes.status();
  const std::vector<Literal> arguments = {Doubles({1, 2, 3, 4}), Literal::Scalar(int64_t{3}), Doubles({1, -1, 2})};
  ExpectSameInTwo(graph, {.mode = DerivativeMode::kVjp}, arguments);
}

}  // namespace
}  // namespace tensord
