// Runs that are stopped in the middle: whatever a kernel does when nobody wants its result any more, it ends, touches
// no memory but its own, and the next run of the program is as if nothing had been.
//
// TENSORD_SEED=N chooses the first seed, TENSORD_GRAPHS=N the number of graphs.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "backends/cpu/cpu_backend.h"
#include "engine/base/refusal.h"
#include "tests/testlib/graphs/parsed_graph.h"
#include "tests/testlib/property/agreement.h"
#include "tests/testlib/property/connected_case.h"
#include "tests/testlib/property/seed_range.h"
#include "tests/testlib/runs/chained_run.h"
#include "tests/testlib/runs/compiled_run.h"
#include "tests/testlib/runs/setting_run.h"

namespace tensord {
namespace {

std::unique_ptr<SettingRun> AskingAlways(const MatrixSetting& setting) {
  auto backend = MakeCpuBackend({.threads = setting.threads,
                                 .jit = CpuUseNamed(setting.jit),
                                 .epilogues = CpuUseNamed(setting.epilogues),
                                 .chain_block_bytes = setting.chain_block_bytes,
                                 .ask_every = std::chrono::nanoseconds(0)});
  return std::make_unique<SettingRun>(setting, std::move(backend));
}

// Refuses from one ask on, and counts them.
class StopAt {
 public:
  explicit StopAt(int64_t ask) : ask_(ask) {}

  RunCheck check() {
    return [this] { return asks_.fetch_add(1) < ask_ ? absl::OkStatus() : Refuse(Refusal::kCancelled, "stopped"); };
  }
  int64_t asks() const { return asks_.load(); }

 private:
  const int64_t ask_;
  std::atomic<int64_t> asks_{0};
};

// Stops the program at several asks, the first and the last among them.
void StopEverywhere(const CompiledProgram& program, const std::vector<Literal>& arguments,
                    const std::vector<property::BoundedLiteral>& wanted, std::mt19937_64* random) {
  constexpr int64_t kNever = int64_t{1} << 62;
  StopAt never(kNever);
  ASSERT_TRUE(RunCompiled(program, arguments, 0, {}, never.check()).ok());
  const int64_t asks = never.asks();
  std::vector<int64_t> at = {0, asks - 1};
  for (int i = 0; i < 4 && asks > 0; ++i) at.push_back(static_cast<int64_t>((*random)() % static_cast<uint64_t>(asks)));
  for (const int64_t ask : at) {
    if (ask < 0) continue;
    StopAt stop(ask);
    const auto stopped = RunCompiled(program, arguments, 0, {}, stop.check());
    // Threads ask at other places in every run: it may have been over before.
    if (stop.asks() <= ask) continue;
    ASSERT_FALSE(stopped.ok()) << "ask " << ask << " of " << asks;
    EXPECT_EQ(DetailOf(stopped.status()).value_or(RefusalDetail{}).reason, "CANCELLED") << stopped.status();
    const auto after = RunCompiled(program, arguments);
    ASSERT_TRUE(after.ok()) << after.status();
    for (size_t i = 0; i < after->size(); ++i) EXPECT_EQ(property::DifferenceFrom((*after)[i], wanted[i]), "");
  }
}

TEST(StoppedRuns, EndCleanlyWhereverTheyAreStopped) {
  const property::SeedRange seeds = property::ChosenSeeds({.first = 0, .count = 300});
  for (const MatrixSetting& setting :
       {MatrixSetting{.name = "one thread", .threads = 1},
        MatrixSetting{.name = "joined", .threads = 3, .jit = "on", .epilogues = "on", .chain_block_bytes = 512}}) {
    const std::unique_ptr<SettingRun> run = AskingAlways(setting);
    for (uint64_t seed = seeds.first; seed < seeds.first + static_cast<uint64_t>(seeds.count); ++seed) {
      SCOPED_TRACE(testing::Message() << setting.name << ", TENSORD_SEED=" << seed << " TENSORD_GRAPHS=1");
      const property::RandomCase random_case = property::MakeConnectedCase(seed);
      const auto wanted = property::WantedOf(random_case.graph, random_case.arguments);
      ASSERT_TRUE(wanted.ok()) << wanted.status();
      const auto program = run->CompileGraph(random_case.graph, /*row_major=*/false);
      ASSERT_TRUE(program.ok()) << program.status();
      std::mt19937_64 random(seed);
      StopEverywhere(**program, random_case.arguments[0], (*wanted)[0], &random);
      if (HasFatalFailure()) return;
    }
  }
}

// Large enough that each kernel has many tasks, tiles or panels: one of each kind.
constexpr const char* kLargeKernels[] = {
    R"(graph "lu" { %a = input : f64[300,300]
       %f:4 = tensord.linalg.v1.Lu(%a)
       output "p" = %f  output "l" = %f:1  output "u" = %f:2 })",
    R"(graph "solve" { %a = input : f64[300,300]  %b = input : f64[300,40]
       %x = tensord.linalg.v1.Solve(%a, %b)  output "x" = %x })",
    R"(graph "eigh" { %a = input : f64[300,300]
       %f:2 = tensord.linalg.v1.Eigh(%a)  output "w" = %f  output "v" = %f:1 })",
    R"(graph "svd" { %a = input : c128[300,280]
       %f:3 = tensord.linalg.v1.Svd(%a)  output "s" = %f:1 })",
    R"(graph "tall svd" { %a = input : f64[700,200]
       %f:3 = tensord.linalg.v1.Svd(%a)  output "u" = %f  output "s" = %f:1 })",
    R"(graph "wide svd" { %a = input : c64[200,400]
       %f:3 = tensord.linalg.v1.Svd(%a)  output "s" = %f:1  output "vh" = %f:2 })",
    R"(graph "qr" { %a = input : f64[400,300]
       %f:2 = tensord.linalg.v1.Qr(%a)  output "q" = %f  output "r" = %f:1 })",
    R"(graph "complex lu" { %a = input : c128[300,300]
       %f:4 = tensord.linalg.v1.Lu(%a)
       output "p" = %f  output "l" = %f:1  output "u" = %f:2 })",
    R"(graph "complex qr" { %a = input : c128[400,300]
       %f:2 = tensord.linalg.v1.Qr(%a)  output "q" = %f  output "r" = %f:1 })",
    R"(graph "reflectors" { %a = input : f64[300,300]
       %f:2 = tensord.linalg.v1.HouseholderQr(%a)  output "h" = %f  output "tau" = %f:1 })",
    R"(graph "complex cholesky" { %a = input : c128[300,300]
       %c = conj(%a)
       %p = dot_general(%a, %c) {lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]}
       %l = tensord.linalg.v1.Cholesky(%p)  output "l" = %l })",
    R"(graph "eig" { %a = input : f64[300,300]
       %f:2 = tensord.linalg.v1.Eig(%a)  output "w" = %f  output "v" = %f:1 })",
    R"(graph "complex eigvals" { %a = input : c64[300,300]
       %w = tensord.linalg.v1.EigValues(%a)  output "w" = %w })",
    R"(graph "eigvalsh" { %a = input : c128[300,300]
       %w = tensord.linalg.v1.EighValues(%a)  output "w" = %w })",
    R"(graph "svdvals" { %a = input : f64[600,200]
       %s = tensord.linalg.v1.SvdValues(%a)  output "s" = %s })",
    R"(graph "small matrices" { %a = input : f64[5,5,3000]
       %x = tensord.linalg.v1.Solve(%a, %a)  output "x" = %x })",
    R"(graph "fft" { %a = input : c128[1009,64]
       %y = tensord.fft.v1.Fft(%a) {kind = fft, axes = [0, 1]}  output "y" = %y })",
    R"(graph "scatter" { %x = input : f64[100000]  %i = input : i32[60000,1]  %u = input : f64[60000]
       %y = scatter(%x, %i, %u) {inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1}
       output "y" = %y })",
    R"(graph "product of integers" { %a = input : i64[700,600]  %b = input : i64[600,500]
       %y = dot_general(%a, %b) {lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]}
       output "y" = %y })",
    R"(graph "product of complex numbers" { %a = input : c64[700,600]  %b = input : c64[600,500]
       %y = dot_general(%a, %b) {lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]}
       output "y" = %y })",
    R"(graph "product" { %a = input : f64[700,600]  %b = input : f64[600,500]
       %y = dot_general(%a, %b) {lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]}
       output "y" = %y })"};

TEST(StoppedRuns, LargeKernelsEndInTheMiddle) {
  std::mt19937_64 random(7);
  for (const int threads : {1, 3}) {
    const std::unique_ptr<SettingRun> run = AskingAlways({.name = "large", .threads = threads});
    for (const char* text : kLargeKernels) {
      SCOPED_TRACE(text);
      Graph graph = ParsedGraph(text);
      const std::vector<Literal> arguments = ArgumentsOf(graph, &random);
      const auto program = run->CompileGraph(graph, /*row_major=*/false);
      ASSERT_TRUE(program.ok()) << program.status();
      const auto whole = RunCompiled(**program, arguments);
      ASSERT_TRUE(whole.ok()) << whole.status();
      std::vector<property::BoundedLiteral> same;
      for (const Literal& literal : *whole) same.push_back({.value = literal});
      StopAt never(int64_t{1} << 62);
      ASSERT_TRUE(RunCompiled(**program, arguments, 0, {}, never.check()).ok());
      EXPECT_GT(never.asks(), 4);
      StopEverywhere(**program, arguments, same, &random);
      if (HasFatalFailure()) return;
    }
  }
}

// Products of few terms, and of many columns that one thread makes: most of the time goes into writing them, the first
// time above all.
TEST(StoppedRuns, ProductsAskForEachBlockOfTheirResults) {
  std::mt19937_64 random(11);
  for (const char* type : {"bf16", "f16", "f32"}) {
    SCOPED_TRACE(type);
    const std::unique_ptr<SettingRun> run = AskingAlways({.name = "wide", .threads = 1});
    Graph graph = ParsedGraph(absl::StrCat(R"(graph "wide" { %a = input : )", type, "[2048,8]  %b = input : ", type,
                                           R"([8,4096]
       %y = dot_general(%a, %b) {lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]}
       output "y" = %y })"));
    const std::vector<Literal> arguments = ArgumentsOf(graph, &random);
    for (const bool row_major : {false, true}) {
      const auto program = run->CompileGraph(graph, row_major);
      ASSERT_TRUE(program.ok()) << program.status();
      StopAt never(int64_t{1} << 62);
      ASSERT_TRUE(RunCompiled(**program, arguments, 0, {}, never.check()).ok());
      EXPECT_GE(never.asks(), absl::string_view(type) == "f32" ? 8 : 200) << "8 M elements";
    }
  }
}

// The sums that it subtracts are many, and nobody gets one.
TEST(StoppedRuns, ResultsWithoutElementsTakeNoWork) {
  SettingRun run({.name = "usual"}, MakeCpuBackend({.threads = 2, .ask_every = std::chrono::nanoseconds(0)}));
  Graph graph = ParsedGraph(R"(graph "g" { %x = input : f64[0,1000000000]
                               %twice = add(%x, %x)
                               %sum = reduce(%twice) {kind = sum, dimensions = [0]}
                               %wide = broadcast_in_dim(%sum) {shape = [0, 1000000000], broadcast_dimensions = [1]}
                               %y = subtract(%x, %wide)  output "y" = %y })");
  std::mt19937_64 random(1);
  const std::vector<Literal> arguments = ArgumentsOf(graph, &random);
  const auto program = run.CompileGraph(graph, /*row_major=*/false);
  ASSERT_TRUE(program.ok()) << program.status();
  StopAt stop(20);
  const auto results = RunCompiled(**program, arguments, 0, {}, stop.check());
  EXPECT_TRUE(results.ok()) << results.status();
}

// Would take hours.
TEST(StoppedRuns, AnEndlessRunEndsWhenItIsNotWanted) {
  for (const char* text : {R"(graph "sum" { %x = input : f64[]
                              %wide = broadcast_in_dim(%x) {shape = [1000000, 10000000]}
                              %y = reduce(%wide) {kind = sum, dimensions = [0, 1]}  output "y" = %y })",
                           R"(graph "distances" { %a = input : f64[3000000]  %b = input : f64[3000000]
                              %x = broadcast_in_dim(%a) {shape = [3000000, 3000000], broadcast_dimensions = [0]}
                              %y = broadcast_in_dim(%b) {shape = [3000000, 3000000], broadcast_dimensions = [1]}
                              %d = subtract(%x, %y)  %m = abs(%d)
                              %z = reduce(%m) {kind = min, dimensions = [0]}  output "z" = %z })"}) {
    SCOPED_TRACE(text);
    SettingRun run({.name = "usual"}, MakeCpuBackend({.threads = 2}));
    Graph graph = ParsedGraph(text);
    std::mt19937_64 random(1);
    const std::vector<Literal> arguments = ArgumentsOf(graph, &random);
    const auto program = run.CompileGraph(graph, /*row_major=*/false);
    ASSERT_TRUE(program.ok()) << program.status();
    StopAt stop(20);
    const auto stopped = RunCompiled(**program, arguments, 0, {}, stop.check());
    EXPECT_EQ(DetailOf(stopped.status()).value_or(RefusalDetail{}).reason, "CANCELLED") << stopped.status();
  }
}

}  // namespace
}  // namespace tensord
