// Derivatives of values whose sizes only the run decides.
#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/autodiff/differentiate.h"
#include "engine/base/refusal.h"
#include "engine/ir/printer.h"
#include "engine/ir/verifier.h"
#include "engine/reference/evaluator.h"
#include "gtest/gtest.h"
#include "tests/testlib/graphs/derivative_check.h"
#include "tests/testlib/graphs/parsed_graph.h"
#include "tests/testlib/numbers/literal_of.h"

namespace tensord {
namespace {

// The graph of nodes over %x f64[5], and %t, its first %k elements.
Graph TruncatedGraph(const std::string& nodes) {
  return TypedGraph(
      absl::StrCat("graph \"g\" { %x = input : f64[5] %k = input : i64[] %j = input : i32[3]\n%s = sin(%x)\n",
                   "%t = dynamic_truncate(%s, %k) {dimension = 0}\n", nodes, "\noutput \"y\" = %y }"));
}

std::vector<Literal> Arguments(int64_t kept) {
  Literal places = *Literal::Create({.dtype = DType::kI32, .shape = {3}});
  const int32_t at[] = {2, 0, 1};
  std::copy(std::begin(at), std::end(at), places.mutable_values<int32_t>().begin());
  return {LiteralOf(std::vector<double>{0.3, 1.2, -0.7, 0.9, 0.5}), Literal::Scalar(kept), std::move(places)};
}

TEST(RunTimeSizes, HaveDerivatives) {
  const std::string gather =
      "{offset_dims = [], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1,";
  const std::string scatter = "{inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1,";
  for (const std::string& nodes : std::vector<std::string>{
           "%m = multiply(%t, %t) %y = reduce(%m) {kind = sum, dimensions = [0]}",
           "%y = reduce(%t) {kind = product, dimensions = [0]}", "%y = reduce(%t) {kind = max, dimensions = [0]}",
           "%e = exp(%t) %y = concatenate(%t, %x, %e) {dimension = 0}",
           "%e = exp(%x) %y = concatenate(%x, %t, %e, %t) {dimension = 0}",
           absl::StrCat("%y = gather(%t, %j) ", gather, " slice_sizes = [1]}"),
           absl::StrCat("%u = slice(%s) {start_indices = [0], limit_indices = [3]} %y = scatter(%t, %j, %u) ", scatter,
                        " combiner = add}"),
           absl::StrCat("%u = slice(%s) {start_indices = [0], limit_indices = [3]} %y = scatter(%t, %j, %u) ", scatter,
                        " combiner = set}"),
           absl::StrCat("%u = slice(%s) {start_indices = [0], limit_indices = [3]} %y = scatter(%t, %j, %u) ", scatter,
                        " combiner = multiply}"),
           absl::StrCat("%i = constant() {value = i64[5] [0, 1, 0, 8, 1]} ",
                        "%p = dynamic_truncate(%i, %k) {dimension = 0} %y = scatter(%s, %p, %t) ", scatter,
                        " combiner = multiply}"),
           "%y = tensord.fft.v1.Fft(%t) {kind = rfft, axes = [0]}",
           "%y = tensord.fft.v1.Fft(%t) {kind = irfft, axes = [0]}",
           "%y = tensord.fft.v1.Fft(%t) {kind = irfft, axes = [0], lengths = [7]}"}) {
    const Graph graph = TruncatedGraph(nodes);
    for (const int64_t kept : {3, 4, 9}) {
      std::mt19937_64 random(3);
      const absl::StatusOr<DerivativeErrors> errors = MeasureDerivatives(graph, Arguments(kept), &random);
      ASSERT_TRUE(errors.ok()) << nodes << ": " << errors.status();
      EXPECT_LT(errors->jvp, 1e-7) << nodes;
      EXPECT_LT(errors->adjoint, 1e-12) << nodes;
    }
  }
}

absl::Status WithCotangent(const Graph& graph, std::vector<Literal> arguments, int64_t size) {
  absl::StatusOr<Graph> vjp = Differentiate(graph, {.mode = DerivativeMode::kVjp, .wrt = {"x"}});
  if (!vjp.ok()) return vjp.status();
  const auto guards = InferTypes(&*vjp);
  if (!guards.ok()) return guards.status();
  arguments.push_back(LiteralOf(std::vector<double>(static_cast<size_t>(size), 1)));
  return EvaluateReference(*vjp, *guards, arguments).status();
}

TEST(RunTimeSizes, OfCotangentsAreThoseOfTheValues) {
  const Graph graph = TruncatedGraph("%y = exp(%t)");
  EXPECT_TRUE(WithCotangent(graph, Arguments(3), 3).ok()) << WithCotangent(graph, Arguments(3), 3);
  for (const int64_t size : {0, 1, 2, 4, 5, 6}) {
    const absl::Status status = WithCotangent(graph, Arguments(3), size);
    EXPECT_TRUE(IsRefusal(status, Refusal::kShapeMismatch)) << size << ": " << status;
  }
}

// Whether an axis repeats, only the run knows.
TEST(RunTimeSizes, OfBroadcastsMayRepeat) {
  const Graph graph = TypedGraph(R"(graph "g" {
  %x = input : f64[n,2]
  %z = input : f64[m,2]
  %s = sin(%x)
  %b = broadcast_in_dim(%s) {shape = [3, m, 2], broadcast_dimensions = [1, 2]}
  %c = broadcast_in_dim(%z) {shape = [3, m, 2], broadcast_dimensions = [1, 2]}
  %y = multiply(%b, %c)
  output "y" = %y
})");
  for (const auto& [n, m] : std::vector<std::pair<int64_t, int64_t>>{{1, 4}, {4, 4}, {1, 1}, {1, 0}, {0, 0}}) {
    std::mt19937_64 random(5);
    std::uniform_real_distribution<double> number(-1, 1);
    std::vector<Literal> arguments;
    for (const int64_t rows : {n, m}) {
      arguments.push_back(*Literal::Create({.dtype = DType::kF64, .shape = {rows, 2}}));
      for (double& value : arguments.back().mutable_values<double>()) value = number(random);
    }
    const absl::StatusOr<DerivativeErrors> errors = MeasureDerivatives(graph, arguments, &random);
    ASSERT_TRUE(errors.ok()) << n << " and " << m << ": " << errors.status();
    EXPECT_LT(errors->jvp, 1e-7) << n << " and " << m;
    EXPECT_LT(errors->adjoint, 1e-12) << n << " and " << m;
  }
}

}  // namespace
}  // namespace tensord
