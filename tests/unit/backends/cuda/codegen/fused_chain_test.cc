// Graphs of many reductions that wait for one another, as texts.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "backends/cuda/codegen/printer.h"
#include "engine/fusion/build_micro_program.h"
#include "engine/fusion/fused_op.h"
#include "engine/ir/size_binding.h"
#include "engine/passes/fusion/fuse.h"
#include "engine/passes/fusion/fusion_groups.h"
#include "gtest/gtest.h"
#include "tests/testlib/graphs/parsed_graph.h"

namespace tensord {
namespace {

// `count` times: a row loses half of its sum.
std::string ChainText(int count, int64_t length, int64_t rows) {
  const std::string full = absl::StrCat("f32[", length, ", ", rows, "]");
  std::string text =
      absl::StrCat("graph \"g\" {\n  %x0 = input : ", full, "\n  %half = constant() {value = f32[] [0.5]}\n",
                   "  %halves = broadcast_in_dim(%half) {shape = [", rows, "]}\n");
  for (int i = 0; i < count; ++i) {
    absl::StrAppend(&text, "  %s", i, " = reduce(%x", i, ") {kind = sum, dimensions = [0]}\n  %h", i, " = multiply(%s",
                    i, ", %halves)\n  %b", i, " = broadcast_in_dim(%h", i, ") {shape = [", length, ", ", rows,
                    "], broadcast_dimensions = [1]}\n  %x", i + 1, " = subtract(%x", i, ", %b", i, ")\n");
  }
  return absl::StrCat(text, "  output \"y\" = %x", count, "\n}\n");
}

// The fused programs of a graph.
std::vector<MicroProgram> ProgramsOf(const std::string& text) {
  Graph graph = TypedGraph(text);
  const auto fused = Fuse(&graph, {.fuses = true});
  EXPECT_TRUE(fused.ok()) << fused.status();
  const auto binding = SizeBinding::Create({}, {});
  std::vector<MicroProgram> programs;
  for (const Node& node : graph.nodes()) {
    if (!IsFused(*node.op)) continue;
    std::vector<ConcreteType> types;
    for (int32_t v = 0; v < node.body->num_values(); ++v) types.push_back(*binding->Resolve(node.body->type({v})));
    auto program = BuildMicroProgram(node.attrs, *node.body, types);
    EXPECT_TRUE(program.ok()) << program.status();
    if (program.ok()) programs.push_back(*std::move(program));
  }
  return programs;
}

struct Texts {
  size_t kernels = 0, launches = 0, bytes = 0, longest = 0;
};

Texts TextsOf(int count, int64_t length, int64_t rows) {
  Texts texts;
  for (const MicroProgram& program : ProgramsOf(ChainText(count, length, rows))) {
    EXPECT_LE(program.num_stages(), kMaxFusedStages + 1);
    const KernelText kernel = PrintCuda(program, {});
    ++texts.kernels;
    texts.launches += kernel.launches.size();
    texts.bytes += kernel.source.size();
    texts.longest = std::max(texts.longest, kernel.source.size());
  }
  return texts;
}

// Each pass of a range that is cut computes all passes before it again.
TEST(FusedChainTest, TextsGrowWithTheGraphAndNotWithItsSquare) {
  for (const auto& [length, rows] : {std::pair<int64_t, int64_t>{30'000'000, 4}, {3000, 4096}}) {
    SCOPED_TRACE(length);
    const Texts some = TextsOf(75, length, rows), many = TextsOf(300, length, rows);
    EXPECT_EQ(some.kernels, 10u);
    EXPECT_EQ(many.kernels, 38u);
    EXPECT_EQ(many.longest, some.longest);
    EXPECT_LT(many.longest, 30'000u);
    EXPECT_LT(many.bytes, 5 * some.bytes);
    EXPECT_LT(many.launches, 5 * some.launches);
  }
}

TEST(FusedChainTest, FewStagesAreOneKernel) {
  EXPECT_EQ(ProgramsOf(ChainText(kMaxFusedStages, 3000, 4096)).size(), 1u);
  EXPECT_EQ(ProgramsOf(ChainText(kMaxFusedStages + 1, 3000, 4096)).size(), 2u);
}

// Reductions side by side are one stage, also where one kernel reads the results of many that nobody else reads: one
// that comes later than they do, since it reads a product as well.
TEST(FusedChainTest, ReductionsSideBySideAreOneStage) {
  constexpr int kReductions = 3 * kMaxFusedStages;
  std::string text = "graph \"g\" {\n  %z = input : f32[40]\n  %w = input : f32[40, 40]\n";
  for (int i = 0; i < kReductions; ++i) absl::StrAppend(&text, "  %x", i, " = input : f32[300, 40]\n");
  absl::StrAppend(&text, "  %e = sin(%z)\n  %t0 = dot_general(%e, %w) {lhs_contracting_dimensions = [0], ",
                  "rhs_contracting_dimensions = [0]}\n");
  for (int i = 0; i < kReductions; ++i) {
    absl::StrAppend(&text, "  %s", i, " = reduce(%x", i, ") {kind = sum, dimensions = [0]}\n  %t", i + 1, " = add(%t",
                    i, ", %s", i, ")\n");
  }
  absl::StrAppend(&text, "  output \"y\" = %t", kReductions, "\n}\n");
  EXPECT_EQ(ProgramsOf(text).size(), 1u);
}

}  // namespace
}  // namespace tensord
