#include "engine/runtime/devices/run.h"

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/exec/binding/reversal.h"
#include "engine/ir/parser.h"
#include "engine/ops/core_ops.h"
#include "engine/runtime/compile/compiler.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testlib/runs/hidden_memory_backend.h"

namespace tensord {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;

// On a device whose memory nobody but the device reads: a touch of it ends the test.
class RunTest : public testing::Test {
 protected:
  ~RunTest() override {
    program_ = nullptr;
    EXPECT_EQ(backend_.live_buffers(), 0);
  }

  void Compile(const std::string& graph_text) {
    absl::StatusOr<Graph> graph = ParseGraph(graph_text, CoreRegistry());
    ASSERT_TRUE(graph.ok()) << graph.status();
    const auto program = tensord::Compile(*std::move(graph), {.device = "hidden:0"}, Fingerprint(), &backend_);
    ASSERT_TRUE(program.ok()) << program.status();
    program_ = *program;
  }

  static RunTensor OnHost(Shape shape, std::vector<float> values) {
    const auto owner = std::make_shared<std::vector<float>>(std::move(values));
    return {.type = {.dtype = DType::kF32, .shape = std::move(shape)},
            .bytes = std::shared_ptr<const void>(owner, owner->data())};
  }
  RunTensor OnDevice(Shape shape, std::vector<float> values) {
    RunTensor tensor = OnHost(std::move(shape), std::move(values));
    tensor.buffer = *backend_.Import(tensor.bytes.get(), tensor.type.num_bytes(), tensor.bytes);
    tensor.bytes = nullptr;
    return tensor;
  }
  std::vector<float> Values(const BufferPtr& buffer) {
    const std::shared_ptr<const void> bytes = *backend_.Export(buffer);
    std::vector<float> values(static_cast<size_t>(buffer->size_bytes()) / sizeof(float));
    std::memcpy(values.data(), bytes.get(), values.size() * sizeof(float));
    return values;
  }
  std::vector<RunTensor> Run(std::vector<RunTensor> arguments, std::vector<bool> stays) {
    RunRequest request{.program = program_, .arguments = std::move(arguments)};
    request.stays = std::move(stays);
    absl::StatusOr<RunOutcome> outcome = RunProgram(request, absl::ZeroDuration());
    EXPECT_TRUE(outcome.ok()) << outcome.status();
    return outcome.ok() ? std::move(outcome->results) : std::vector<RunTensor>();
  }

  HiddenMemoryBackend backend_;
  CompiledProgramPtr program_;
};

constexpr char kTwoResults[] = R"(graph "two" {
  %x = input : f32[2]
  %y = input : f32[2]
  %sum = add(%x, %y)
  %product = multiply(%sum, %y)
  output "sum" = %sum
  output "product" = %product
})";

TEST_F(RunTest, ResultsStayOnTheDeviceUnlessTheirBytesAreWanted) {
  Compile(kTwoResults);
  const std::vector<RunTensor> first = Run({OnHost({2}, {1, 2}), OnDevice({2}, {10, 20})}, {true});
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[0].bytes, nullptr);
  EXPECT_TRUE(first[0].sole);
  EXPECT_THAT(Values(first[0].buffer), ElementsAre(11, 22));
  ASSERT_NE(first[1].bytes, nullptr) << "a result beyond the list is wanted";
  EXPECT_EQ(static_cast<const float*>(first[1].bytes.get())[1], 440);
  // And is the argument of the next run where it lies.
  const std::vector<RunTensor> second = Run({first[0], OnHost({2}, {1, 1})}, {true, true});
  ASSERT_EQ(second.size(), 2u);
  EXPECT_THAT(Values(second[1].buffer), ElementsAre(12, 23));
  EXPECT_EQ(second[1].bytes, nullptr);
  EXPECT_THAT(Values(first[0].buffer), ElementsAre(11, 22)) << "nobody gave it away";
}

TEST_F(RunTest, ADonatedBufferIsUsedUp) {
  Compile(R"(graph "step" {
    %x = input : f32[2]
    %y = add(%x, %x)
    output "y" = %y
  })");
  RunTensor x = OnDevice({2}, {1, 2});
  const std::vector<RunTensor> copied = Run({x}, {true});
  ASSERT_EQ(copied.size(), 1u);
  EXPECT_NE(copied[0].buffer->address(), x.buffer->address());
  x.donated = true;
  const std::vector<RunTensor> written = Run({x}, {true});
  ASSERT_EQ(written.size(), 1u);
  EXPECT_EQ(written[0].buffer->address(), x.buffer->address());
  EXPECT_FALSE(written[0].sole) << "it is its owner's still";
  EXPECT_THAT(Values(written[0].buffer), ElementsAre(2, 4));
}

TEST_F(RunTest, TheDeviceTransposesAnArgumentOfTheOtherOrder) {
  Compile(R"(graph "negated" {
    %x = input : f32[2,3]
    %y = negate(%x)
    output "y" = %y
  })");
  RunTensor x = OnDevice({2, 3}, {1, 2, 3, 4, 5, 6});  // rows, one after the other
  x.reversed = true;
  const std::vector<RunTensor> results = Run({x}, {true});
  ASSERT_EQ(results.size(), 1u);
  EXPECT_THAT(Values(results[0].buffer), ElementsAre(-1, -4, -2, -5, -3, -6));
  EXPECT_THAT(Values(x.buffer), ElementsAre(1, 2, 3, 4, 5, 6)) << "the run writes over its copy alone";
}

TEST_F(RunTest, AnOtherOrderThatIsTheSameMemoryIsNotWrittenOver) {
  Compile(R"(graph "negated" {
    %x = input : f32[1,3]
    %y = negate(%x)
    output "y" = %y
  })");
  RunTensor x = OnDevice({1, 3}, {1, 2, 3});
  x.reversed = true;
  const std::vector<RunTensor> results = Run({x}, {true});
  ASSERT_EQ(results.size(), 1u);
  EXPECT_THAT(Values(results[0].buffer), ElementsAre(-1, -2, -3));
  EXPECT_THAT(Values(x.buffer), ElementsAre(1, 2, 3));
}

TEST_F(RunTest, ReversingTwiceGivesTheTensor) {
  std::vector<float> values(2 * 3 * 4 * 5);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const ConcreteType type = {.dtype = DType::kF32, .shape = {2, 3, 4, 5}};
  const ConcreteType reversed = {.dtype = DType::kF32, .shape = {5, 4, 3, 2}};
  const RunTensor x = OnDevice(type.shape, values);
  const auto back = Reversal::Create(type, &backend_);
  const auto there = Reversal::Create(reversed, &backend_);
  ASSERT_TRUE(back.ok() && there.ok()) << back.status() << there.status();
  const absl::StatusOr<BufferPtr> once = (*there)->Run(x.buffer, nullptr);
  ASSERT_TRUE(once.ok()) << once.status();
  EXPECT_EQ(Values(*once)[1], values[24]) << "the last axis is the first one";
  const absl::StatusOr<BufferPtr> twice = (*back)->Run(*once, nullptr);
  ASSERT_TRUE(twice.ok()) << twice.status();
  EXPECT_THAT(Values(*twice), ElementsAreArray(values));
  EXPECT_EQ((*back)->Run(*once, [] { return absl::CancelledError("unwanted"); }).status().code(),
            absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace tensord
