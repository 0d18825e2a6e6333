// Derivatives by the C++ client and by tensordctl, against the server binary.
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clients/cli/files/file.h"
#include "clients/cli/files/npy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensord/messages.h"
#include "tensord/tensord.h"
#include "tests/e2e/client_test.h"
#include "tests/testlib/peers/tensordctl_call.h"

namespace tensord::client {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using ::testing::StartsWith;

Tensor Doubles(std::vector<double> values, Shape shape) {
  return Tensor::FromVector(std::move(values), std::move(shape));
}

class ClientGradientTest : public ClientTest {
 protected:
  void ExpectValues(const Tensor& tensor, const std::vector<double>& expected) {
    const absl::StatusOr<HostTensor> value = Eval(*client_, tensor);
    ASSERT_TRUE(value.ok()) << value.status();
    EXPECT_EQ(value->shape(), tensor.shape());
    EXPECT_THAT(*value->Values<double>(), Pointwise(DoubleNear(1e-12), expected));
  }
};

TEST_F(ClientGradientTest, OfALayer) {
  const Tensor x = Doubles({1, 2, 3, 4, 5, 6}, {3, 2});
  const Tensor w = Doubles({0.5, -0.25}, {2});
  const Tensor b = Doubles({1}, {});
  const Tensor error = MatMul(x, w) + b;
  const Tensor loss = Sum(error * error);
  const std::vector<Tensor> slopes = Gradient(*client_, loss, {w, b, w});
  ASSERT_EQ(slopes.size(), 3u);
  ASSERT_TRUE(slopes[0].ok()) << slopes[0].status();
  // The errors are 1, 1.5 and 2.
  ExpectValues(slopes[0], {2 * (1 * 1 + 1.5 * 3 + 2 * 5), 2 * (1 * 2 + 1.5 * 4 + 2 * 6)});
  ExpectValues(slopes[1], {2 * 4.5});
  ExpectValues(slopes[2] - slopes[0], {0, 0});
  ExpectValues(w - 0.5 * slopes[0], {0.5 - 15.5, -0.25 - 20});
}

TEST_F(ClientGradientTest, SharesTheNodesOfTheValue) {
  const Tensor x = Doubles({0.5, 1}, {2});
  const Tensor y = Tanh(x);
  const Tensor loss = Sum(y);
  const std::vector<Tensor> slopes = Gradient(*client_, loss, {x});
  const absl::StatusOr<TracedGraph> traced = Trace({loss, slopes[0]});
  ASSERT_TRUE(traced.ok()) << traced.status();
  int tanhs = 0;
  for (const v1::Node& node : traced->graph.nodes()) {
    tanhs += node.has_unary() && node.unary() == v1::UNARY_OP_TANH ? 1 : 0;
    EXPECT_THAT(node.name(), HasSubstr("@client_gradient_test.cc#L"));
  }
  EXPECT_EQ(tanhs, 1);
  ExpectValues(slopes[0], {1 - std::pow(std::tanh(0.5), 2), 1 - std::pow(std::tanh(1), 2)});
}

TEST_F(ClientGradientTest, OfGradientsAndOfValuesInBetween) {
  const Tensor x = Doubles({1, 2}, {2});
  const Tensor cube = x * x * x;
  const Tensor first = Gradient(*client_, Sum(cube), {x})[0];
  const Tensor second = Gradient(*client_, Sum(first), {x})[0];
  ExpectValues(second, {6, 12});
  ExpectValues(Gradient(*client_, Sum(cube * x), {cube})[0], {1, 2});  // x is a constant of the product
  ExpectValues(Gradient(*client_, Sum(x), {Doubles({3}, {1})})[0], {0});
}

TEST_F(ClientGradientTest, InACompiledFunctionOfAnySize) {
  Client& client = *client_;
  const int64_t n = Symbol("n");
  const auto step = Compile(
      client,
      [&client](const Tensor& x, const Tensor& w) {
        const Tensor loss = Sum(Tanh(x * w));
        return w - Gradient(client, loss, {w})[0];
      },
      Spec<double>({n}, "x"), Spec<double>({}, "w"));
  ASSERT_TRUE(step.ok()) << step.status();
  const auto updated = (*step)(*HostTensor::FromVector<double>({1, 2}, {2}), *HostTensor::FromVector<double>({0}, {}));
  ASSERT_TRUE(updated.ok()) << updated.status();
  EXPECT_THAT(*updated->Values<double>(), ElementsAre(-3));
}

TEST_F(ClientGradientTest, ReadsResultsThatNobodyHadUsed) {
  const Tensor a = Doubles({2, 1, 1, 3}, {2, 2});
  const Tensor loss = Sum(Eigh(a).values);
  const Tensor slope = Gradient(*client_, loss, {a})[0];
  ExpectValues(slope, {1, 0, 0, 1});
}

TEST_F(ClientGradientTest, Refusals) {
  const Tensor x = Doubles({1, 2}, {2});
  const auto why = [this](const Tensor& value, const Tensor& wrt) {
    const std::vector<Tensor> slopes = Gradient(*client_, value, {wrt});
    EXPECT_EQ(slopes.size(), 1u);
    EXPECT_FALSE(slopes[0].ok());
    return std::string(slopes[0].status().message());
  };
  EXPECT_THAT(why(Exp(x), x), HasSubstr("MODE_GRAD takes an output of rank 0"));
  EXPECT_THAT(why(Sum(x), Tensor::FromVector<int64_t>({1}, {1})), StartsWith("Gradient: only floats and complex"));
  EXPECT_THAT(why(Sum(x), x + Doubles({1, 2, 3}, {3})), HasSubstr("shapes do not broadcast"));
  EXPECT_THAT(why(Tensor(), x), HasSubstr("none was assigned"));
  EXPECT_TRUE(Gradient(*client_, Sum(x), {}).empty());
  const Tensor vectors = Sum(Abs(Eig(Doubles({1, 0, 0, 2}, {2, 2})).vectors));
  EXPECT_TRUE(Gradient(*client_, vectors, {x})[0].ok());  // x does not lead there
  const Tensor a = Doubles({1, 0, 0, 2}, {2, 2});
  const Tensor slope = Gradient(*client_, Sum(Abs(Eig(a).vectors)), {a})[0];
  EXPECT_TRUE(absl::IsUnimplemented(slope.status())) << slope.status();
  EXPECT_THAT(GetErrorDetail(slope.status()).value_or(ErrorDetail()).node, StartsWith("Eig_"));
}

// Execute compiles row-major unless told otherwise, and the derivative is of the graph that it compiles.
TEST_F(ClientGradientTest, ReadsConstantsAsTheCompilationDoes) {
  const Tensor x = Tensor::Parameter("x", DType::kF64, {2, 2});
  absl::StatusOr<TracedGraph> traced =
      Trace({Sum(x * Tensor::Constant(*HostTensor::FromVector<double>({1, 2, 3, 4}, {2, 2})))}, {x});
  ASSERT_TRUE(traced.ok()) << traced.status();
  int constants = 0;
  for (v1::Node& node : *traced->graph.mutable_nodes()) {
    if (!node.has_constant()) continue;
    node.mutable_constant()->mutable_value()->clear_order();
    ++constants;
  }
  ASSERT_EQ(constants, 1);
  const auto derivative = client_->Differentiate(traced->graph);
  ASSERT_TRUE(derivative.ok()) << derivative.status();
  const auto result = client_->Execute(*derivative, {*HostTensor::FromVector<double>({0, 0, 0, 0}, {2, 2})});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(*result->outputs[0].Values<double>(), ElementsAre(1, 2, 3, 4));
}

TEST_F(ClientGradientTest, InTwoPasses) {
  const Tensor x = Tensor::Parameter("x", DType::kF64, {2});
  const absl::StatusOr<TracedGraph> traced = Trace({Sum(Exp(Sin(x)))}, {x});
  ASSERT_TRUE(traced.ok()) << traced.status();
  const auto whole = client_->Differentiate(traced->graph);
  const auto passes = client_->DifferentiateInTwo(traced->graph);
  ASSERT_TRUE(whole.ok() && passes.ok()) << whole.status() << passes.status();
  ASSERT_EQ(passes->forward.outputs_size(), 2);  // the sum, and the exponentials
  ASSERT_EQ(passes->backward.inputs_size(), 2);
  EXPECT_EQ(passes->backward.inputs(1).name(), passes->forward.outputs(1).name());
  const HostTensor at = *HostTensor::FromVector<double>({1, 2}, {2});
  const auto first = client_->Execute(passes->forward, {at});
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = client_->Execute(passes->backward, {at, first->outputs[1]});
  const auto expected = client_->Execute(*whole, {at});
  ASSERT_TRUE(second.ok() && expected.ok()) << second.status() << expected.status();
  EXPECT_THAT(*second->outputs[0].Values<double>(),
              Pointwise(DoubleNear(1e-14), *expected->outputs[0].Values<double>()));

  const auto unknown = client_->Differentiate(traced->graph, {.checkpoints = {"nothing"}});
  EXPECT_EQ(GetErrorDetail(unknown.status()).value_or(ErrorDetail()).reason, "VALUE_UNKNOWN") << unknown.status();
}

TEST_F(ClientGradientTest, OfGraphsByTheCallAndTheCommand) {
  const Tensor x = Tensor::Parameter("x", DType::kF64, {2});
  const absl::StatusOr<TracedGraph> traced = Trace({Sum(x * x)}, {x});
  ASSERT_TRUE(traced.ok()) << traced.status();
  const auto derivative =
      client_->Differentiate(traced->graph, {.mode = DerivativeMode::kJvp, .wrt = {"x"}, .keep_outputs = true});
  ASSERT_TRUE(derivative.ok()) << derivative.status();
  const HostTensor at = *HostTensor::FromVector<double>({1, 2}, {2});
  const auto result = client_->Execute(*derivative, {at, *HostTensor::FromVector<double>({1, 1}, {2})});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(*result->outputs[0].Values<double>(), ElementsAre(5));
  EXPECT_THAT(*result->outputs[1].Values<double>(), ElementsAre(6));

  const std::string target = "--target=" + server_->target();
  const std::string base = absl::StrCat(::testing::TempDir(), "/gradient-", getpid());
  const std::string graph = base + ".pb", slope = base + ".json", input = base + "-x.npy", output = base + "-y.npy";
  ASSERT_TRUE(cli::WriteFile(graph, traced->graph.SerializeAsString()).ok());
  ASSERT_TRUE(cli::WriteNpy(input, at).ok());
  const cli::Outcome made =
      cli::CallTensordctl({"differentiate", graph, "--mode=grad", "--wrt=x", "--output=" + slope, target});
  EXPECT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("input x\noutput x.cotangent\n"));
  const cli::Outcome run =
      cli::CallTensordctl({"run", slope, "--input=x=" + input, "--output=x.cotangent=" + output, target});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(*cli::ReadNpy(output)->Values<double>(), ElementsAre(2, 4));
  for (const std::string& path : {graph, slope, input, output}) std::remove(path.c_str());
}

}  // namespace
}  // namespace tensord::client
