// The C++ client and tensordctl against the server binary.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <complex>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clients/cli/files/file.h"
#include "clients/cli/files/npy.h"
#include "clients/cpp/lazy/expression.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensord/messages.h"
#include "tensord/tensord.h"
#include "tests/e2e/client_test.h"
#include "tests/testlib/peers/tensordctl_call.h"

namespace tensord::client {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using ::testing::StartsWith;

class ClientCppTest : public ClientTest {
 protected:
  // Returns false if the server lacks an operation of the tensor, which its table of capabilities must then say too.
  bool IsProvided(const Tensor& tensor) {
    const absl::Status status = client_->Compile(Trace({tensor})->graph).status();
    if (!absl::IsUnimplemented(status)) return true;
    const std::string op = GetErrorDetail(status).value_or(ErrorDetail()).op;
    const absl::StatusOr<v1::ServerInfo> info = client_->GetServerInfo(/*with_capabilities=*/true);
    EXPECT_TRUE(info.ok()) << info.status();
    if (!info.ok()) return true;
    for (const v1::Capability& capability : info->capabilities()) {
      EXPECT_NE(capability.op(), op) << "has the operation and says it has not: " << status;
    }
    return false;
  }

  // Expects these elements, row-major.
  void ExpectValues(const Tensor& tensor, const std::vector<float>& expected) {
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    if (!IsProvided(tensor)) return;
    const absl::StatusOr<HostTensor> value = Eval(*client_, tensor);
    ASSERT_TRUE(value.ok()) << value.status();
    EXPECT_EQ(value->shape(), tensor.shape());
    const auto elements = value->Values<float>();
    ASSERT_TRUE(elements.ok()) << elements.status();
    EXPECT_THAT(*elements, ElementsAreArray(expected)) << tensor.expression()->op.ShortDebugString();
  }
};

Tensor Counting(Shape shape) {
  const int64_t count = *ElementCount(shape);
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) + 1;
  return Tensor::FromVector(std::move(values), std::move(shape));
}

TEST_F(ClientCppTest, EvaluatesASoftmaxLayer) {
  const Tensor x = Counting({2, 3});
  const Tensor shifted = Exp(x - Max(x, {-1}, /*keep_dims=*/true));
  const Tensor softmax = shifted / Sum(shifted, {-1}, /*keep_dims=*/true);
  const float sum = 1 + std::exp(-1.0f) + std::exp(-2.0f);
  const std::vector<float> row = {std::exp(-2.0f) / sum, std::exp(-1.0f) / sum, 1 / sum};
  const auto values = EvalAll(*client_, {softmax, Sum(softmax), x});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_THAT(*(*values)[0].Values<float>(),
              Pointwise(FloatNear(1e-6f), {row[0], row[1], row[2], row[0], row[1], row[2]}));
  EXPECT_THAT(*(*values)[1].Values<float>(), ElementsAre(FloatNear(2, 1e-6f)));
  EXPECT_THAT(*(*values)[2].Values<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_F(ClientCppTest, BothOrdersGiveTheSameTensor) {
  const HostTensor column_major =
      *HostTensor::FromVector(std::vector<float>{1, 4, 2, 5, 3, 6}, {2, 3}, MemoryOrder::kColumnMajor);
  const Tensor x = Tensor::FromHost(column_major);
  const Tensor y = MatMul(x, Transpose(x)) + 0 * Counting({1, 2});
  ExpectValues(y, {14, 32, 32, 77});
  ExpectValues(x, {1, 2, 3, 4, 5, 6});
  const auto as_columns = Eval(*client_, x, {.order = MemoryOrder::kColumnMajor});
  ASSERT_TRUE(as_columns.ok()) << as_columns.status();
  EXPECT_EQ(as_columns->order(), MemoryOrder::kColumnMajor);
  EXPECT_THAT(*as_columns->Values<float>(), ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST_F(ClientCppTest, OperationsMeanWhatNumpyMeans) {
  const Tensor x = Counting({2, 3});
  ExpectValues(Reshape(x, {3, 2}), {1, 2, 3, 4, 5, 6});
  ExpectValues(Reshape(Transpose(x), {6}), {1, 4, 2, 5, 3, 6});
  ExpectValues(Reshape(x, {6}, MemoryOrder::kColumnMajor), {1, 4, 2, 5, 3, 6});
  ExpectValues(Concatenate({x, Full({2, 1}, 9, DType::kF32)}, 1), {1, 2, 3, 9, 4, 5, 6, 9});
  ExpectValues(Pad(x, -1, {0, 1}, {1, -1}), {-1, 1, 2, -1, 4, 5, -1, -1, -1});
  ExpectValues(Slice(x, {0, 0}, {2, 3}, {1, 2}), {1, 3, 4, 6});
  ExpectValues(Reverse(x, {1}), {3, 2, 1, 6, 5, 4});
  ExpectValues(Take(x, Tensor::FromVector<int64_t>({2, 0}, {2}), 1), {3, 1, 6, 4});
  ExpectValues(Select(Greater(x, 3), x, 0), {0, 0, 0, 4, 5, 6});
  ExpectValues(Clamp(2, x, Tensor::FromVector<float>({3, 4, 5}, {3})), {2, 2, 3, 3, 4, 5});
  ExpectValues(Mean(x, {0}), {2.5f, 3.5f, 4.5f});
  ExpectValues(Tril(Counting({2, 2})), {1, 0, 3, 4});
  ExpectValues(ExtractDiag(Counting({2, 2})), {1, 4});
  ExpectValues(Triu(Counting({2, 2}), 1), {0, 2, 0, 0});
  ExpectValues(EmbedDiag(Counting({2}), 0, 1), {1, 0, 0, 2});
}

TEST_F(ClientCppTest, IndicesOutOfBoundsAreClampedOrSkipped) {
  const Tensor x = Counting({2, 3});
  const Tensor far = Tensor::FromVector<int64_t>({INT64_MIN, 1, INT64_MAX}, {3});
  ExpectValues(Take(x, far, 1), {1, 2, 3, 4, 5, 6});
  ExpectValues(DynamicSlice(x, Tensor::FromVector<int32_t>({1, 9}, {2}), {1, 2}), {5, 6});
  ExpectValues(DynamicUpdateSlice(x, Full({1, 2}, 9, DType::kF32), Tensor::FromVector<int64_t>({-9, 2}, {2})),
               {1, 9, 9, 4, 5, 6});
  ExpectValues(Put(x, far, Full({2, 3}, 10, DType::kF32), v1::Scatter::COMBINER_ADD, 1), {1, 12, 3, 4, 15, 6});
}

TEST_F(ClientCppTest, PutCombinesEachUpdate) {
  const Tensor x = Counting({3});
  const Tensor twice = Tensor::FromVector<int32_t>({2, 0, 2}, {3});
  const Tensor updates = Tensor::FromVector<float>({5, -1, 2}, {3});
  ExpectValues(Put(x, twice, updates, v1::Scatter::COMBINER_ADD), {0, 2, 10});
  ExpectValues(Put(x, twice, updates, v1::Scatter::COMBINER_SET), {-1, 2, 2});
  ExpectValues(Put(x, twice, updates, v1::Scatter::COMBINER_MULTIPLY), {-1, 2, 30});
  ExpectValues(Put(x, twice, updates, v1::Scatter::COMBINER_MINIMUM), {-1, 2, 2});
  ExpectValues(Put(x, twice, updates, v1::Scatter::COMBINER_MAXIMUM), {1, 2, 5});
  ExpectValues(TakeAlongAxis(Counting({2, 3}), Tensor::FromVector<int64_t>({2, 0, 1, 1}, {2, 2}), 1), {3, 1, 5, 5});
}

TEST_F(ClientCppTest, RunTimeSizesAreThoseOfTheRun) {
  const Tensor x = Counting({3, 2});
  for (const int64_t size : {int64_t{-1}, int64_t{0}, int64_t{2}, INT64_MAX}) {
    const Tensor head = DynamicTruncate(x, Tensor::FromVector<int64_t>({size}, {}));
    const int64_t kept = std::clamp<int64_t>(size, 0, 3);
    const std::vector<Tensor> outputs = {head * 2, Sum(head, {0}), ShapeOf(head, 0), PadToMatch(head, x)};
    if (!IsProvided(head)) return;
    const auto values = EvalAll(*client_, outputs);
    ASSERT_TRUE(values.ok()) << values.status();
    std::vector<float> doubled, sums = {0, 0}, padded(6, 0);
    for (int64_t i = 0; i < 2 * kept; ++i) {
      const float value = static_cast<float>(i + 1);
      doubled.push_back(2 * value);
      sums[static_cast<size_t>(i % 2)] += value;
      padded[static_cast<size_t>(i)] = value;
    }
    EXPECT_THAT((*values)[0].shape(), ElementsAre(kept, 2));
    EXPECT_THAT(*(*values)[0].Values<float>(), ElementsAreArray(doubled));
    EXPECT_THAT(*(*values)[1].Values<float>(), ElementsAreArray(sums));
    EXPECT_THAT(*(*values)[2].Values<int64_t>(), ElementsAre(kept));
    EXPECT_THAT(*(*values)[3].Values<float>(), ElementsAreArray(padded));
  }
}

// A product of matrices as its definition has it: row-major a[m,k] and b[k,n].
std::vector<float> Product(const float* a, const float* b, size_t m, size_t k, size_t n) {
  std::vector<float> c(m * n, 0.0f);
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < n; ++j) {
      for (size_t l = 0; l < k; ++l) c[i * n + j] += a[i * k + l] * b[l * n + j];
    }
  }
  return c;
}

TEST_F(ClientCppTest, MatMulBroadcastsBatches) {
  const HostTensor a = *Counting({3, 2, 4}).expression()->host;
  const HostTensor b = *Counting({3, 4, 5}).expression()->host;
  const float* const a_data = a.Values<float>()->data();
  const float* const b_data = b.Values<float>()->data();
  std::vector<float> batched;
  std::vector<float> one_left;
  std::vector<float> one_right;
  for (size_t i = 0; i < 3; ++i) {
    const auto append = [](std::vector<float>& to, const std::vector<float>& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    append(batched, Product(a_data + 8 * i, b_data + 20 * i, 2, 4, 5));
    append(one_left, Product(a_data, b_data + 20 * i, 2, 4, 5));
    append(one_right, Product(a_data + 8 * i, b_data, 2, 4, 5));
  }
  const Tensor left = Tensor::FromHost(a);
  const Tensor right = Tensor::FromHost(b);
  const Tensor first_left = Squeeze(Slice(left, {0, 0, 0}, {1, 2, 4}), {0});
  const Tensor first_right = Squeeze(Slice(right, {0, 0, 0}, {1, 4, 5}), {0});
  ExpectValues(MatMul(left, right), batched);
  ExpectValues(MatMul(first_left, right), one_left);
  ExpectValues(MatMul(left, first_right), one_right);
  ExpectValues(MatMul(ExpandDims(first_left, {0}), right), one_left);
}

TEST_F(ClientCppTest, InfersWhatTheServerReturns) {
  const Tensor x = Counting({2, 3, 4});
  const Tensor square = Counting({3, 3, 2});
  const Tensor complex = Complex(x, 1);
  const Tensor bools = Greater(x, 5);
  const Tensor index = Tensor::FromVector<int32_t>({0, 1, 2}, {3});
  v1::Gather gather;
  gather.add_offset_dims(0);
  gather.add_offset_dims(2);
  gather.add_collapsed_slice_dims(1);
  gather.add_start_index_map(1);
  gather.set_index_vector_dim(1);
  for (const int64_t size : {1, 1, 4}) gather.add_slice_sizes(size);
  v1::Gather dynamic_gather = gather;
  dynamic_gather.clear_slice_sizes();
  std::vector<v1::DimExpr> sizes(3);
  sizes[0].set_size(1);
  sizes[1].set_size(1);
  sizes[2].mutable_operand()->set_operand(2);
  v1::Scatter scatter;
  scatter.add_inserted_window_dims(0);
  scatter.add_scatter_dims_to_operand_dims(0);
  scatter.set_index_vector_dim(1);
  const std::vector<Tensor> outputs = {
      Abs(complex),
      Real(complex),
      Conj(complex),
      Sign(complex),
      IsFinite(x),
      Not(bools),
      Less(x, 3),
      Exp(x),
      Log1p(x),
      Atan2(x, x),
      Complex(x, x),
      Convert(x, DType::kBF16),
      Convert(x, DType::kI64),
      Pow(x, 2),
      x % 3,
      And(bools, true),
      Sum(x),
      Sum(x, {0, -1}),
      Product(x, {1}, true),
      Max(x, {}),
      All(bools),
      Any(bools, {2}),
      Mean(Convert(x, DType::kF16)),
      Transpose(x),
      Transpose(x, {1, 2, 0}),
      Reshape(x, {4, -1}),
      ExpandDims(x, {1, -1}),
      BroadcastTo(x, {5, 2, 3, 4}),
      BroadcastInDim(Counting({3}), {2, 3, 4}, {1}),
      Concatenate({x, x}, -1),
      Reverse(x, {0, 2}),
      Slice(x, {0, 1, 0}, {2, 3, 4}, {1, 1, 3}),
      Pad(x, 0, {1, 0, -1}, {0, 2, 0}, {0, 1, 0}),
      ExtractDiag(square),
      EmbedDiag(square, 1, -1),
      Tril(square),
      Triu(square, 1),
      Iota(DType::kI64, {2, 3}, 1),
      Full({2, 0}, 1, DType::kF64),
      DotGeneral(x, x, {.lhs_contracting = {2}, .rhs_contracting = {2}, .lhs_batching = {0}, .rhs_batching = {0}}),
      DotGeneral(x, x, {.lhs_contracting = {2}, .rhs_contracting = {2}}, DType::kF64),
      MatMul(x, Counting({4})),
      Take(x, index, 1),
      Take(x, Reshape(index, {1, 3}), -1),
      TakeAlongAxis(x, Reshape(index, {1, 3, 1}) + Convert(Full({2, 3, 4}, 0, DType::kF32), DType::kI32), 1),
      Gather(x, Reshape(index, {3, 1}), gather),
      GatherDynamicSliceSizes(x, Reshape(index, {3, 1}), dynamic_gather, sizes, {Counting({2})}),
      DynamicSlice(x, index, {1, 2, 2}),
      DynamicUpdateSlice(x, Counting({1, 1, 4}), index),
      Scatter(Counting({4}), Reshape(index, {3, 1}), Counting({3}), scatter),
      Put(x, index, Counting({2, 3, 3}), v1::Scatter::COMBINER_MINIMUM, 2),
      ShapeOf(x, -1),
      PadToMatch(x, Counting({5, 1, 1})),
      Select(bools, x, 0),
      Clamp(1, x, 5)};
  std::vector<Tensor> provided;
  for (size_t i = 0; i < outputs.size(); ++i) {
    ASSERT_TRUE(outputs[i].ok()) << i << ": " << outputs[i].status();
    if (!IsProvided(outputs[i])) continue;
    provided.push_back(outputs[i]);
    const auto value = Eval(*client_, outputs[i]);
    ASSERT_TRUE(value.ok()) << outputs[i].expression()->op.ShortDebugString() << ": " << value.status();
    EXPECT_EQ(value->dtype(), outputs[i].dtype()) << outputs[i].expression()->op.ShortDebugString();
    EXPECT_EQ(value->shape(), outputs[i].shape()) << outputs[i].expression()->op.ShortDebugString();
  }
  ASSERT_FALSE(provided.empty());
  const auto together = EvalAll(*client_, provided);
  ASSERT_TRUE(together.ok()) << together.status();
  EXPECT_EQ(together->size(), provided.size());
}

TEST_F(ClientCppTest, EveryDTypeCrossesTheWireUnchanged) {
  const std::vector<HostTensor> tensors = {
      *HostTensor::FromVector(std::vector<bool>{true, false, true}, {3}),
      *HostTensor::FromVector(std::vector<int32_t>{INT32_MIN, 0, 7}, {3, 1}),
      *HostTensor::FromVector(std::vector<int64_t>{INT64_MIN, 7}, {1, 2}),
      *HostTensor::FromVector(std::vector<float>{-0.0f, INFINITY}, {2}), HostTensor::Scalar(0.1),
      *HostTensor::FromVector(std::vector<std::complex<float>>{{1, -2}, {3, 4}}, {2, 1}),
      *HostTensor::FromVector(std::vector<std::complex<double>>{}, {0, 3}),
      *HostTensor::FromVector(std::vector<Half>{Half::FromFloat(1.5f), Half{1}}, {2}),
      *HostTensor::FromVector(std::vector<BFloat16>{BFloat16::FromFloat(-3)}, {1}),
      // More than gRPC receives by default, and more than one slice.
      *HostTensor::FromVector(std::vector<double>(1 << 20, 1.25), {1 << 10, 1 << 10})};
  std::vector<Tensor> outputs;
  for (const HostTensor& tensor : tensors) outputs.push_back(Tensor::FromHost(tensor));
  const auto values = EvalAll(*client_, outputs);
  ASSERT_TRUE(values.ok()) << values.status();
  for (size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ((*values)[i].shape(), tensors[i].shape());
    EXPECT_EQ(std::string((*values)[i].bytes(), (*values)[i].size_bytes()),
              std::string(tensors[i].bytes(), tensors[i].size_bytes()))
        << DTypeName(tensors[i].dtype());
  }
}

TEST_F(ClientCppTest, EqualExpressionsFindTheProgramAgain) {
  const auto compile = [this](float value) {
    const Tensor x = Tensor::FromVector<float>({value, value + 1}, {2});
    return client_->Compile(Trace({Tanh(x) * 17.25})->graph);
  };
  const auto first = compile(1);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = compile(2);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(first->program().fingerprint(), second->program().fingerprint());
  EXPECT_EQ(second->source(), v1::CompileResponse::SOURCE_MEMORY);

  const auto result = client_->Execute(first->program().fingerprint(),
                                       {HostTensor(*HostTensor::FromVector(std::vector<float>{0, 0}, {2}))});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(*result->outputs[0].Values<float>(), ElementsAre(0, 0));
  EXPECT_EQ(client_->GetProgram(first->program().fingerprint())->inputs_size(), 1);
  EXPECT_THAT(*client_->Explain(first->program().fingerprint()), HasSubstr("tanh"));
}

TEST_F(ClientCppTest, ThreadsShareAClient) {
  constexpr int kThreads = 8;
  constexpr int kCalls = 25;
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([this, thread, &right] {
      for (int call = 0; call < kCalls; ++call) {
        const float value = static_cast<float>(thread * kCalls + call);
        const auto result = Eval(*client_, Tensor::FromVector<float>({value, 1}, {2}) + 1);
        if (result.ok() && (*result->Values<float>())[0] == value + 1) ++right;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, kThreads * kCalls);
}

TEST_F(ClientCppTest, RefusalsNameReasonNodeAndOp) {
  const Tensor x = Counting({2});
  v1::Graph graph = Trace({x + x})->graph;
  graph.mutable_inputs(0)->mutable_type()->mutable_shape(0)->set_size(2);
  v1::GraphInput* other = graph.add_inputs();
  other->set_name("other");
  other->mutable_type()->set_dtype(v1::DTYPE_F32);
  other->mutable_type()->add_shape()->set_size(3);
  graph.mutable_nodes(0)->set_inputs(1, "other");
  const auto refused = client_->Compile(graph);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  const auto detail = GetErrorDetail(refused.status());
  ASSERT_TRUE(detail.has_value()) << refused.status();
  EXPECT_FALSE(detail->reason.empty());
  EXPECT_THAT(detail->node, StartsWith("Add_0@client_cpp_test.cc#L"));
  EXPECT_FALSE(detail->op.empty());

  const auto unknown = client_->Execute(std::string(64, '0'), {});
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(GetErrorDetail(unknown.status()).has_value());
  EXPECT_FALSE(client_->Execute(Trace({x})->graph, {}).ok()) << "an argument is missing";
}

TEST_F(ClientCppTest, ServerSpeaksForItself) {
  EXPECT_EQ(*client_->CheckHealth(), Health::kServing);
  EXPECT_EQ(*client_->CheckHealth("nobody"), Health::kServiceUnknown);
  const auto info = client_->GetServerInfo(/*with_capabilities=*/true);
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_GT(info->devices_size(), 0);
  EXPECT_GT(info->capabilities_size(), 0);
}

TEST_F(ClientCppTest, TensordctlRunsAGraphFile) {
  const std::string folder = absl::StrCat(::testing::TempDir(), "/tensordctl-e2e-", getpid());
  const std::string graph = absl::StrCat(folder, ".textproto");
  const std::string input = absl::StrCat(folder, "-x.npy");
  const std::string output = absl::StrCat(folder, "-y.npy");
  const std::string target = absl::StrCat("--target=", server_->target());
  ASSERT_TRUE(cli::WriteFile(graph, R"(
      inputs { name: "x" type { dtype: DTYPE_F32 shape { size: 2 } shape { size: 3 } } }
      nodes { name: "t" inputs: "x" transpose { permutation: [1, 0] } }
      nodes { name: "s" inputs: "x" reduce { kind: KIND_SUM dimensions: [0, 1] } }
      outputs { name: "y" value: "t" }
      outputs { name: "s" value: "s" })")
                  .ok());
  ASSERT_TRUE(cli::WriteNpy(input, *Counting({2, 3}).expression()->host).ok());
  const cli::Outcome run =
      cli::CallTensordctl({"run", graph, target, "--input=x=" + input, "--output=y=" + output, "--profile"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("s: f32[] 21\n"));
  const auto written = cli::ReadNpy(output);
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_THAT(*written->Values<float>(), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(written->shape(), ElementsAre(3, 2));

  EXPECT_THAT(cli::CallTensordctl({"compile", graph, target}).out, HasSubstr("output y: f32[3,2]"));
  EXPECT_EQ(cli::CallTensordctl({"explain", graph, target}).status, 0);
  EXPECT_EQ(cli::CallTensordctl({"validate", graph, target}).status, 0);
  EXPECT_EQ(cli::CallTensordctl({"health", target}).out, "SERVING\n");
  EXPECT_THAT(cli::CallTensordctl({"info", target, "--capabilities"}).out, HasSubstr("cpu"));

  // Rows and columns in the order of the file.
  const cli::Outcome square = cli::CallTensordctl({"einsum", "ij,kj", input, input, "-o", output, target});
  EXPECT_EQ(square.status, 0) << square.err;
  EXPECT_THAT(*cli::ReadNpy(output)->Values<float>(), ElementsAre(14, 32, 32, 77));
  EXPECT_THAT(cli::CallTensordctl({"einsum", "(ij,kj),lj->l", input, input, input, target}).out,
              HasSubstr("f32[2] 366, 831\n"));
  EXPECT_THAT(cli::CallTensordctl({"einsum", "ij,kj", input, input, "--explain", target}).out, HasSubstr("segment 0"));
  const cli::Outcome plan = cli::CallTensordctl({"einsum", "ij,kj,kl->il", input, input, input, "--path", target});
  EXPECT_THAT(plan.out, StartsWith("path                  (0, 1), (0, 1)\nchosen by             auto\n")) << plan.err;
  EXPECT_THAT(cli::CallTensordctl({"einsum", "ij->ji", input, "--path", target}).out,
              StartsWith("path                  none, nothing is contracted\n"));
  EXPECT_THAT(
      cli::CallTensordctl({"einsum", "ij,kj,kl->il", input, input, input, "--steps=(1, 2), (0, 1)", "--path", target})
          .out,
      AllOf(HasSubstr("(1, 2), (0, 1)\nchosen by             path\n"), HasSubstr("intermediate  9 elements")));
  EXPECT_THAT(cli::CallTensordctl({"einsum", "ij,kj,lj->l", input, input, input, "--steps=(1, 2), (0, 1)", target}).out,
              HasSubstr("f32[2] 366, 831\n"));
  const cli::Outcome bounded = cli::CallTensordctl(
      {"einsum", "ij,kj,kl->il", input, input, input, "--steps=(1, 2), (0, 1)", "--largest-intermediate=8", target});
  EXPECT_EQ(bounded.status, 1);
  EXPECT_THAT(bounded.err, HasSubstr("largest_intermediate"));
  const cli::Outcome misfit = cli::CallTensordctl({"einsum", "ij,jk", input, input, target});
  EXPECT_EQ(misfit.status, 1);
  EXPECT_THAT(misfit.err, HasSubstr("  reason: "));
  const cli::Outcome no_label = cli::CallTensordctl({"einsum", "i$,kj", input, input, target});
  EXPECT_EQ(no_label.status, 2);
  EXPECT_THAT(no_label.err, HasSubstr("and no \"$\": i$,kj\n"));

  ASSERT_TRUE(cli::WriteNpy(input, *HostTensor::FromVector(std::vector<double>{1, 2, 2, 4}, {2, 2})).ok());
  ASSERT_TRUE(cli::WriteFile(graph, R"(
      inputs { name: "a" type { dtype: DTYPE_F64 shape { size: 2 } shape { size: 2 } } }
      nodes { name: "inverse" inputs: "a" extension { op { [type.googleapis.com/tensord.linalg.v1.Inverse] {} } } }
      outputs { name: "y" value: "inverse" })")
                  .ok());
  const cli::Outcome singular = cli::CallTensordctl({"run", graph, target, "--input=a=" + input});
  EXPECT_EQ(singular.status, 1);
  EXPECT_THAT(singular.err, AllOf(HasSubstr("FAILED_PRECONDITION"), HasSubstr("  reason: MATRIX_SINGULAR\n"),
                                  HasSubstr("  node: inverse\n")));

  ASSERT_TRUE(cli::WriteFile(graph, "nodes { name: \"t\" inputs: \"x\" transpose {} }").ok());
  const cli::Outcome refused = cli::CallTensordctl({"validate", graph, target});
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err, HasSubstr("  reason: "));
  for (const std::string& path : {graph, input, output}) std::remove(path.c_str());
}

}  // namespace
}  // namespace tensord::client
