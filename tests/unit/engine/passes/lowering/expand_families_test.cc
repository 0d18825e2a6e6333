#include "engine/passes/lowering/expand_families.h"

#include <string>
#include <utility>
#include <vector>

#include "engine/base/refusal.h"
#include "engine/ir/graph_builder.h"
#include "engine/ir/op_registry.h"
#include "engine/ir/parser.h"
#include "engine/ir/printer.h"
#include "engine/ir/verifier.h"
#include "engine/ops/core_ops.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tensord {
namespace {

using testing::HasSubstr;

// A family of the test's: (a, b) -> (a + b, scale * (a - b)), of which one op is made of the other.
constexpr AttrDef kAttrs[] = {{.name = "negated", .kind = AttrKind::kFlag},
                              {.name = "note", .kind = AttrKind::kText},
                              {.name = "scale", .kind = AttrKind::kMaybeInt},
                              {.name = "factor", .kind = AttrKind::kMaybeReal},
                              {.name = "lists", .kind = AttrKind::kIntLists}};

absl::StatusOr<ResultTypes> InferPair(InferContext& context) {
  if (absl::Status status = context.RequireSameShape(context.operand(0), context.operand(1), "a and b"); !status.ok()) {
    return status;
  }
  return ResultTypes{context.operand(0), context.operand(0)};
}

absl::StatusOr<ResultTypes> InferLikeFirst(InferContext& context) { return ResultTypes{context.operand(0)}; }

absl::StatusOr<ExpandedResults> ExpandPair(const ExpandCall& call) {
  absl::StatusOr<ValueId> sum = call.graph.Add(Def(CoreOp::kAdd), call.operands);
  absl::StatusOr<ValueId> difference = call.graph.Add(Def(CoreOp::kSubtract), call.operands);
  if (!sum.ok() || !difference.ok()) return sum.ok() ? difference.status() : sum.status();
  if (call.attrs.Flag("negated")) difference = call.graph.Add(Def(CoreOp::kNegate), {*difference});
  return ExpandedResults{*sum, *difference};
}

const OpDef& PairOp();

absl::StatusOr<ExpandedResults> ExpandDifference(const ExpandCall& call) {
  absl::StatusOr<ExpandedResults> pair = call.graph.AddAll(PairOp(), Attributes(kAttrs), call.operands);
  if (!pair.ok()) return pair.status();
  return ExpandedResults{(*pair)[1]};
}

absl::StatusOr<ExpandedResults> ExpandWrongly(const ExpandCall& call) {
  return ExpandedResults{call.operands[0], call.operands[0], call.operands[0]};
}

absl::StatusOr<ExpandedResults> RefuseToExpand(const ExpandCall&) {
  return Refuse(Refusal::kAttributeInvalid, "the test's op is never right");
}

constexpr OpDef Op(absl::string_view name, uint16_t index, InferRule* infer, ExpandRule* expand, int results) {
  return {.family = "example",
          .index = index,
          .name = name,
          .summary = "Of a test.",
          .op_class = OpClass::kExtension,
          .min_operands = 2,
          .max_operands = 2,
          .attrs = kAttrs,
          .traits = kNoTraits,
          .dtypes = kAnyDType,
          .infer = infer,
          .refusals = RefusalTable::None("a test's"),
          .reference = Facet<ReferenceRule>::None("a test's"),
          .permute = Facet<PermuteRule>::None("a test's"),
          .jvp = Facet<JvpRule>::None("a test's"),
          .linear_transpose = Facet<TransposeRule>::None("a test's"),
          .expand = expand,
          .num_results = results};
}

constexpr OpDef kOps[] = {Op("example.v1.Pair", 0, &InferPair, &ExpandPair, 2),
                          Op("example.v1.Difference", 1, &InferLikeFirst, &ExpandDifference, 1),
                          Op("example.v1.Wrong", 2, &InferPair, &ExpandWrongly, 2),
                          Op("example.v1.Never", 3, &InferPair, &RefuseToExpand, 2)};

const OpDef& PairOp() { return kOps[0]; }

const OpRegistry& Registry() {
  static const OpRegistry* const registry = [] {
    const absl::Span<const OpDef> families[] = {CoreOps(), kOps};
    return new OpRegistry(families);
  }();
  return *registry;
}

Graph Parsed(absl::string_view text) {
  absl::StatusOr<Graph> graph = ParseGraph(text, Registry());
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return Graph();
  EXPECT_TRUE(InferTypes(&*graph).ok());
  return *std::move(graph);
}

std::string Expanded(absl::string_view text) {
  Graph graph = Parsed(text);
  const absl::Status status = ExpandFamilies(&graph);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(VerifyTypes(graph).ok());
  return PrintGraph(graph);
}

TEST(ExpandFamilies, ResultsAreReadByTheirNumber) {
  EXPECT_EQ(Expanded(R"(graph "g" {
    %a = input : f32[3]
    %b = input : f32[3]
    %p:2 = example.v1.Pair(%a, %b) {negated = true}
    %z = multiply(%p, %p:1)
    output "difference" = %p:1
    output "z" = %z
  })"),
            R"(graph "g" {
  %a = input : f32[3]
  %b = input : f32[3]
  %p = add(%a, %b) : f32[3]
  %p = subtract(%a, %b) : f32[3]
  %p = negate(%p) : f32[3]
  %z = multiply(%p, %p) : f32[3]
  output "difference" = %p
  output "z" = %z
}
)");
}

TEST(ExpandFamilies, WhatARuleMakesIsExpandedToo) {
  const std::string text = Expanded(R"(graph "g" {
    %a = input : f32[3]
    %d = example.v1.Difference(%a, %a)
    output "d" = %d
  })");
  EXPECT_THAT(text, HasSubstr("subtract"));
  EXPECT_THAT(text, testing::Not(HasSubstr("example")));
}

TEST(ExpandFamilies, SizesThatAGuardSaysToBeEqual) {
  const std::string text = Expanded(R"(graph "g" {
    %a = input : f32[n]
    %b = input : f32[m]
    %p:2 = example.v1.Pair(%a, %b)
    %s = reduce(%p:1) {dimensions = [0], kind = sum}
    output "s" = %s
  })");
  EXPECT_THAT(text, HasSubstr("reduce"));
}

TEST(ExpandFamilies, TheGraphGrowsToABound) {
  const absl::string_view text = R"(graph "g" {
    %a = input : f32[3]
    %b = input : f32[3]
    %p:2 = example.v1.Pair(%a, %b)
    %q:2 = example.v1.Pair(%p, %b)
    output "q" = %q
  })";
  Graph fits = Parsed(text), grows = Parsed(text);
  EXPECT_TRUE(ExpandFamilies(&fits, nullptr, nullptr, 4).ok());
  const absl::Status refused = ExpandFamilies(&grows, nullptr, nullptr, 3);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(DetailOf(refused)->limit, "graph_nodes");
  EXPECT_EQ(DetailOf(refused)->node, "q");
}

TEST(ExpandFamilies, ARefusalNamesTheNode) {
  Graph graph = Parsed(R"(graph "g" {
    %a = input : f32[3]
    %bad:2 = example.v1.Never(%a, %a)
    output "y" = %bad
  })");
  const absl::Status status = ExpandFamilies(&graph);
  ASSERT_TRUE(DetailOf(status).has_value()) << status;
  EXPECT_EQ(DetailOf(status)->reason, "ATTRIBUTE_INVALID");
  EXPECT_EQ(DetailOf(status)->node, "bad");
  EXPECT_EQ(DetailOf(status)->op, "example.v1.Never");
}

TEST(ExpandFamilies, ARuleThatGivesSomethingElseIsABug) {
  Graph graph = Parsed(R"(graph "g" {
    %a = input : f32[3]
    %bad:2 = example.v1.Wrong(%a, %a)
    output "y" = %bad
  })");
  EXPECT_EQ(DetailOf(ExpandFamilies(&graph)).value_or(RefusalDetail{}).reason, "INTERNAL");
}

TEST(ExpandFamilies, AttributesOfEveryKindAreReadBackFromText) {
  const std::string node =
      R"(%p:2 = example.v1.Pair(%a, %a) {negated = true, note = "ij,\"jk\"->ik", scale = -3, factor = 0.10000000000000001, lists = [[], [0, -1]]})";
  const std::string text = "graph \"g\" {\n  %a = input : f32[3]\n  " + node + "\n  output \"y\" = %p:1\n}\n";
  const absl::StatusOr<Graph> graph = ParseGraph(text, Registry());
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(PrintGraph(*graph), text);
  const Attributes& attrs = graph->nodes()[0].attrs;
  EXPECT_TRUE(attrs.Flag("negated"));
  EXPECT_EQ(attrs.Text("note"), "ij,\"jk\"->ik");
  EXPECT_EQ(attrs.MaybeInt("scale"), -3);
  EXPECT_EQ(attrs.MaybeReal("factor"), 0.1);
  EXPECT_EQ(attrs.IntLists("lists"), (std::vector<std::vector<int64_t>>{{}, {0, -1}}));

  for (const char* wrong : {"{negated = 1}", "{note = ij}", "{scale = x}", "{factor = x}", "{lists = [1]}"}) {
    EXPECT_FALSE(ParseGraph("graph \"g\" {\n%a = input : f32[3]\n%p:2 = example.v1.Pair(%a, %a) " + std::string(wrong) +
                                "\noutput \"y\" = %p\n}",
                            Registry())
                     .ok())
        << wrong;
  }
  EXPECT_FALSE(
      ParseGraph("graph \"g\" {\n%a = input : f32[3]\n%p = example.v1.Pair(%a, %a)\noutput \"y\" = %p\n}", Registry())
          .ok())
      << "one result where the op has two";
}

}  // namespace
}  // namespace tensord
