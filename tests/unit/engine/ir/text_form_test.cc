#include <cmath>
#include <limits>
#include <random>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/families/all_families.h"
#include "engine/ir/canonical.h"
#include "engine/ir/literal_text.h"
#include "engine/ir/parser.h"
#include "engine/ir/printer.h"
#include "engine/ir/text_round_trip.h"
#include "engine/ops/core_ops.h"
#include "gtest/gtest.h"
#include "tests/testlib/graphs/random_graph.h"
#include "tests/testlib/numbers/random_literal.h"
#include "tests/testlib/reason_of.h"

namespace tensord {
namespace {

TEST(TextFormTest, RandomGraphsComeBack) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 2'000; ++i) {
    const Graph graph = RandomGraph(FamilyRegistry(), &random);
    const absl::StatusOr<Graph> again = ReadBackFromText(graph, FamilyRegistry());
    ASSERT_TRUE(again.ok()) << again.status() << "\n" << PrintGraph(graph);
    ASSERT_EQ(CanonicalBytes(*again), CanonicalBytes(graph)) << PrintGraph(graph);
    ASSERT_EQ(again->name(), graph.name());
    ASSERT_EQ(again->num_values(), graph.num_values());
    for (int32_t v = 0; v < graph.num_values(); ++v) ASSERT_EQ(again->NameOf({v}), graph.NameOf({v}));
  }
}

TEST(TextFormTest, ATextThatCannotBeReadIsTheServersFault) {
  Graph graph;
  graph.AddInput("x", {.dtype = DType::kF32});
  graph.AddInput("x", {.dtype = DType::kF32});  // no decoder lets that through
  EXPECT_EQ(ReasonOf(ReadBackFromText(graph, FamilyRegistry()).status()), "INTERNAL");
}

TEST(TextFormTest, LiteralsComeBackBitForBit) {
  std::mt19937_64 random(2);
  for (DType dtype : kAllDTypes) {
    for (const Values values : {Values::kModest, Values::kEdges, Values::kIntegers}) {
      for (const Shape& shape : {Shape{}, Shape{0}, Shape{7}, Shape{4, 3}, Shape{65}}) {
        const Literal literal = RandomLiteral({.dtype = dtype, .shape = shape}, values, &random);
        const std::string text = LiteralText(literal);
        TextCursor cursor(text);
        const absl::StatusOr<Literal> again = ParseLiteral(cursor);
        ASSERT_TRUE(again.ok()) << again.status() << "\n" << text;
        ASSERT_TRUE(*again == literal) << text;
        ASSERT_TRUE(cursor.AtEnd()) << text;
      }
    }
  }
}

TEST(TextFormTest, EveryHalfPatternComesBack) {
  const auto check = []<typename Half>(Half half) {
    const Literal literal = Literal::Scalar(half);
    const std::string text = LiteralText(literal);
    TextCursor cursor(text);
    const absl::StatusOr<Literal> again = ParseLiteral(cursor);
    ASSERT_TRUE(again.ok()) << again.status() << "\n" << text;
    ASSERT_TRUE(*again == literal) << text;
  };
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    check(Float16::FromBits(static_cast<uint16_t>(bits)));
    check(BFloat16::FromBits(static_cast<uint16_t>(bits)));
    if (HasFatalFailure()) return;
  }
}

TEST(TextFormTest, ANodeWithSeveralResults) {
  // No op of the core has several, so the graph is built and read, and never inferred.
  Graph graph;
  const ValueId x = graph.AddInput("x", {.dtype = DType::kF32});
  Node node{.name = "two", .op = &Def(CoreOp::kNegate), .attrs = Attributes(Def(CoreOp::kNegate).attrs)};
  node.operands = {x};
  node.num_results = 2;
  const ValueId first = graph.AddNode(std::move(node));
  graph.AddOutput("y", {first.index + 1});
  const std::string text = PrintGraph(graph);
  EXPECT_EQ(text, "graph \"\" {\n  %x = input : f32[]\n  %two:2 = negate(%x)\n  output \"y\" = %two:1\n}\n");
  const absl::StatusOr<Graph> again = ParseGraph(text, FamilyRegistry());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->outputs()[0].value, graph.outputs()[0].value);
  EXPECT_EQ(PrintNode(*again, again->nodes()[0]), "%two:2 = negate(%x)");
}

TEST(TextFormTest, EveryPrefixIsRefusedOrRead) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 20; ++i) {
    const std::string text = PrintGraph(RandomGraph(FamilyRegistry(), &random));
    for (size_t length = 0; length + 2 < text.size(); ++length) {  // all but the last "}\n"
      const absl::StatusOr<Graph> graph = ParseGraph(text.substr(0, length), FamilyRegistry());
      ASSERT_FALSE(graph.ok()) << text.substr(0, length);
      ASSERT_FALSE(ReasonOf(graph.status()).empty()) << graph.status();
    }
  }
}

TEST(TextFormTest, ALongChainIsReadWithoutRecursion) {
  std::string text = "graph \"g\" {\n  %x0 = input : f32[]\n";
  constexpr int kNodes = 100'000;
  for (int i = 0; i < kNodes; ++i) absl::StrAppend(&text, "  %x", i + 1, " = negate(%x", i, ")\n");
  text += "}\n";
  const absl::StatusOr<Graph> graph = ParseGraph(text, FamilyRegistry());
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->nodes().size(), static_cast<size_t>(kNodes));
  EXPECT_FALSE(ParseGraph(std::string(1'000'000, '('), FamilyRegistry()).ok());
  EXPECT_FALSE(ParseGraph("graph \"g\" { %x = input : f32[" + std::string(1'000'000, '('), FamilyRegistry()).ok());
}

TEST(TextFormTest, EveryAlgebraHasAName) {
  for (int i = 0; i <= static_cast<int>(Algebra::kOrAnd); ++i) {
    Graph graph;
    graph.set_algebra(static_cast<Algebra>(i));
    const absl::StatusOr<Graph> again = ParseGraph(PrintGraph(graph), FamilyRegistry());
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->algebra(), graph.algebra());
  }
}

}  // namespace
}  // namespace tensord
