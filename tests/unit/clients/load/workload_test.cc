#include "clients/load/workload.h"

#include <complex>
#include <map>
#include <string>
#include <vector>

#include "clients/load/random_tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tensord::load {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::GraphInput Input(const std::string& name, const std::vector<v1::DimExpr>& dims) {
  v1::GraphInput input;
  input.set_name(name);
  input.mutable_type()->set_dtype(v1::DTYPE_F32);
  for (const v1::DimExpr& dim : dims) *input.mutable_type()->add_shape() = dim;
  return input;
}

v1::DimExpr Size(int64_t size) {
  v1::DimExpr dim;
  dim.set_size(size);
  return dim;
}

v1::DimExpr Symbol(const std::string& name) {
  v1::DimExpr dim;
  dim.set_symbol(name);
  return dim;
}

TEST(WorkloadSpecs, HaveSizesAndWeights) {
  const auto specs = ParseWorkloadSpecs("tiny*9,matmul:256*0.5,upload:64KiB,a/b*c.json*2,busy");
  ASSERT_TRUE(specs.ok()) << specs.status();
  ASSERT_EQ(specs->size(), 5u);
  EXPECT_EQ((*specs)[0].name, "tiny");
  EXPECT_EQ((*specs)[0].weight, 9);
  EXPECT_EQ((*specs)[1].size, 256);
  EXPECT_EQ((*specs)[1].weight, 0.5);
  EXPECT_EQ((*specs)[2].size, 65536);
  EXPECT_EQ((*specs)[3].name, "a/b*c.json");
  EXPECT_EQ((*specs)[3].weight, 2);
  EXPECT_FALSE((*specs)[4].size.has_value());
  for (const char* bad : {"", "tiny,", "tiny*0", "tiny*-1", "tiny*nan", "tiny*many", "*2", "tiny:3",
                          "matmul:", "matmul:0", "matmul:x", "matmul:-3"}) {
    EXPECT_FALSE(ParseWorkloadSpecs(bad).ok()) << bad;
  }
}

TEST(Sizes, HaveUnits) {
  EXPECT_EQ(*ParseSize("17"), 17);
  EXPECT_EQ(*ParseSize("4k"), 4000);
  EXPECT_EQ(*ParseSize("4kB"), 4000);
  EXPECT_EQ(*ParseSize("3Mi"), 3 << 20);
  EXPECT_EQ(*ParseSize("1GiB"), 1 << 30);
  for (const char* bad : {"", "B", "k", "0", "-1", "1.5k", "9223372036854775807k", "1kk", "1 k"}) {
    EXPECT_FALSE(ParseSize(bad).ok()) << bad;
  }
}

TEST(BuiltInWorkloads, MoveAndComputeWhatTheirSizeSays) {
  const auto upload = BuiltInWorkload("upload", 4000, client::DType::kF64);
  ASSERT_TRUE(upload.ok()) << upload.status();
  EXPECT_EQ(upload->name, "upload:4000 f64");
  ASSERT_EQ(upload->arguments.size(), 1u);
  EXPECT_EQ(upload->arguments[0].size_bytes(), 4000u);
  const auto download = BuiltInWorkload("download", 4000, client::DType::kF32);
  EXPECT_THAT(download->arguments[0].shape(), ElementsAre(1));
  EXPECT_EQ(download->graph.nodes(0).broadcast_in_dim().shape(0).size(), 1000);
  const auto matmul = BuiltInWorkload("matmul", std::nullopt, client::DType::kI32);
  EXPECT_EQ(matmul->name, "matmul:256 i32");
  EXPECT_THAT(matmul->arguments[1].shape(), ElementsAre(256, 256));
  EXPECT_EQ(BuiltInWorkload("tiny", std::nullopt, client::DType::kF32)->name, "tiny f32");
  const auto busy = BuiltInWorkload("busy", 7, client::DType::kF32);
  int products = 0;
  for (const v1::Node& node : busy->graph.nodes()) products += node.has_dot_general() ? 1 : 0;
  EXPECT_EQ(products, 7);
  EXPECT_EQ(busy->arguments.size(), 1u);

  EXPECT_FALSE(BuiltInWorkload("busy", 7, client::DType::kI32).ok());
  EXPECT_FALSE(BuiltInWorkload("matmul", 1 << 20, client::DType::kF32).ok());
  EXPECT_FALSE(BuiltInWorkload("nothing", 1, client::DType::kF32).ok());
}

TEST(BuiltInWorkloads, AreTheSameEachTime) {
  const auto first = BuiltInWorkload("matmul", 8, client::DType::kF32);
  const auto second = BuiltInWorkload("matmul", 8, client::DType::kF32);
  EXPECT_EQ(first->graph.SerializeAsString(), second->graph.SerializeAsString());
  EXPECT_EQ(*first->arguments[0].Values<float>(), *second->arguments[0].Values<float>());
}

TEST(GraphWorkloads, TakeGivenValuesAndRandomOnes) {
  v1::Graph graph;
  *graph.add_inputs() = Input("x", {Size(2), Symbol("n")});
  *graph.add_inputs() = Input("y", {Size(3)});
  const client::HostTensor given = *client::HostTensor::FromVector(std::vector<float>{1, 2, 3}, {3});
  const auto unknown = GraphWorkload("g", graph, {{"y", given}}, {});
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(unknown.status().message()), HasSubstr("\"x\", symbol n"));
  const auto workload = GraphWorkload("g", graph, {{"y", given}}, {{"n", 5}});
  ASSERT_TRUE(workload.ok()) << workload.status();
  EXPECT_THAT(workload->arguments[0].shape(), ElementsAre(2, 5));
  EXPECT_THAT(*workload->arguments[1].Values<float>(), ElementsAre(1, 2, 3));
  graph.mutable_inputs(1)->mutable_type()->set_dtype(v1::DTYPE_UNSPECIFIED);
  EXPECT_FALSE(GraphWorkload("g", graph, {}, {{"n", 5}}).ok());
}

TEST(RandomTensors, HaveElementsOfEveryDType) {
  SplitMix random(1);
  for (const client::DType dtype :
       {client::DType::kBool, client::DType::kI32, client::DType::kI64, client::DType::kF32, client::DType::kF64,
        client::DType::kC64, client::DType::kC128, client::DType::kF16, client::DType::kBF16}) {
    const auto tensor = RandomTensor(dtype, {3, 4}, &random);
    ASSERT_TRUE(tensor.ok()) << client::DTypeName(dtype) << tensor.status();
    EXPECT_EQ(tensor->dtype(), dtype);
    EXPECT_EQ(tensor->element_count(), 12);
  }
  const auto floats = RandomTensor(client::DType::kF32, {1000}, &random);
  const absl::Span<const float> values = *floats->Values<float>();
  for (const float value : values) EXPECT_TRUE(value >= -1 && value <= 1);
  EXPECT_FALSE(RandomTensor(client::DType::kF32, {-1}, &random).ok());
  EXPECT_FALSE(RandomTensor(client::DType::kF32, {int64_t{1} << 41}, &random).ok());
  EXPECT_EQ(RandomTensor(client::DType::kF32, {0, 3}, &random)->size_bytes(), 0u);
}

}  // namespace
}  // namespace tensord::load
