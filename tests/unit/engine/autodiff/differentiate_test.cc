#include "engine/autodiff/differentiate.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/stop_signal.h"
#include "engine/ir/parser.h"
#include "engine/ir/printer.h"
#include "engine/ir/verifier.h"
#include "engine/ops/core_ops.h"
#include "engine/ops/semiring.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tensord {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Graph Parsed(absl::string_view body) {
  absl::StatusOr<Graph> graph = ParseGraph(absl::StrCat("graph \"g\" {\n", body, "\n}"), CoreRegistry());
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return {};
  EXPECT_TRUE(InferTypes(&*graph).ok());
  return *std::move(graph);
}

std::vector<std::string> InputNames(const Graph& graph) {
  std::vector<std::string> names;
  for (const GraphInput& input : graph.inputs()) names.push_back(absl::StrCat(input.name, ": ", ToString(input.type)));
  return names;
}

std::vector<std::string> OutputTypes(const Graph& graph) {
  std::vector<std::string> types;
  for (const GraphOutput& output : graph.outputs()) types.push_back(ToString(graph.type(output.value)));
  return types;
}

constexpr absl::string_view kMixed = R"(
  %i = input : i32[3]
  %x = input : f32[n,2]
  %unused = input : c64[2]
  %w = input : f64[n]
  %e = exp(%x)
  %d = convert(%e) {dtype = f64}
  %s = reduce(%d) {kind = sum, dimensions = [1]}
  %y = multiply(%s, %w)
  output "i" = %i
  output "y" = %y
  output "e" = %e)";

TEST(Differentiate, AddsTangents) {
  const auto jvp = Differentiate(Parsed(kMixed), {.mode = DerivativeMode::kJvp, .wrt = {}, .keep_outputs = true});
  ASSERT_TRUE(jvp.ok()) << jvp.status();
  EXPECT_TRUE(VerifyTypes(*jvp).ok()) << VerifyTypes(*jvp);
  EXPECT_THAT(InputNames(*jvp), ElementsAre("i: i32[3]", "x: f32[n,2]", "unused: c64[2]", "w: f64[n]",
                                            "x.tangent: f32[n,2]", "unused.tangent: c64[2]", "w.tangent: f64[n]"));
  EXPECT_THAT(OutputTypes(*jvp), ElementsAre("i32[3]", "f64[n]", "f32[n,2]", "f64[n]", "f32[n,2]"));
}

TEST(Differentiate, KeepsItsBounds) {
  const Graph graph = Parsed(kMixed);
  for (DerivativeMode mode : {DerivativeMode::kJvp, DerivativeMode::kVjp}) {
    const absl::Status nodes = Differentiate(graph, {.mode = mode, .bounds = {.nodes = 6}}).status();
    ASSERT_TRUE(DetailOf(nodes).has_value()) << nodes;
    EXPECT_EQ(DetailOf(nodes)->reason, "LIMIT_EXCEEDED");
    EXPECT_EQ(DetailOf(nodes)->limit, "graph_nodes");
    EXPECT_EQ(DetailOf(nodes)->limit_value, 6);
    EXPECT_FALSE(DetailOf(nodes)->node.empty());
    const absl::Status edges = Differentiate(graph, {.mode = mode, .bounds = {.edges = 7}}).status();
    ASSERT_TRUE(DetailOf(edges).has_value()) << edges;
    EXPECT_EQ(DetailOf(edges)->limit, "graph_edges");
    EXPECT_TRUE(Differentiate(graph, {.mode = mode, .bounds = {.nodes = 100, .edges = 100}}).ok());
  }
}

// A node may have a million operands: the signal is asked within its rule.
TEST(Differentiate, StopsWithinOneNode) {
  std::string operands = "%x";
  for (int i = 1; i < 20'000; ++i) operands += ", %x";
  const Graph graph =
      Parsed(absl::StrCat("%x = input : f32[1]\n%y = concatenate(", operands, ") {dimension = 0}\noutput \"y\" = %y"));
  int asked = 0;
  const StopSignal::Check check = [&asked] {
    return ++asked > 100 ? absl::CancelledError("enough") : absl::OkStatus();
  };
  StopSignal stop(check, std::chrono::nanoseconds(0));
  const StopSignal::Scope scope(&stop);
  EXPECT_EQ(Differentiate(graph, {.mode = DerivativeMode::kVjp}).status().code(), absl::StatusCode::kCancelled);
  EXPECT_LT(asked, 110);
}

TEST(Differentiate, AddsCotangentsAndGivesZerosWhereNothingDepends) {
  const auto vjp =
      Differentiate(Parsed(kMixed), {.mode = DerivativeMode::kVjp, .wrt = {"w", "unused"}, .keep_outputs = false});
  ASSERT_TRUE(vjp.ok()) << vjp.status();
  EXPECT_TRUE(VerifyTypes(*vjp).ok()) << VerifyTypes(*vjp);
  EXPECT_THAT(InputNames(*vjp), ElementsAre("i: i32[3]", "x: f32[n,2]", "unused: c64[2]", "w: f64[n]",
                                            "y.cotangent: f64[n]", "e.cotangent: f32[n,2]"));
  EXPECT_THAT(OutputTypes(*vjp), ElementsAre("f64[n]", "c64[2]"));
}

TEST(Differentiate, SharesTheForwardPassAndDropsDeadNodes) {
  const Graph graph = Parsed("%x = input : f32[] %e = exp(%x) %dead = sin(%x) output \"e\" = %e");
  const auto grad = Differentiate(graph, {.mode = DerivativeMode::kGrad, .wrt = {}, .keep_outputs = true});
  ASSERT_TRUE(grad.ok()) << grad.status();
  EXPECT_EQ(PrintGraph(*grad), R"(graph "g" {
  %x = input : f32[]
  %e = exp(%x) : f32[]
  %e.vjp = constant() {value = f32[] [1]} : f32[]
  %e.vjp2 = multiply(%e.vjp, %e) : f32[]
  output "e" = %e
  output "x.cotangent" = %e.vjp2
}
)");
}

TEST(Differentiate, GivesNoNameTwice) {
  const Graph graph = Parsed(R"(
    %x = input : f64[]
    %x.tangent = input : f64[]
    %y.jvp = sin(%x)
    %y = multiply(%y.jvp, %x.tangent)
    output "y.cotangent" = %y)");
  Graph last = graph;
  for (const DerivativeMode mode : {DerivativeMode::kJvp, DerivativeMode::kVjp, DerivativeMode::kJvp}) {
    absl::StatusOr<Graph> next = Differentiate(last, {.mode = mode, .wrt = {}, .keep_outputs = true});
    ASSERT_TRUE(next.ok()) << next.status();
    const auto parsed = ParseGraph(PrintGraph(*next), CoreRegistry());  // refuses a name that is there twice
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    last = *std::move(next);
  }
}

TEST(Differentiate, GivesTheSameGraphAgain) {
  const DerivativeRequest request{.mode = DerivativeMode::kVjp, .wrt = {}, .keep_outputs = true};
  const auto first = Differentiate(Parsed(kMixed), request), second = Differentiate(Parsed(kMixed), request);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(PrintGraph(*first), PrintGraph(*second));
}

TEST(Differentiate, WritesAsManyNodesForEachNodeOfALongGraph) {
  const auto size = [](int nodes) {
    std::string body = "%x = input : f64[4]\n%y0 = sin(%x)\n";
    for (int i = 1; i < nodes; ++i) absl::StrAppend(&body, "%y", i, " = ", i % 2 ? "tanh" : "sin", "(%y", i - 1, ")\n");
    absl::StrAppend(&body, "output \"y\" = %y", nodes - 1);
    const auto vjp = Differentiate(Parsed(body), {.mode = DerivativeMode::kVjp, .wrt = {}});
    EXPECT_TRUE(vjp.ok()) << vjp.status();
    return vjp.ok() ? vjp->nodes().size() : 0;
  };
  EXPECT_LE(size(10'000), 10 * size(1'000) + 10);
}

TEST(Differentiate, Refuses) {
  constexpr absl::string_view kInputs = "%x = input : f64[] %v = input : f32[3] %i = input : i64[] ";
  struct Case {
    std::string nodes;
    DerivativeRequest request;
    absl::StatusCode code;
    std::string part;
  };
  const std::string sine = "%y = sin(%x) output \"y\" = %y";
  using Mode = DerivativeMode;
  const auto invalid = absl::StatusCode::kInvalidArgument;
  const std::vector<Case> cases = {
      {sine, {.mode = Mode::kUnspecified, .wrt = {}}, invalid, "mode"},
      {sine, {.mode = static_cast<Mode>(9), .wrt = {}}, invalid, "mode"},
      {sine, {.mode = Mode::kJvp, .wrt = {"nobody"}}, invalid, "nobody"},
      {sine, {.mode = Mode::kJvp, .wrt = {"y"}}, invalid, "\"y\""},
      {sine, {.mode = Mode::kVjp, .wrt = {"i"}}, invalid, "\"i\""},
      {sine, {.mode = Mode::kGrad, .wrt = {"x", "x"}}, invalid, "\"x\" twice"},
      {"output \"i\" = %i", {.mode = Mode::kVjp, .wrt = {}}, invalid, "no output"},
      {"output \"v\" = %v", {.mode = Mode::kGrad, .wrt = {}}, invalid, "rank 0"},
      {"output \"i\" = %i", {.mode = Mode::kGrad, .wrt = {}}, invalid, "float"},
      {"output \"x\" = %x output \"v\" = %v", {.mode = Mode::kGrad, .wrt = {}}, invalid, "2"},
  };
  for (const Case& c : cases) {
    const absl::Status status = Differentiate(Parsed(absl::StrCat(kInputs, c.nodes)), c.request).status();
    EXPECT_EQ(status.code(), c.code) << c.nodes << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.part));
    EXPECT_TRUE(DetailOf(status).has_value());
  }
  const Graph integers = Parsed("%i = input : i64[] %y = convert(%i) {dtype = f64} output \"y\" = %y");
  EXPECT_EQ(Differentiate(integers, {.mode = Mode::kJvp, .wrt = {}}).status().code(), invalid);
  Graph tropical = Parsed("%x = input : f64[] output \"x\" = %x");
  tropical.set_algebra(Algebra::kMaxPlus);
  EXPECT_EQ(Differentiate(tropical, {.mode = Mode::kJvp, .wrt = {}}).status().code(), absl::StatusCode::kUnimplemented);
}

// An op without a rule, as plugins may have it.
absl::StatusOr<ResultTypes> InferSame(InferContext& context) { return ResultTypes{context.operand(0)}; }
constexpr OpDef kRough[] = {{.family = "example",
                             .index = 0,
                             .name = "example.v1.Rough",
                             .summary = "Of a test.",
                             .op_class = OpClass::kExtension,
                             .min_operands = 1,
                             .max_operands = 1,
                             .attrs = {},
                             .traits = kNoTraits,
                             .dtypes = kAnyDType,
                             .infer = &InferSame,
                             .refusals = RefusalTable::None("a test's"),
                             .reference = Facet<ReferenceRule>::None("a test's"),
                             .permute = Facet<PermuteRule>::None("a test's"),
                             .jvp = Facet<JvpRule>::None("it is rough"),
                             .linear_transpose = Facet<TransposeRule>::None("it is rough")}};

TEST(Differentiate, NamesANodeWithoutARuleWhereADerivativeAsksForIt) {
  const OpRegistry registry({CoreOps(), kRough});
  const auto graph_of = [&registry](absl::string_view output) {
    absl::StatusOr<Graph> graph = ParseGraph(
        absl::StrCat("graph \"g\" {\n %x = input : f64[] %r = example.v1.Rough(%x) %s = sin(%r) %z = cos(%x)\n",
                     "output \"o\" = ", output, "\n}"),
        registry);
    EXPECT_TRUE(graph.ok()) << graph.status();
    EXPECT_TRUE(InferTypes(&*graph).ok());
    return *std::move(graph);
  };
  for (const DerivativeMode mode : {DerivativeMode::kJvp, DerivativeMode::kVjp, DerivativeMode::kGrad}) {
    const absl::Status status = Differentiate(graph_of("%s"), {.mode = mode, .wrt = {}}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
    ASSERT_TRUE(DetailOf(status).has_value());
    EXPECT_EQ(DetailOf(status)->node, "r");
    EXPECT_EQ(DetailOf(status)->op, "example.v1.Rough");
    EXPECT_THAT(std::string(status.message()), HasSubstr("it is rough"));
    EXPECT_TRUE(Differentiate(graph_of("%z"), {.mode = mode, .wrt = {}}).ok());
  }
}

}  // namespace
}  // namespace tensord
