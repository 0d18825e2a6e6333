#include "server/rpc/wire/message_measure.h"

#include <functional>
#include <limits>
#include <random>
#include <string>
#include <utility>

#include "engine/base/refusal.h"
#include "google/protobuf/message.h"
#include "gtest/gtest.h"
#include "server/rpc/wire/message_plan.h"
#include "server/rpc/wire/wire_bytes.h"
#include "tensord/einsum/v1/einsum.pb.h"
#include "tensord/v1/admin.pb.h"
#include "tensord/v1/compute.pb.h"
#include "tests/testlib/peers/byte_slices.h"
#include "tests/testlib/peers/bytes_field.h"

namespace tensord::server {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;

MessageBounds Bounds(const codec::GraphLimits& graph = {}) {
  return BoundsOf(graph, {{"sessions.handles", 100'000}, {"einsum_operands", 16'384}});
}

std::string Times(int64_t count, absl::string_view bytes) {
  std::string all;
  for (int64_t i = 0; i < count; ++i) all.append(bytes.data(), bytes.size());
  return all;
}

absl::StatusOr<MessageMeasure> Measure(const Descriptor* type, absl::string_view bytes,
                                       const MessageBounds& bounds = Bounds()) {
  std::mt19937_64 random(bytes.size());
  return MeasureMessage(InSlices(bytes, &random), *type, bounds);
}

std::string LimitOf(const absl::StatusOr<MessageMeasure>& measured) {
  const auto detail = DetailOf(measured.status());
  return detail.has_value() ? detail->limit : measured.status().ToString();
}

// The method's request made of lists inside lists.
std::string GraphWith(absl::string_view fields) { return BytesField(1, fields); }

TEST(FieldLimitsTest, EachNamesAListOfTheContract) {
  for (const FieldLimit& row : AllFieldLimits()) {
    const Descriptor* const type = DescriptorPool::generated_pool()->FindMessageTypeByName(std::string(row.message));
    ASSERT_NE(type, nullptr) << row.message;
    const auto* const field = type->FindFieldByName(std::string(row.field));
    ASSERT_NE(field, nullptr) << row.message << "." << row.field;
    EXPECT_TRUE(field->is_repeated());
    const auto* const planned = PlanOf(*type).Find(static_cast<uint32_t>(field->number()));
    ASSERT_NE(planned, nullptr);
    EXPECT_GE(planned->row, 0);
    EXPECT_EQ(planned->slot >= 0, row.scope == CountScope::kMessage) << row.message << " has too many such lists";
  }
}

// 32 MiB of empty fields: found out after as many as may be.
TEST(MessageMeasureTest, EmptyFieldsAreRefusedByTheirLimit) {
  struct Case {
    const Descriptor* type;
    std::string bytes;
    std::string limit;
  };
  constexpr int64_t kCount = 2'100'000;
  const std::string empty_operand = BytesField(3, Times(kCount, BytesField(2, "")));
  for (const Case& c : {
           Case{v1::CompileRequest::descriptor(), GraphWith(Times(kCount, BytesField(3, ""))), "graph_nodes"},
           Case{v1::CompileRequest::descriptor(), GraphWith(Times(kCount, BytesField(2, ""))), "graph_inputs"},
           Case{v1::CompileRequest::descriptor(), GraphWith(Times(kCount, BytesField(4, ""))), "graph_outputs"},
           Case{v1::CompileRequest::descriptor(), GraphWith(empty_operand), "graph_edges"},
           Case{v1::CompileRequest::descriptor(), BytesField(2, Times(kCount, BytesField(2, ""))), "message_items"},
           Case{v1::ExplainRequest::descriptor(), BytesField(2, Times(kCount, BytesField(3, ""))), "graph_nodes"},
           Case{v1::DifferentiateRequest::descriptor(), Times(kCount, BytesField(3, "")), "graph_inputs"},
           Case{v1::DifferentiateRequest::descriptor(), Times(kCount, BytesField(6, "")), "graph_nodes"},
           Case{v1::ExecuteRequest::descriptor(), Times(kCount, BytesField(5, "")), "graph_inputs"},
           Case{v1::ExecuteRequest::descriptor(), Times(kCount, BytesField(6, "")), "graph_outputs"},
           Case{v1::ExecuteRequest::descriptor(), BytesField(3, Times(kCount, BytesField(3, ""))), "graph_nodes"},
           Case{v1::DeleteTensorsRequest::descriptor(), Times(kCount, BytesField(2, "")), "sessions.handles"},
           Case{v1::PutTensorRequest::descriptor(), BytesField(1, BytesField(4, std::string(kCount, '\1'))), "rank"},
           Case{v1::EvictProgramsRequest::descriptor(), Times(kCount, BytesField(1, "")), "message_items"},
       }) {
    EXPECT_EQ(LimitOf(Measure(c.type, c.bytes)), c.limit) << c.type->name();
  }
}

// Protobuf joins them.
TEST(MessageMeasureTest, ListsOfAMessageThatComesInPiecesAreOne) {
  const std::string piece = GraphWith(Times(150'000, BytesField(3, "")));
  EXPECT_EQ(LimitOf(Measure(v1::CompileRequest::descriptor(), piece + piece)), "graph_nodes");
}

TEST(MessageMeasureTest, WhatAnAnyHoldsIsMeasured) {
  v1::CompileRequest request;
  einsum::v1::Einsum einsum;
  for (int i = 0; i < 100; ++i) einsum.add_operands()->add_labels(i);
  request.mutable_graph()->add_nodes()->mutable_extension()->mutable_op()->PackFrom(einsum);
  const absl::StatusOr<MessageMeasure> few = Measure(request.GetDescriptor(), request.SerializeAsString());
  ASSERT_TRUE(few.ok()) << few.status();
  EXPECT_GT(few->object_bytes, 100 * static_cast<int64_t>(sizeof(einsum::v1::Einsum::Labels)));
  for (int i = 0; i < 16'384; ++i) einsum.add_operands();
  request.mutable_graph()->mutable_nodes(0)->mutable_extension()->mutable_op()->PackFrom(einsum);
  EXPECT_EQ(LimitOf(Measure(request.GetDescriptor(), request.SerializeAsString())), "einsum_operands");
}

// Bytes measured as one type must not be read as another.
TEST(MessageMeasureTest, AnAnyComesInOnePiece) {
  einsum::v1::Einsum einsum;
  for (int i = 0; i < 20'000; ++i) einsum.add_operands();
  const std::string url = BytesField(1, "type.googleapis.com/tensord.einsum.v1.Einsum");
  const std::string content = BytesField(2, einsum.SerializeAsString());
  const auto request = [](const std::string& node) { return GraphWith(BytesField(3, node)); };
  const auto extension = [](absl::string_view op) {
    std::string field = "\xD2\x05";  // Node.extension
    std::string inside = BytesField(1, op);
    AppendVarint(inside.size(), &field);
    return field + inside;
  };
  const Descriptor* const type = v1::CompileRequest::descriptor();
  EXPECT_EQ(LimitOf(Measure(type, request(extension(content + url)))), "einsum_operands");
  const std::string long_url = BytesField(1, std::string(2000, 'x') + "/tensord.einsum.v1.Einsum");
  EXPECT_EQ(LimitOf(Measure(type, request(extension(content + long_url)))), "einsum_operands");
  const absl::StatusOr<MessageMeasure> pieces = Measure(type, request(extension(content) + extension(url)));
  EXPECT_TRUE(IsRefusal(pieces.status(), Refusal::kMalformedMessage)) << pieces.status();
}

TEST(MessageMeasureTest, AGraphHasBoundsOnItsBytes) {
  const MessageBounds bounds = Bounds({.constant_bytes = 10'000, .graph_bytes = 5'000});
  v1::CompileRequest request;
  v1::Transpose* const transpose = request.mutable_graph()->add_nodes()->mutable_transpose();
  for (int i = 0; i < 5'000; ++i) transpose->add_permutation(1);
  EXPECT_EQ(LimitOf(Measure(request.GetDescriptor(), request.SerializeAsString(), bounds)), "graph_bytes");
  transpose->mutable_permutation()->Truncate(4'900);
  EXPECT_TRUE(Measure(request.GetDescriptor(), request.SerializeAsString(), bounds).ok());
  request.mutable_graph()->add_nodes()->mutable_constant()->mutable_value()->set_data(std::string(10'000, 'x'));
  EXPECT_TRUE(Measure(request.GetDescriptor(), request.SerializeAsString(), bounds).ok());
  request.mutable_graph()->add_nodes()->mutable_constant()->mutable_value()->set_data("x");
  EXPECT_EQ(LimitOf(Measure(request.GetDescriptor(), request.SerializeAsString(), bounds)), "constant_bytes");
}

TEST(MessageMeasureTest, FieldsThatNoEncoderWritesAreRefused) {
  // A field that occurs once, a field that nobody knows, and a group of those.
  const absl::StatusOr<MessageMeasure> again =
      Measure(v1::ExecuteRequest::descriptor(), Times(10'000, BytesField(7, "s")));
  EXPECT_TRUE(IsRefusal(again.status(), Refusal::kMalformedMessage)) << again.status();
  const absl::StatusOr<MessageMeasure> unknown =
      Measure(v1::ExecuteRequest::descriptor(), Times(10'000, BytesField(14, "")));
  EXPECT_TRUE(IsRefusal(unknown.status(), Refusal::kUnsupportedRequest)) << unknown.status();
  const absl::StatusOr<MessageMeasure> group =
      Measure(v1::ExecuteRequest::descriptor(), "\x73" + Times(10'000, "\x08\x01") + "\x74");
  EXPECT_TRUE(IsRefusal(group.status(), Refusal::kUnsupportedRequest)) << group.status();
}

// The measure equals the size of protobuf's objects, a little more or less.
TEST(MessageMeasureTest, TellsWhatTheObjectsTake) {
  v1::CompileRequest request;
  for (int i = 0; i < 10'000; ++i) {
    v1::Node* const node = request.mutable_graph()->add_nodes();
    node->set_name("a node of the graph");
    node->add_inputs("one operand of the node");
    node->mutable_iota()->mutable_type()->add_shape()->set_size(3);
    for (int k = 0; k < 20; ++k) node->mutable_transpose()->add_permutation(k);
  }
  const absl::StatusOr<MessageMeasure> measured = Measure(request.GetDescriptor(), request.SerializeAsString());
  ASSERT_TRUE(measured.ok()) << measured.status();
  const double taken = static_cast<double>(request.SpaceUsedLong());
  EXPECT_GT(static_cast<double>(measured->object_bytes), 0.7 * taken);
  EXPECT_LT(static_cast<double>(measured->object_bytes), 1.5 * taken);
}

// A sum of so many operations.
v1::DimExpr Sum(int operations) {
  v1::DimExpr sum;
  sum.set_symbol("a");
  for (int i = 0; i < operations; ++i) {
    v1::DimExpr next;
    next.mutable_binary()->set_kind(v1::BinaryDimExpr::KIND_ADD);
    *next.mutable_binary()->mutable_lhs() = std::move(sum);
    next.mutable_binary()->mutable_rhs()->set_size(0);
    sum = std::move(next);
  }
  return sum;
}

TEST(MessageMeasureTest, CountsTheOperationsOnSizesWhereverTheyAre) {
  v1::ExecuteRequest request;
  v1::Graph& graph = *request.mutable_graph();
  *graph.add_inputs()->mutable_type()->add_shape() = Sum(3);
  *graph.mutable_inputs(0)->mutable_type()->add_shape() = Sum(4);
  *graph.add_nodes()->mutable_reshape()->add_shape() = Sum(10);
  *graph.add_nodes()->mutable_iota()->mutable_type()->add_shape() = Sum(20);
  v1::TensorType held;
  *held.add_shape() = Sum(30);
  graph.add_nodes()->mutable_extension()->mutable_op()->PackFrom(held);
  const absl::StatusOr<MessageMeasure> measured = Measure(request.GetDescriptor(), request.SerializeAsString());
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_EQ(measured->size_operations, 67);
}

TEST(MessageMeasureTest, ShortMessagesHaveFewOperationsOnSizes) {
  v1::DimExpr one_more = Sum(1);
  one_more.mutable_binary()->mutable_lhs()->set_size(0);
  EXPECT_GE(static_cast<int64_t>(one_more.ByteSizeLong()) - 2, kLeastSizeOperationBytes);
  EXPECT_GE(static_cast<int64_t>(Sum(kFewSizeOperations).ByteSizeLong()),
            kFewSizeOperations * kLeastSizeOperationBytes);
}

TEST(MessageMeasureTest, BytesThatProtobufDoesNotReadAreLeftToIt) {
  std::mt19937_64 random(7);
  v1::CompileRequest request;
  for (int i = 0; i < 20; ++i) request.mutable_graph()->add_nodes()->set_name("node");
  const std::string whole = request.SerializeAsString();
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_TRUE(Measure(request.GetDescriptor(), whole.substr(0, length)).ok()) << length;
  }
  for (int i = 0; i < 2'000; ++i) {
    std::string changed = whole;
    changed[std::uniform_int_distribution<size_t>(0, changed.size() - 1)(random)] = static_cast<char>(random());
    const absl::StatusOr<MessageMeasure> measured = Measure(request.GetDescriptor(), changed);
    ASSERT_TRUE(measured.ok()) << measured.status();
    v1::CompileRequest read;
    if (read.ParseFromString(changed)) {
      EXPECT_LE(static_cast<int64_t>(read.SpaceUsedLong()), 4096 + 3 * measured->object_bytes);
    }
  }
}

}  // namespace
}  // namespace tensord::server
