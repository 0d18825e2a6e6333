// The traces of operations at run-time positions and of run-time sizes, and the dtype and shape that they infer.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensord/messages.h"
#include "tensord/tensord.h"
#include "tests/unit/clients/cpp/lazy/client_tensors.h"
#include "tests/unit/clients/cpp/lazy/traced_text.h"

namespace tensord::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Indexing, TakeIsAGather) {
  const Tensor taken = Take(Input({4, 5, 6}), Input<int64_t>({2, 3}), 1);
  EXPECT_THAT(taken.shape(), ElementsAre(4, 2, 3, 6));
  EXPECT_EQ(LastOp(taken),
            "gather { offset_dims: 0 offset_dims: 3 collapsed_slice_dims: 1 start_index_map: 1 index_vector_dim: 2 "
            "slice_sizes: 4 slice_sizes: 1 slice_sizes: 6 }");
  EXPECT_THAT(Take(Input({4, 5}), Input<int32_t>({}), -1).shape(), ElementsAre(4));
  EXPECT_FALSE(Take(Input({4}), Input({2})).ok());
  EXPECT_FALSE(Take(Input({0}), Input<int32_t>({2})).ok());
  EXPECT_FALSE(Take(Input({}), Input<int32_t>({})).ok());
}

TEST(Indexing, WindowsMustFit) {
  const Tensor x = Input({4, 5});
  const Tensor start = Input<int32_t>({2});
  EXPECT_THAT(DynamicSlice(x, start, {2, 5}).shape(), ElementsAre(2, 5));
  EXPECT_FALSE(DynamicSlice(x, start, {5, 5}).ok());
  EXPECT_FALSE(DynamicSlice(x, start, {2}).ok());
  EXPECT_FALSE(DynamicSlice(x, start, {-1, 2}).ok());
  EXPECT_FALSE(DynamicSlice(x, Input<int32_t>({3}), {2, 5}).ok());
  EXPECT_THAT(DynamicUpdateSlice(x, Input({1, 2}), start).shape(), ElementsAre(4, 5));
  EXPECT_FALSE(DynamicUpdateSlice(x, Input({1, 6}), start).ok());
  EXPECT_FALSE(DynamicUpdateSlice(x, Input<double>({1, 2}), start).ok());
}

TEST(Indexing, GatherAttributesAreCheckedBeforeTheyIndexAnything) {
  const Tensor x = Input({4, 5});
  const Tensor indices = Input<int32_t>({3, 1});
  v1::Gather gather;
  gather.add_slice_sizes(1);
  gather.add_slice_sizes(5);
  gather.add_collapsed_slice_dims(0);
  gather.add_offset_dims(1);
  gather.add_start_index_map(0);
  gather.set_index_vector_dim(1);
  EXPECT_THAT(Gather(x, indices, gather).shape(), ElementsAre(3, 5));
  v1::Gather bad = gather;
  bad.set_offset_dims(0, 7);
  EXPECT_FALSE(Gather(x, indices, bad).ok());
  bad = gather;
  bad.add_offset_dims(0);
  EXPECT_FALSE(Gather(x, indices, bad).ok());
  bad = gather;
  bad.set_index_vector_dim(3);
  EXPECT_FALSE(Gather(x, indices, bad).ok());
  bad = gather;
  bad.set_slice_sizes(0, 9);
  EXPECT_FALSE(Gather(x, indices, bad).ok());
  bad = gather;
  bad.add_slice_sizes(1);
  EXPECT_FALSE(Gather(x, indices, bad).ok());
  EXPECT_FALSE(Gather(x, Input({3, 1}), gather).ok());
}

TEST(Indexing, TakeAlongAxisBatchesTheOtherAxes) {
  const Tensor taken = TakeAlongAxis(Input({4, 5}), Input<int64_t>({4, 2}), -1);
  EXPECT_THAT(taken.shape(), ElementsAre(4, 2));
  EXPECT_EQ(LastOp(taken),
            "gather { collapsed_slice_dims: 1 operand_batching_dims: 0 start_indices_batching_dims: 0 "
            "start_index_map: 1 index_vector_dim: 2 slice_sizes: 1 slice_sizes: 1 }");
  EXPECT_THAT(LastOp(TakeAlongAxis(Input({4, 5}), Input<int64_t>({3, 2}), 1)), HasSubstr("differ in size"));
  EXPECT_THAT(LastOp(TakeAlongAxis(Input({4, 5}), Input<int64_t>({4}), 1)), HasSubstr("ranks differ"));
  EXPECT_FALSE(TakeAlongAxis(Input({4, 5}), Input({4, 2}), 1).ok());
}

TEST(Indexing, PutIsTheScatterThatTakeReadsBack) {
  const Tensor x = Input({4, 5, 6});
  const Tensor indices = Input<int32_t>({2, 3});
  const Tensor put = Put(x, indices, Take(x, indices, 1), v1::Scatter::COMBINER_MAXIMUM, 1);
  EXPECT_THAT(put.shape(), ElementsAre(4, 5, 6));
  EXPECT_EQ(LastOp(put),
            "scatter { update_window_dims: 0 update_window_dims: 3 inserted_window_dims: 1 "
            "scatter_dims_to_operand_dims: 1 index_vector_dim: 2 combiner: COMBINER_MAXIMUM }");
  EXPECT_THAT(LastOp(Put(x, indices, Input({4, 2, 3}), v1::Scatter::COMBINER_SET, 1)), HasSubstr("Scatter: "));
  EXPECT_FALSE(Put(x, indices, Input<double>({2, 3, 5, 6}), v1::Scatter::COMBINER_SET).ok());
  EXPECT_TRUE(Put(x, indices, Input({2, 3, 5, 6}), v1::Scatter::COMBINER_SET).ok());
}

v1::Scatter RowScatter() {
  v1::Scatter scatter;
  scatter.add_update_window_dims(1);
  scatter.add_inserted_window_dims(0);
  scatter.add_scatter_dims_to_operand_dims(0);
  scatter.set_index_vector_dim(1);
  return scatter;
}

TEST(Indexing, ScatterAttributesAreChecked) {
  const Tensor x = Input({4, 5});
  const Tensor indices = Input<int32_t>({3, 1});
  const Tensor updates = Input({3, 2});
  EXPECT_THAT(Scatter(x, indices, updates, RowScatter()).shape(), ElementsAre(4, 5));
  const auto refused = [&](auto change) {
    v1::Scatter scatter = RowScatter();
    change(scatter);
    return LastOp(Scatter(x, indices, updates, scatter));
  };
  EXPECT_THAT(refused([](v1::Scatter& s) { s.set_index_vector_dim(-1); }), HasSubstr("index_vector_dim"));
  EXPECT_THAT(refused([](v1::Scatter& s) { s.set_index_vector_dim(2); }), HasSubstr("fit neither"));
  EXPECT_THAT(refused([](v1::Scatter& s) { s.set_inserted_window_dims(0, 2); }), HasSubstr("inserted_window_dims"));
  EXPECT_THAT(refused([](v1::Scatter& s) { s.add_scatter_dims_to_operand_dims(1); }), HasSubstr("each index"));
  EXPECT_THAT(refused([](v1::Scatter& s) { s.add_update_window_dims(0); }), HasSubstr("ascending"));
  EXPECT_THAT(refused([](v1::Scatter& s) { s.set_update_window_dims(0, 0); }), HasSubstr("fit neither"));
  EXPECT_THAT(refused([](v1::Scatter& s) { s.add_input_batching_dims(1); }), HasSubstr("do not pair"));
  EXPECT_THAT(LastOp(Scatter(x, indices, Input({3, 6}), RowScatter())), HasSubstr("fit neither"));
  EXPECT_THAT(LastOp(Scatter(x, indices, Input<double>({3, 2}), RowScatter())), HasSubstr("dtypes differ"));
  EXPECT_THAT(LastOp(Scatter(x, Input({3, 1}), updates, RowScatter())), HasSubstr("i32 or i64"));
}

TEST(Indexing, AnAxisHasOneRole) {
  const Tensor x = Input({4, 5});
  const Tensor indices = Input<int32_t>({4, 1});
  v1::Gather gather;
  gather.add_operand_batching_dims(0);
  gather.add_start_indices_batching_dims(0);
  gather.add_start_index_map(1);
  gather.add_offset_dims(1);
  gather.set_index_vector_dim(1);
  gather.add_slice_sizes(1);
  gather.add_slice_sizes(3);
  EXPECT_THAT(Gather(x, indices, gather).shape(), ElementsAre(4, 3));
  v1::Gather bad = gather;
  bad.set_start_index_map(0, 0);
  EXPECT_THAT(LastOp(Gather(x, indices, bad)), HasSubstr("and more"));
  bad = gather;
  bad.set_start_indices_batching_dims(0, 1);
  EXPECT_THAT(LastOp(Gather(x, indices, bad)), HasSubstr("do not pair"));
  bad = gather;
  bad.set_slice_sizes(0, 2);
  EXPECT_THAT(LastOp(Gather(x, indices, bad)), HasSubstr("slice size 1"));
}

v1::DimExpr SizeOf(int64_t operand, int64_t axis) {
  v1::DimExpr size;
  size.mutable_operand()->set_operand(operand);
  size.mutable_operand()->set_axis(axis);
  return size;
}

v1::DimExpr Number(int64_t value) {
  v1::DimExpr size;
  size.set_size(value);
  return size;
}

TEST(Indexing, SliceSizesMayBeThoseOfShapeSources) {
  const Tensor x = Input({4, 5});
  const Tensor source = Input({3});
  v1::Gather gather;
  gather.add_collapsed_slice_dims(0);
  gather.add_start_index_map(0);
  gather.add_offset_dims(1);
  gather.set_index_vector_dim(1);
  const auto make = [&](const v1::DimExpr& width) {
    return GatherDynamicSliceSizes(x, Input<int32_t>({7, 1}), gather, {Number(1), width}, {source});
  };
  const Tensor gathered = make(SizeOf(2, 0));
  EXPECT_THAT(gathered.shape(), ElementsAre(7, 3));
  EXPECT_EQ(gathered.expression()->operands.size(), 3u);
  v1::DimExpr difference;
  difference.mutable_binary()->set_kind(v1::BinaryDimExpr::KIND_SUBTRACT);
  *difference.mutable_binary()->mutable_lhs() = SizeOf(2, 0);
  *difference.mutable_binary()->mutable_rhs() = Number(1);
  EXPECT_THAT(make(difference).shape(), ElementsAre(7, 2));
  difference.mutable_binary()->mutable_rhs()->set_size(4);
  EXPECT_THAT(LastOp(make(difference)), HasSubstr("GatherDynamicSliceSizes: a slice size is none"));
  EXPECT_THAT(LastOp(make(SizeOf(3, 0))), HasSubstr("names no axis"));
  EXPECT_THAT(LastOp(make(SizeOf(2, 1))), HasSubstr("names no axis"));
  EXPECT_FALSE(make(Number(-1)).ok());
  EXPECT_FALSE(make(Number(INT64_MIN)).ok());
  EXPECT_FALSE(make(Number(6)).ok());
  gather.add_slice_sizes(1);
  EXPECT_FALSE(make(Number(1)).ok());
}

TEST(RunTimeSizes, ShapeOf) {
  const Tensor size = ShapeOf(Input({4, 5}), -1);
  EXPECT_EQ(size.dtype(), DType::kI64);
  EXPECT_THAT(size.shape(), IsEmpty());
  EXPECT_EQ(LastOp(size), "shape_of { dimension: 1 }");
  EXPECT_FALSE(ShapeOf(Input({}), 0).ok());
}

TEST(RunTimeSizes, PadToMatch) {
  const Tensor padded = PadToMatch(Input({4, 5}), Input<int32_t>({2, 7}), -1);
  EXPECT_THAT(padded.shape(), ElementsAre(4, 7));
  EXPECT_EQ(LastOp(padded), "pad_to_match { dimension: 1 }");
  EXPECT_THAT(PadToMatch(Input({4, 5}), Input({2, 7})).shape(), ElementsAre(4, 5));
  EXPECT_FALSE(PadToMatch(Input({4, 5}), Input({2}), 1).ok());
}

TEST(RunTimeSizes, TruncatedTensorsCompute) {
  const Tensor x = Input({4, 5});
  const Tensor size = Input<int32_t>({});
  const Tensor head = DynamicTruncate(x, size);
  EXPECT_THAT(head.shape(), ElementsAre(kRunTimeSize, 5));
  EXPECT_EQ(ShapeToString(head.shape()), "[?,5]");
  EXPECT_EQ(LastOp(DynamicTruncate(x, size, -1)), "dynamic_truncate { dimension: 1 }");
  EXPECT_FALSE(DynamicTruncate(x, Input({})).ok());
  EXPECT_FALSE(DynamicTruncate(x, Input<int32_t>({1})).ok());
  EXPECT_FALSE(DynamicTruncate(x, size, 2).ok());

  EXPECT_EQ(TracedText({head * 2.0}),
            "x0 = input f32[4,5]\n"
            "x1 = input i32[]\n"
            "n0 = (x0, x1) dynamic_truncate { }\n"
            "n1 = () constant { value { dtype: DTYPE_F32 order: MEMORY_ORDER_ROW_MAJOR data: \"\\000\\000\\000@\" } }\n"
            "n2 = (n1, n0) broadcast_in_dim { shape { operand { operand: 1 } } shape { size: 5 } }\n"
            "n3 = (n0, n2) binary: BINARY_OP_MULTIPLY\n"
            "y0 = n3\n");
  EXPECT_THAT((head + Input({5})).shape(), ElementsAre(kRunTimeSize, 5));
  EXPECT_THAT((head + Sum(head, {1}, /*keep_dims=*/true)).shape(), ElementsAre(kRunTimeSize, 5));
  EXPECT_THAT(Select(Greater(head, 0), head, 0).shape(), ElementsAre(kRunTimeSize, 5));
  EXPECT_THAT(Clamp(0, head, Input({5})).shape(), ElementsAre(kRunTimeSize, 5));
  EXPECT_THAT(Mean(head, {0}).shape(), ElementsAre(5));
  EXPECT_THAT(MatMul(Transpose(head), head).shape(), ElementsAre(5, 5));
  EXPECT_THAT(Concatenate({head, x}).shape(), ElementsAre(kRunTimeSize, 5));
  EXPECT_THAT(Concatenate({x, head}).shape(), ElementsAre(kRunTimeSize, 5));
  EXPECT_THAT(Pad(head, 0, {1, 0}, {0, 1}).shape(), ElementsAre(kRunTimeSize, 6));
  EXPECT_THAT(Take(head, Input<int64_t>({3})).shape(), ElementsAre(3, 5));
  EXPECT_THAT(Take(head, Input<int64_t>({3}), 1).shape(), ElementsAre(kRunTimeSize, 3));
  EXPECT_THAT(LastOp(Take(head, Input<int64_t>({3}), 1)), HasSubstr("gather_dynamic_slice_sizes"));
  EXPECT_THAT(PadToMatch(head, x).shape(), ElementsAre(kRunTimeSize, 5));
  EXPECT_THAT(LastOp(ExpandDims(head, {1})), HasSubstr("shape { operand { } } shape { size: 1 } shape { size: 5 }"));
}

TEST(RunTimeSizes, WhatNeedsTheNumberRefuses) {
  const Tensor head = DynamicTruncate(Input({4, 5}), Input<int32_t>({}));
  EXPECT_THAT(LastOp(Reshape(head, {5, kRunTimeSize})), HasSubstr("known only when the graph runs: shape [5,?]"));
  EXPECT_THAT(LastOp(Slice(head, {0, 0}, {1, 1})), HasSubstr("use DynamicSlice"));
  EXPECT_THAT(LastOp(head + Input({4, 5})), HasSubstr("do not broadcast: [?,5] and [4,5]"));
  EXPECT_FALSE(BroadcastTo(Input({5}), head.shape()).ok());
  EXPECT_FALSE(ExtractDiag(head).ok());
}

}  // namespace
}  // namespace tensord::client
