#include "engine/exec/binding/run_operations.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "backends/cpu/cpu_backend.h"
#include "engine/base/refusal.h"
#include "engine/runtime/compile/compiler.h"
#include "gtest/gtest.h"
#include "tests/testlib/graphs/parsed_graph.h"
#include "tests/testlib/runs/compiled_run.h"

namespace tensord {
namespace {

class RunOperationsTest : public testing::Test {
 protected:
  absl::StatusOr<CompiledProgramPtr> CompileWith(absl::string_view text, int64_t most) {
    BindingOptions bindings;
    bindings.most_operations = most;
    return Compile(ParsedGraph(text), {.device = "cpu:0"}, Fingerprint(), backend_.get(), bindings);
  }

  // How many operations a run of a program without symbols is said to take.
  int64_t OperationsIn(absl::string_view text) {
    const absl::Status refused = CompileWith(text, 0).status();
    const RefusalDetail detail = DetailOf(refused).value_or(RefusalDetail{});
    EXPECT_EQ(detail.reason, "LIMIT_EXCEEDED") << refused;
    EXPECT_EQ(detail.limit, "run_operations");
    EXPECT_EQ(detail.limit_value, 0);
    node_ = detail.node;
    return detail.actual_value;
  }

  const std::unique_ptr<Backend> backend_ = MakeCpuBackend({.threads = 1});
  std::string node_;
};

// The square and the sum, in each point of the space.
TEST_F(RunOperationsTest, AFusedKernelTakesAsManyAsItHasInEachPoint) {
  EXPECT_EQ(OperationsIn(R"(graph "g" { %x = input : f64[1000]
              %wide = broadcast_in_dim(%x) {shape = [1000, 1000000], broadcast_dimensions = [0]}
              %far = iota() {type = f64[1000, 1000000], dimension = 1}
              %sum = add(%wide, %far)
              %square = multiply(%sum, %sum)
              %y = reduce(%square) {kind = sum, dimensions = [1]}  output "y" = %y })"),
            4'000'000'000);
  EXPECT_EQ(node_, "y");
}

TEST_F(RunOperationsTest, AContractionTakesTwoForEachProduct) {
  EXPECT_EQ(OperationsIn(R"(graph "g" { %x = input : f64[10,20]  %w = input : f64[20,30]
              %y = dot_general(%x, %w) {lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]}
              output "y" = %y })"),
            2 * 10 * 20 * 30);
}

TEST_F(RunOperationsTest, TheNodeThatTakesMostIsNamed) {
  EXPECT_GT(OperationsIn(R"(graph "g" { %x = input : f64[40,40]
              %small = dot_general(%x, %x) {lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]}
              %spectrum:2 = tensord.linalg.v1.Eigh(%small)
              output "y" = %spectrum })"),
            40 * 40 * 40);
  EXPECT_EQ(node_, "spectrum");
}

// The vectors of many matrices have two axes, as a matrix has.
TEST_F(RunOperationsTest, ManyMatricesTakeAsManyTimesWhatOneTakes) {
  for (const char* op : {"EighValues", "SvdValues", "Eigh", "EigValues", "HouseholderQr"}) {
    const bool has_vectors = op == absl::string_view("Eigh") || op == absl::string_view("HouseholderQr");
    const auto graph_of = [op, has_vectors](absl::string_view shape) {
      return absl::StrCat("graph \"g\" { %a = input : f64[", shape, "]  %w", has_vectors ? ":2" : "",
                          " = tensord.linalg.v1.", op, "(%a)  output \"w\" = %w }");
    };
    EXPECT_EQ(OperationsIn(graph_of("3,3,1000000")), 1000000 * OperationsIn(graph_of("3,3"))) << op;
  }
}

TEST_F(RunOperationsTest, AKernelGoesToEachIndexThatItKeeps) {
  EXPECT_GE(OperationsIn(R"(graph "g" { %x = input : f64[0,1000000]
              %square = multiply(%x, %x)
              %y = reduce(%square) {kind = sum, dimensions = [0]}  output "y" = %y })"),
            1'000'000);
}

TEST_F(RunOperationsTest, SizesOfTheRunAreHeldToIt) {
  const auto program = CompileWith(R"(graph "g" { %x = input : f64[n]
                                      %y = reduce(%x) {kind = sum, dimensions = [0]}  output "y" = %y })",
                                   1000);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_TRUE((*program)->Bind({{.dtype = DType::kF64, .shape = {900}}}).ok());
  const absl::Status refused = (*program)->Bind({{.dtype = DType::kF64, .shape = {1'000'000}}}).status();
  EXPECT_EQ(DetailOf(refused).value_or(RefusalDetail{}).limit, "run_operations") << refused;
}

// The size of what the second part computes is the sum that the first has computed.
constexpr absl::string_view kTwoParts = R"(graph "g" {
  %x = input : f64[n]
  %e = exp(%x)
  %square = multiply(%e, %e)
  %sum = reduce(%square) {kind = sum, dimensions = [0]}
  %size = convert(%sum) {dtype = i64}
  %cut = dynamic_truncate(%x, %size) {dimension = 0}
  %y = exp(%cut)
  output "y" = %y
})";

TEST_F(RunOperationsTest, PartsOfARunThatDecidesSizesCountTogether) {
  const std::vector<Literal> arguments = {*Literal::Create({DType::kF64, {1000}})};
  const auto run = [&](int64_t most) {
    const auto program = CompileWith(kTwoParts, most);
    EXPECT_TRUE(program.ok()) << program.status();
    EXPECT_NE((*program)->staged(), nullptr);
    const absl::Status first = RunCompiled(**program, arguments).status();
    EXPECT_EQ(first, RunCompiled(**program, arguments).status()) << "also where parts are bound already";
    return first;
  };
  // Each of the two alone.
  const RefusalDetail of_first = DetailOf(run(0)).value_or(RefusalDetail{});
  EXPECT_EQ(of_first.node, "size");
  EXPECT_GE(of_first.actual_value, 3000);

  const absl::Status refused = run(of_first.actual_value);
  const RefusalDetail of_both = DetailOf(refused).value_or(RefusalDetail{});
  EXPECT_EQ(of_both.limit, "run_operations") << refused;
  EXPECT_EQ(of_both.limit_value, of_first.actual_value);
  EXPECT_GE(of_both.actual_value, of_first.actual_value + 1000);
  EXPECT_EQ(of_both.node, "size") << "the one that takes most, though it has run";
  EXPECT_TRUE(run(of_both.actual_value).ok());
}

}  // namespace
}  // namespace tensord
