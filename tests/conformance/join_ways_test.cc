// Each way to run segments together: some case takes it, and with the way left out the same case has the same bits.
// Arguments are small whole numbers, so that the order of sums is of no matter.
//
// TENSORD_SEED=N chooses the first seed of the random graphs, TENSORD_GRAPHS=N their number.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/joins/ways.h"
#include "backends/cpu/matmul/tiles.h"
#include "engine/runtime/compile/compiler.h"
#include "engine/runtime/compile/explain.h"
#include "tests/testlib/graphs/bench_graphs.h"
#include "tests/testlib/graphs/static_graph_builder.h"
#include "tests/testlib/numbers/random_literal.h"
#include "tests/testlib/property/agreement.h"
#include "tests/testlib/property/connected_case.h"
#include "tests/testlib/property/seed_range.h"
#include "tests/testlib/runs/chained_run.h"
#include "tests/testlib/runs/setting_run.h"

namespace tensord {
namespace {

using testing::HasSubstr;

constexpr absl::string_view kFft = "tensord.fft.v1.Fft";

// A graph that one way takes, and the settings under which it does.
struct WayCase {
  std::string way;
  Graph graph;
  CpuUse epilogues = CpuUse::kOff;
  int64_t chain_block_bytes = -1;
  bool needs_tiles = false;  // loops that not every machine has
};

// A product less its sums, of each matrix of a batch.
ValueId CenteredProduct(StaticGraphBuilder* g) {
  const ValueId product =
      g->Dot(g->Input("x", DType::kF32, {16, 32, 8}), g->Input("y", DType::kF32, {16, 12, 8}), {0}, {0}, {2}, {2});
  return g->Binary(CoreOp::kSubtract, product, g->ReduceAndRepeat(ReduceKind::kSum, product, {0}));
}

WayCase ChainCase() {
  StaticGraphBuilder g("chain");
  const ValueId centered = CenteredProduct(&g);
  g.Output("y", g.Dot(g.Input("z", DType::kF32, {4, 32}), centered, {1}, {0}));
  return {.way = "chain", .graph = g.Take(), .chain_block_bytes = 4096};
}

WayCase PairCase() {
  StaticGraphBuilder g("pair");
  g.Output("y", CenteredProduct(&g));
  return {.way = "pair", .graph = g.Take(), .chain_block_bytes = 4096};
}

WayCase EpilogueCase() {
  StaticGraphBuilder g("epilogue");
  const ValueId product = g.Dot(g.Input("x", DType::kF32, {96, 32}), g.Input("y", DType::kF32, {32, 64}), {1}, {0});
  const ValueId shifted = g.Binary(CoreOp::kAdd, product, g.Broadcast(g.Input("b", DType::kF32, {96}), {96, 64}, {0}));
  g.Output("y", g.Unary(CoreOp::kTanh, shifted));
  return {.way = "epilogue", .graph = g.Take(), .epilogues = CpuUse::kOn, .needs_tiles = true};
}

// ia,ja,ka->ijk, or the factored operand as the columns.
WayCase FactoredCase(std::string way, bool has_factored_rows) {
  StaticGraphBuilder g("khatri_rao");
  const Shape all = {40, 40, 32};
  const ValueId a = g.Input("a", DType::kF64, {40, 32}), b = g.Input("b", DType::kF64, {40, 32});
  const ValueId c = g.Input("c", DType::kF64, {24, 32});
  const ValueId product = g.Binary(CoreOp::kMultiply, g.Broadcast(a, all, {0, 2}), g.Broadcast(b, all, {1, 2}));
  g.Output("y", has_factored_rows ? g.Dot(product, c, {2}, {1}) : g.Dot(c, product, {1}, {2}));
  return {.way = std::move(way), .graph = g.Take(), .epilogues = CpuUse::kOn, .needs_tiles = true};
}

// Two products of broadcasts over three labels each that are multiplied and summed over one of them.
WayCase BoxesCase() {
  constexpr int64_t kSize = 24, kRows = 8;
  const Shape shape = {kSize, kRows, kSize, kSize};
  StaticGraphBuilder g("boxes");
  std::vector<ValueId> products;
  for (int side = 0; side < 2; ++side) {
    const ValueId x = g.Input(absl::StrCat("x", side), DType::kF64, {kSize, kRows, kSize});
    const ValueId y = g.Input(absl::StrCat("y", side), DType::kF64, {kSize, kSize});
    products.push_back(g.Binary(CoreOp::kMultiply, g.Broadcast(x, shape, {0, 1, 2}), g.Broadcast(y, shape, {0, 3})));
  }
  g.Output("y", g.Dot(products[0], products[1], {2}, {2}, {0, 3}, {0, 3}));
  return {.way = "boxes", .graph = g.Take(), .chain_block_bytes = 1 << 16};
}

// Transforms of length 4 add, subtract and exchange: whole numbers stay whole.
WayCase TransformsCase() {
  StaticGraphBuilder g("transforms");
  const auto transformed = [&](ValueId x, int64_t kind) {
    Attributes attrs = StaticGraphBuilder::AttrsOf(kFft);
    attrs.Set("kind", kind).Set("axes", StaticGraphBuilder::Axes{1});
    return g.ApplyNamed(kFft, {x}, std::move(attrs))[0];
  };
  const ValueId x = g.Input("x", DType::kC128, {64, 4}), k = g.Input("k", DType::kC128, {64, 4});
  g.Output("y", transformed(g.Binary(CoreOp::kMultiply, transformed(x, 1), k), 2));
  return {.way = "transforms", .graph = g.Take(), .chain_block_bytes = 4000};
}

WayCase ReductionsCase() {
  return {.way = "reductions", .graph = FiveReductionsGraph(32), .chain_block_bytes = 1 << 15};
}

WayCase KernelCase() {
  StaticGraphBuilder g("kernel");
  g.Output("y", g.Unary(CoreOp::kExp, g.Input("x", DType::kF32, {100})));
  return {.way = "kernel", .graph = g.Take()};
}

std::vector<WayCase> Cases() {
  std::vector<WayCase> cases;
  cases.push_back(ChainCase());
  cases.push_back(EpilogueCase());
  cases.push_back(PairCase());
  cases.push_back(FactoredCase("factored_rows", /*has_factored_rows=*/true));
  cases.push_back(BoxesCase());
  cases.push_back(TransformsCase());
  cases.push_back(FactoredCase("factored", /*has_factored_rows=*/false));
  cases.push_back(ReductionsCase());
  cases.push_back(KernelCase());
  return cases;
}

std::vector<Literal> WholeNumbersFor(const Graph& graph) {
  std::mt19937_64 random(11);
  std::vector<Literal> arguments;
  for (const Literal& argument : ArgumentsOf(graph, &random)) {
    arguments.push_back(RandomLiteral(argument.type(), Values::kIntegers, &random));
  }
  return arguments;
}

std::unique_ptr<Backend> BackendFor(const WayCase& c, std::vector<std::string> left_out) {
  return MakeCpuBackend({.threads = 2,
                         .epilogues = c.epilogues,
                         .chain_block_bytes = c.chain_block_bytes,
                         .disabled_joins = std::move(left_out)});
}

int64_t SegmentsBy(const std::string& way, const ChainedRun& run) {
  int64_t segments = 0;
  for (const JoinCount& join : run.joins) segments += join.way == way ? join.segments : 0;
  return segments;
}

std::vector<std::string> AllButTheLast() {
  std::vector<std::string> names;
  for (const cpu::JoinWay& way : cpu::JoinWays()) names.emplace_back(way.name);
  names.pop_back();
  return names;
}

TEST(JoinWays, EachIsTakenBySomeCaseAndLeftOutGivesTheSameBits) {
  const std::vector<WayCase> cases = Cases();
  for (const cpu::JoinWay& way : cpu::JoinWays()) {
    SCOPED_TRACE(way.name);
    const auto it = std::find_if(cases.begin(), cases.end(), [&](const WayCase& c) { return c.way == way.name; });
    ASSERT_NE(it, cases.end()) << "no case takes the way; add one to Cases()";
    if (it->needs_tiles && cpu::GetGemmTiles(DType::kF32).rows == 0) continue;
    const std::vector<Literal> arguments = WholeNumbersFor(it->graph);
    const auto joined = RunChained(BackendFor(*it, {}).get(), it->graph, {}, arguments, false);
    ASSERT_TRUE(joined.ok()) << joined.status();
    EXPECT_GT(SegmentsBy(it->way, *joined), 0) << joined->kernels;
    if (it->way == "kernel") continue;
    for (const std::vector<std::string>& left_out : {std::vector{it->way}, AllButTheLast()}) {
      const auto apart = RunChained(BackendFor(*it, left_out).get(), it->graph, {}, arguments, false);
      ASSERT_TRUE(apart.ok()) << apart.status();
      EXPECT_EQ(SegmentsBy(it->way, *apart), 0) << apart->kernels;
      if (left_out.size() > 1) {
        EXPECT_EQ(apart->chained, 0u) << apart->kernels;
      }
      ASSERT_EQ(apart->results.size(), joined->results.size());
      for (size_t i = 0; i < joined->results.size(); ++i) {
        EXPECT_TRUE(apart->results[i].bytes() == joined->results[i].bytes()) << "output " << i << "\n"
                                                                             << joined->kernels << "or\n"
                                                                             << apart->kernels;
      }
    }
  }
}

TEST(JoinWays, AreNamedOnceAndOnlyOtherNamesAreRefused) {
  std::vector<std::string> names = AllButTheLast();
  EXPECT_TRUE(cpu::CheckJoinNames(names).ok());
  EXPECT_EQ(cpu::JoinWaysNamed(names).count(), names.size());
  for (const char* wrong : {"kernel", "no_such_way", ""}) {
    const absl::Status status = cpu::CheckJoinNames(std::vector<std::string>{names[0], wrong});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("\"", wrong, "\" is no way")));
    EXPECT_THAT(std::string(status.message()), HasSubstr(names.back()));
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::unique(names.begin(), names.end()), names.end());
}

TEST(JoinWays, ExplainListsAllAndSaysWhichSegmentsRunTogether) {
  const WayCase c = ChainCase();
  const std::unique_ptr<Backend> backend = BackendFor(c, {"boxes"});
  Graph graph = c.graph;
  const auto program = Compile(std::move(graph), {.device = "test:0"}, Fingerprint(), backend.get());
  ASSERT_TRUE(program.ok()) << program.status();
  const std::string text = ExplainProgram(**program);
  size_t at = text.find("\njoins ");
  ASSERT_NE(at, std::string::npos) << text;
  for (const cpu::JoinWay& way : cpu::JoinWays()) {  // in order
    at = text.find(absl::StrCat("\n  ", way.name, " "), at);
    ASSERT_NE(at, std::string::npos) << way.name << "\n" << text;
    const absl::string_view line = absl::string_view(text).substr(at + 1, text.find('\n', at + 1) - at - 1);
    EXPECT_TRUE(absl::EndsWith(line, way.name == "chain" ? " 3" : way.name == "boxes" ? " 0  left out" : " 0")) << line;
  }
  EXPECT_THAT(text, HasSubstr("    join    chain, segments 0 to 2\n"));
}

// Where a way is left out another may take its segments, or they run by themselves.
TEST(JoinWays, LeftOutRandomGraphsAgreeWithTheReference) {
  std::vector<std::unique_ptr<SettingRun>> settings;
  for (const std::string& way : AllButTheLast()) {
    const MatrixSetting setting = {.name = absl::StrCat("without the way ", way),
                                   .threads = 2,
                                   .epilogues = "on",
                                   .chain_block_bytes = 512,
                                   .disabled_joins = {way}};
    settings.push_back(std::make_unique<SettingRun>(setting));
  }
  const property::SeedRange seeds = property::ChosenSeeds({.first = 0, .count = 150});
  for (uint64_t seed = seeds.first; seed < seeds.first + static_cast<uint64_t>(seeds.count); ++seed) {
    const property::RandomCase random_case = property::MakeConnectedCase(seed);
    const absl::StatusOr<property::Wanted> wanted = property::WantedOf(random_case.graph, random_case.arguments);
    ASSERT_TRUE(wanted.ok()) << "seed " << seed << ": " << wanted.status();
    for (const std::unique_ptr<SettingRun>& setting : settings) {
      const std::string problem =
          property::Disagreement(*setting, seed % 2 == 1, random_case.graph, random_case.arguments, *wanted);
      ASSERT_EQ(problem, "") << "TENSORD_SEED=" << seed << " TENSORD_GRAPHS=1, " << setting->name();
    }
  }
}

}  // namespace
}  // namespace tensord
