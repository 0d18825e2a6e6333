#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensord/tensord.h"
#include "tests/unit/clients/cpp/lazy/client_tensors.h"
#include "tests/unit/clients/cpp/lazy/traced_text.h"

namespace tensord::client {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const int64_t n = Symbol("n");
const int64_t m = Symbol("m");

Tensor Open(Shape shape, std::string name = "p") { return Tensor::Parameter(std::move(name), DType::kF32, shape); }

TEST(Symbols, AreSizesWithNames) {
  EXPECT_EQ(Symbol("n"), n);
  EXPECT_NE(n, m);
  EXPECT_TRUE(IsSymbol(n));
  EXPECT_FALSE(IsSymbol(kRunTimeSize));
  EXPECT_FALSE(IsRunTimeSize(-1));
  EXPECT_EQ(ShapeToString({n, 3, kRunTimeSize}), "[n,3,?]");
  EXPECT_FALSE(HostTensor::FromVector(std::vector<float>{1}, {n}).ok());
}

TEST(Symbols, StandInTheTypesOfInputsAndInAttributes) {
  const Tensor x = Open({n, 4});
  const absl::StatusOr<TracedGraph> traced = Trace({x + Input({4})}, {x});
  ASSERT_TRUE(traced.ok()) << traced.status();
  EXPECT_EQ(traced->graph.inputs(0).name(), "p");
  EXPECT_EQ(traced->graph.inputs(0).type().shape(0).symbol(), "n");
  EXPECT_EQ(traced->graph.inputs(1).name(), "x0");
  ASSERT_EQ(traced->graph.nodes_size(), 2);
  EXPECT_EQ(traced->graph.nodes(0).broadcast_in_dim().shape(0).symbol(), "n");
  EXPECT_EQ(traced->arguments.size(), 1u);
}

TEST(Symbols, GoThroughOperations) {
  const Tensor x = Open({n, 4});
  EXPECT_EQ(ShapeToString(MatMul(x, Input({4, 8})).shape()), "[n,8]");
  EXPECT_EQ(ShapeToString(MatMul(Transpose(x), x).shape()), "[4,4]");
  EXPECT_EQ(ShapeToString(Sum(x, 0).shape()), "[4]");
  EXPECT_EQ(ShapeToString(Sum(x, 1, true).shape()), "[n,1]");
  EXPECT_EQ(ShapeToString((x - Mean(x, 0)).shape()), "[n,4]");
  EXPECT_EQ(ShapeToString(Full({n, 2}, 1, DType::kF32).shape()), "[n,2]");
  EXPECT_EQ(ShapeToString(Iota(DType::kI64, {n}).shape()), "[n]");
  EXPECT_EQ(ShapeToString(Reshape(x, {n, 2, -1}).shape()), "[n,2,2]") << Reshape(x, {n, 2, -1}).status();
  EXPECT_EQ(ShapeToString(Reshape(x, {-1, 4}).shape()), "[n,4]");
  EXPECT_EQ(ShapeToString(Reshape(x, {-1}).shape()), "[?]");
  EXPECT_EQ(Why(Reshape(x, {n, 3, -1})), "Reshape: no size fits -1: [n,4] beside [n,3]");
  EXPECT_EQ(Why(Reshape(x, {-1, -1})), "Reshape: two sizes are -1: [-1,-1]");
  EXPECT_EQ(ShapeToString(Concatenate({x, x}).shape()), "[?,4]");
  EXPECT_EQ(ShapeToString(Solve(Open({n, 3, 3}), Open({n, 3, 2}, "q")).shape()), "[n,3,2]");
  EXPECT_EQ(ShapeToString(Svd(Open({n, 3})).s.shape()), "[?]");
  EXPECT_EQ(ShapeToString(Rfft(Open({3, n})).shape()), "[3,?]");
  EXPECT_EQ(ShapeToString(Einsum("bi,ij->bj", {x, Input({4, 2})}).shape()), "[n,2]");
  EXPECT_EQ(ShapeToString(PadToMatch(Input({2}), Open({n})).shape()), "[?]");
  EXPECT_EQ(ShapeToString(Select(x > 0, x, 0).shape()), "[n,4]");
}

TEST(Symbols, OfDifferentNamesDiffer) {
  EXPECT_EQ(Why(Open({n}) + Open({m}, "q")), "Add: shapes do not broadcast: [n] and [m]");
  EXPECT_EQ(Why(Open({n}) + Input({3})), "Add: shapes do not broadcast: [n] and [3]");
  EXPECT_THAT(Why(MatMul(Open({2, n}), Open({m, 2}, "q"))), HasSubstr("[2,n] and [m,2]"));
  EXPECT_THAT(Why(Einsum("i,i->", {Open({n}), Open({m}, "q")})), HasSubstr("sizes of \"i\" differ: [n]"));
}

TEST(Parameters, NeedAFunction) {
  const Tensor x = Open({2});
  EXPECT_EQ(TracedText({Exp(x)}), "a parameter has no value; compile its function, or name it among those of Trace: p");
  EXPECT_EQ(Trace({x}, {Open({2}, "a"), Open({2}, "a")}).status().message(), "Trace: two parameters have one name: a");
  EXPECT_FALSE(Trace({x}, {Input({2})}).ok());
  EXPECT_FALSE(Open({2}, "").ok());
  EXPECT_FALSE(Open({2}, "a:b").ok());
  EXPECT_FALSE(Open({-1}).ok());
  EXPECT_FALSE(Open({kRunTimeSize}).ok());
}

TEST(Parameters, KeepTheirNamesBesideValues) {
  const Tensor x = Open({2}, "x0");
  const TracedGraph traced = *Trace({x + Input({2})}, {x, Open({3}, "unused")});
  ASSERT_EQ(traced.graph.inputs_size(), 3);
  EXPECT_EQ(traced.graph.inputs(0).name(), "x0");
  EXPECT_EQ(traced.graph.inputs(1).name(), "unused");
  EXPECT_EQ(traced.graph.inputs(2).name(), "x0_");
}

TEST(Places, AreThoseOfTheUsersCall) {
  const std::string add = absl::StrCat("symbol_test.cc:", __LINE__ + 1);
  const Tensor failed = Input({2}) + Input({3});
  EXPECT_THAT(failed.status().ToString(), ::testing::EndsWith(absl::StrCat("; at ", add)));
  EXPECT_EQ(Exp(failed).status(), failed.status());
  EXPECT_EQ((failed + 1).status(), failed.status());
  EXPECT_EQ(Take(Input({1}), failed).status(), failed.status());

  const std::string mean = absl::StrCat("symbol_test.cc:", __LINE__ + 1);
  EXPECT_THAT(Mean(Input({2}), 5).status().ToString(), ::testing::EndsWith(absl::StrCat("; at ", mean)));
  const std::string index = absl::StrCat("symbol_test.cc:", __LINE__ + 1);
  EXPECT_THAT(Input({2})[5].status().ToString(), ::testing::EndsWith(absl::StrCat("; at ", index)));
  const std::string literal = absl::StrCat("symbol_test.cc:", __LINE__ + 1);
  EXPECT_THAT((Input({2}) + 1e300).status().ToString(), ::testing::EndsWith(absl::StrCat("; at ", literal)));
}

TEST(Places, NameNodes) {
  const int line = __LINE__ + 1;
  const Tensor y = Mean(Input({2, 3}), 0);
  const TracedGraph traced = *Trace({y});
  ASSERT_GT(traced.graph.nodes_size(), 1);
  for (int i = 0; i < traced.graph.nodes_size(); ++i) {
    EXPECT_EQ(traced.graph.nodes(i).name(), absl::StrCat("Mean_", i, "@symbol_test.cc#L", line));
  }
  EXPECT_THAT(Trace({Svd(Input({2, 2})).s})->graph.outputs(0).value(), StartsWith("Svd_0@symbol_test.cc#L"));
}

TEST(Symbols, AreNoLengthsOfTransforms) {
  const Tensor x = Tensor::Parameter("x", DType::kF64, {n, 4});
  const Tensor y = Irfft(Rfft(x, 0), 0, {.lengths = {n}});
  EXPECT_EQ(y.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(y.status().message()), HasSubstr("[n]"));
}

}  // namespace
}  // namespace tensord::client
