#include "proto/codec/graph_codec.h"

#include <random>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/utf8.h"
#include "engine/families/all_families.h"
#include "engine/ir/canonical.h"
#include "engine/ir/parser.h"
#include "engine/ir/printer.h"
#include "google/protobuf/unknown_field_set.h"
#include "gtest/gtest.h"
#include "proto/codec/error_codec.h"
#include "proto/codec/op_wire.h"
#include "tests/testlib/graphs/random_graph.h"
#include "tests/testlib/reason_of.h"

namespace tensord::codec {
namespace {

absl::StatusOr<Graph> Decoded(const v1::Graph& wire, const GraphLimits& limits = {}) {
  return DecodeGraph(wire, FamilyRegistry(), limits, Order::kColumnMajor);
}

// x: f32[2] and y = sin(x).
v1::Graph SmallGraph() {
  v1::Graph wire;
  v1::GraphInput& input = *wire.add_inputs();
  input.set_name("x");
  input.mutable_type()->set_dtype(v1::DTYPE_F32);
  input.mutable_type()->add_shape()->set_size(2);
  v1::Node& node = *wire.add_nodes();
  node.set_name("y");
  node.add_inputs("x");
  node.set_unary(v1::UNARY_OP_SIN);
  v1::GraphOutput& output = *wire.add_outputs();
  output.set_name("out");
  output.set_value("y");
  return wire;
}

v1::Node& Replace(v1::Graph& wire) {
  wire.mutable_nodes(0)->clear_op();
  return *wire.mutable_nodes(0);
}

void ExpectRefusedAtNode(const v1::Graph& wire, absl::string_view reason, absl::string_view op) {
  const absl::StatusOr<Graph> graph = Decoded(wire);
  ASSERT_FALSE(graph.ok()) << wire.DebugString();
  const std::optional<RefusalDetail> detail = DetailOf(graph.status());
  ASSERT_TRUE(detail.has_value()) << graph.status();
  EXPECT_EQ(detail->reason, reason) << graph.status();
  EXPECT_EQ(detail->node, "y") << graph.status();
  EXPECT_EQ(detail->op, op) << graph.status();
}

TEST(GraphCodecTest, RandomGraphsComeBack) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 2'000; ++i) {
    const Graph graph = RandomGraph(FamilyRegistry(), &random);
    const absl::StatusOr<v1::Graph> wire = EncodeGraph(graph);
    ASSERT_TRUE(wire.ok()) << wire.status();
    const absl::StatusOr<Graph> again = Decoded(*wire);
    // A random size may be beyond a limit, or refused if it stands; nothing else may go wrong.
    if (!again.ok()) {
      ASSERT_EQ(ReasonOf(again.status()), "LIMIT_EXCEEDED") << again.status();
      continue;
    }
    ASSERT_EQ(CanonicalBytes(*again), CanonicalBytes(graph)) << PrintGraph(graph);
    ASSERT_EQ(PrintGraph(*again), PrintGraph(graph));
    const absl::StatusOr<v1::Graph> wire_again = EncodeGraph(*again);
    ASSERT_TRUE(wire_again.ok());
    ASSERT_EQ(wire_again->SerializeAsString(), wire->SerializeAsString());
  }
}

TEST(GraphCodecTest, EveryOpHasAWireFormThatFits) {
  for (const OpDef* op : FamilyRegistry().all()) {
    v1::Node node;
    google::protobuf::Message* message = nullptr;
    std::unique_ptr<google::protobuf::Message> extension;
    if (op->op_class == OpClass::kExtension) {
      auto created = NewExtension(*op);
      ASSERT_TRUE(created.ok()) << created.status();
      extension = *std::move(created);
      message = extension.get();
      PackExtension(*message, &node);
    } else {
      const absl::StatusOr<google::protobuf::Message*> set = SetOp(*op, &node);
      ASSERT_TRUE(set.ok()) << set.status();
      message = *set;
      ASSERT_EQ(message != nullptr, op->op_class == OpClass::kPlain) << op->name;
    }
    if (message != nullptr) {
      const google::protobuf::Descriptor& descriptor = *message->GetDescriptor();
      const auto fields = FieldsOf(*op, descriptor);
      ASSERT_TRUE(fields.ok()) << op->name << ": " << fields.status();
      int inner_fields = 0, used_fields = 0;
      absl::flat_hash_set<const google::protobuf::FieldDescriptor*> inner_messages;
      for (const std::vector<AttributeField>* list : {&fields->attributes, &fields->unused}) {
        for (const AttributeField& at : *list) {
          if (at.field != nullptr && at.inside == nullptr) ++used_fields;
          if (at.inside != nullptr) ++inner_fields;
          if (at.inside != nullptr && inner_messages.insert(at.inside).second) {
            ++used_fields;
            inner_fields -= at.inside->message_type()->field_count();
          }
        }
      }
      EXPECT_EQ(used_fields, descriptor.field_count()) << op->name << " ignores a field";
      EXPECT_EQ(inner_fields, 0) << op->name << " ignores a field of an inner message";
      for (size_t i = 0; i < op->attrs.size(); ++i) {
        if (op->attrs[i].engine_only || op->attrs[i].kind != AttrKind::kEnum) continue;
        const google::protobuf::EnumDescriptor& values = *fields->attributes[i].field->enum_type();
        EXPECT_EQ(values.value_count(), static_cast<int>(op->attrs[i].enumerators.size())) << op->name;
        for (int v = 0; v < values.value_count(); ++v) {
          EXPECT_EQ(values.value(v)->number(), v) << op->name;
          const std::string lower = absl::AsciiStrToLower(values.value(v)->name());
          EXPECT_TRUE(absl::EndsWith(lower, op->attrs[i].enumerators[static_cast<size_t>(v)]))
              << op->name << ": " << lower;
        }
      }
    } else {
      EXPECT_TRUE(op->attrs.empty()) << op->name;
    }
    EXPECT_EQ(OpNameOf(node), op->name);
    const absl::StatusOr<WireOp> found = FindOp(node, FamilyRegistry());
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->def, op);
  }
}

TEST(GraphCodecTest, EngineOnlyAttributesAreInTextAndFingerprintWhereSetAndNeverOnTheWire) {
  static constexpr AttrDef kAttrs[] = {{.name = "engine_first", .kind = AttrKind::kInt, .engine_only = true},
                                       {.name = "permutation", .kind = AttrKind::kInts},
                                       {.name = "engine_last", .kind = AttrKind::kInts, .engine_only = true}};
  OpDef op = Def(CoreOp::kTranspose);
  op.attrs = kAttrs;
  const absl::Span<const OpDef> family = absl::MakeConstSpan(&op, 1);
  const OpRegistry registry(absl::MakeConstSpan(&family, 1));
  const auto graph_with = [&](int64_t first, std::vector<int64_t> last) {
    Graph graph;
    const ValueId x = graph.AddInput("x", ToTensorType({DType::kF32, {2, 3}}));
    Node node{.name = "y", .op = &op, .attrs = Attributes(op.attrs), .operands = {x}};
    node.attrs.Set("permutation", std::vector<int64_t>{1, 0});
    node.attrs.Set("engine_first", first).Set("engine_last", std::move(last));
    graph.AddOutput("out", graph.AddNode(std::move(node)));
    return graph;
  };
  Graph plain;
  const OpDef& transpose = Def(CoreOp::kTranspose);
  const ValueId x = plain.AddInput("x", ToTensorType({DType::kF32, {2, 3}}));
  Node node{.name = "y", .op = &transpose, .attrs = Attributes(transpose.attrs), .operands = {x}};
  node.attrs.Set("permutation", std::vector<int64_t>{1, 0});
  plain.AddOutput("out", plain.AddNode(std::move(node)));

  const Graph unset = graph_with(0, {}), both = graph_with(-2, {4, 5});
  EXPECT_EQ(CanonicalBytes(unset), CanonicalBytes(plain));
  EXPECT_EQ(PrintGraph(unset), PrintGraph(plain));
  for (const Graph& other : {unset, graph_with(-2, {}), graph_with(0, {4, 5}), graph_with(-2, {4})}) {
    EXPECT_NE(CanonicalBytes(both), CanonicalBytes(other));
  }
  for (const Graph& written : {unset, both}) {
    const absl::StatusOr<Graph> read = ParseGraph(PrintGraph(written), registry);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(CanonicalBytes(*read), CanonicalBytes(written));
    const absl::StatusOr<v1::Graph> wire = EncodeGraph(written);
    ASSERT_TRUE(wire.ok()) << wire.status();
    const absl::StatusOr<Graph> decoded = DecodeGraph(*wire, registry, {}, Order::kColumnMajor);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(CanonicalBytes(*decoded), CanonicalBytes(unset));
  }
}

TEST(GraphCodecTest, WhatIsNotWantedAnyMoreIsNotDecodedToItsEnd) {
  v1::Graph wire = SmallGraph();
  for (int i = 0; i < 10 * kNodesBetween; ++i) {
    *wire.add_nodes() = wire.nodes(0);
    wire.mutable_nodes(i + 1)->set_name("y" + std::to_string(i));
  }
  int asked = 0;
  const auto leaves = [&asked] {
    return ++asked < 3 ? absl::OkStatus() : Refuse(Refusal::kCancelled, "the client is gone");
  };
  const absl::StatusOr<Graph> graph = DecodeGraph(wire, FamilyRegistry(), {}, Order::kColumnMajor, leaves);
  EXPECT_TRUE(IsRefusal(graph.status(), Refusal::kCancelled)) << graph.status();
  EXPECT_EQ(asked, 3);
  EXPECT_TRUE(DecodeGraph(wire, FamilyRegistry(), {}, Order::kColumnMajor, [] { return absl::OkStatus(); }).ok());
}

TEST(GraphCodecTest, UnknownNumbersOfEnumsAreRefused) {
  v1::Graph wire = SmallGraph();
  Replace(wire).set_unary(static_cast<v1::UnaryOp>(999));
  ExpectRefusedAtNode(wire, "OP_UNKNOWN", "unary");
  Replace(wire).set_unary(static_cast<v1::UnaryOp>(-1));
  ExpectRefusedAtNode(wire, "OP_UNKNOWN", "unary");
  Replace(wire).set_binary(static_cast<v1::BinaryOp>(999));
  ExpectRefusedAtNode(wire, "OP_UNKNOWN", "binary");
  for (const int number : {-1, 7, 1 << 30}) {
    Replace(wire).mutable_compare()->set_direction(static_cast<v1::Compare::Direction>(number));
    ExpectRefusedAtNode(wire, "ATTRIBUTE_INVALID", "compare");
  }
  Replace(wire).mutable_convert()->set_dtype(static_cast<v1::DType>(10));
  ExpectRefusedAtNode(wire, "ATTRIBUTE_INVALID", "convert");
  Replace(wire).mutable_reshape()->set_order(static_cast<v1::MemoryOrder>(3));
  ExpectRefusedAtNode(wire, "ATTRIBUTE_INVALID", "reshape");
  Replace(wire).mutable_iota()->mutable_type()->set_dtype(static_cast<v1::DType>(77));
  ExpectRefusedAtNode(wire, "DTYPE_UNSUPPORTED", "iota");
  Replace(wire).mutable_constant()->mutable_value()->set_order(static_cast<v1::MemoryOrder>(9));
  wire.mutable_nodes(0)->mutable_constant()->mutable_value()->set_dtype(v1::DTYPE_F32);
  ExpectRefusedAtNode(wire, "ATTRIBUTE_INVALID", "constant");
  wire = SmallGraph();
  wire.set_algebra(static_cast<v1::Algebra>(77));
  EXPECT_EQ(ReasonOf(Decoded(wire).status()), "UNSUPPORTED_REQUEST");
}

TEST(GraphCodecTest, FieldsOfANewerContractAreRefused) {
  const auto add_field = [](google::protobuf::Message* message) {
    message->GetReflection()->MutableUnknownFields(message)->AddVarint(12345, 1);
  };
  v1::Graph wire = SmallGraph();
  add_field(&wire);
  EXPECT_EQ(ReasonOf(Decoded(wire).status()), "UNSUPPORTED_REQUEST");
  wire = SmallGraph();
  add_field(wire.mutable_nodes(0));
  ExpectRefusedAtNode(wire, "UNSUPPORTED_REQUEST", "sin");
  Replace(wire);
  ExpectRefusedAtNode(wire, "OP_UNKNOWN", "");
  EXPECT_EQ(Decoded(wire).status().code(), absl::StatusCode::kUnimplemented);
  wire = SmallGraph();
  add_field(Replace(wire).mutable_transpose());
  ExpectRefusedAtNode(wire, "UNSUPPORTED_REQUEST", "transpose");
  wire = SmallGraph();
  add_field(Replace(wire).mutable_reshape()->add_shape());
  ExpectRefusedAtNode(wire, "UNSUPPORTED_REQUEST", "reshape");
  wire = SmallGraph();
  add_field(Replace(wire).mutable_gather_dynamic_slice_sizes()->mutable_gather());
  ExpectRefusedAtNode(wire, "UNSUPPORTED_REQUEST", "gather_dynamic_slice_sizes");
  wire = SmallGraph();
  add_field(Replace(wire).mutable_constant()->mutable_value());
  ExpectRefusedAtNode(wire, "UNSUPPORTED_REQUEST", "constant");
  wire = SmallGraph();
  add_field(wire.mutable_inputs(0));
  EXPECT_EQ(DetailOf(Decoded(wire).status())->node, "x");
  wire = SmallGraph();
  add_field(wire.mutable_outputs(0));
  EXPECT_EQ(DetailOf(Decoded(wire).status())->node, "out");
}

TEST(GraphCodecTest, CountsAreLimited) {
  const auto limited_by = [](const v1::Graph& wire, GraphLimits limits) {
    const absl::StatusOr<Graph> graph = Decoded(wire, limits);
    return graph.ok() ? std::string("none") : DetailOf(graph.status())->limit;
  };
  v1::Graph wire = SmallGraph();
  EXPECT_EQ(limited_by(wire, {}), "none");
  EXPECT_EQ(limited_by(wire, {.graph_inputs = 0}), "graph_inputs");
  EXPECT_EQ(limited_by(wire, {.graph_nodes = 0}), "graph_nodes");
  EXPECT_EQ(limited_by(wire, {.graph_outputs = 0}), "graph_outputs");
  EXPECT_EQ(limited_by(wire, {.graph_edges = 0}), "graph_edges");
  EXPECT_EQ(limited_by(wire, {.graph_bytes = 10}), "graph_bytes");
  EXPECT_EQ(limited_by(wire, {.rank = 0}), "rank");
  EXPECT_EQ(limited_by(wire, {.dimension = 1}), "dimension");
  v1::Tensor& tensor = *Replace(wire).mutable_constant()->mutable_value();
  tensor.set_dtype(v1::DTYPE_F64);
  tensor.add_shape(100);
  tensor.set_data(std::string(800, '\0'));
  EXPECT_EQ(limited_by(wire, {.constant_bytes = 799}), "constant_bytes");
  EXPECT_EQ(limited_by(wire, {.tensor_bytes = 799}), "tensor_bytes");
  // The data of constants is no part of graph_bytes.
  EXPECT_EQ(limited_by(wire, {.constant_bytes = 800, .graph_bytes = 100, .tensor_bytes = 800}), "none");
  wire = SmallGraph();
  Replace(wire);
  for (int i = 0; i < 33; ++i) wire.mutable_nodes(0)->mutable_reshape()->add_shape()->set_size(1);
  EXPECT_EQ(limited_by(wire, {}), "rank");
}

TEST(GraphCodecTest, NestingIsBounded) {
  v1::DimExpr expr;
  expr.set_symbol("n");
  for (int depth = 1; depth <= 40; ++depth) {
    v1::Graph wire = SmallGraph();
    *wire.mutable_inputs(0)->mutable_type()->add_shape() = expr;
    const absl::StatusOr<Graph> graph = Decoded(wire);
    EXPECT_EQ(graph.ok(), depth <= 32) << depth << ": " << graph.status();
    if (!graph.ok()) {
      EXPECT_EQ(ReasonOf(graph.status()), "DIM_EXPR_INVALID");
    }
    v1::DimExpr deeper;
    deeper.mutable_binary()->set_kind(v1::BinaryDimExpr::KIND_ADD);
    *deeper.mutable_binary()->mutable_lhs() = expr;
    deeper.mutable_binary()->mutable_rhs()->set_size(1);
    expr = deeper;
  }
}

TEST(GraphCodecTest, ALongChainIsDecoded) {
  v1::Graph wire = SmallGraph();
  for (int i = 1; i < 100'000; ++i) {
    v1::Node& node = *wire.add_nodes();
    node.set_name(absl::StrCat("n", i));
    node.add_inputs(i == 1 ? "y" : absl::StrCat("n", i - 1));
    node.set_unary(v1::UNARY_OP_SIN);
  }
  const absl::StatusOr<Graph> graph = Decoded(wire);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->num_values(), 100'001);
}

TEST(GraphCodecTest, NamesThatCannotBeSentAreReplaced) {
  Graph graph;
  const ValueId x = graph.AddInput("x", {.dtype = DType::kF32});
  const auto add = [&graph, x](absl::string_view name) {
    Node node{.name = std::string(name), .op = &Def(CoreOp::kSin), .attrs = Attributes(Def(CoreOp::kSin).attrs)};
    node.operands = {x};
    return graph.AddNode(std::move(node));
  };
  for (const std::string& name :
       {std::string(), std::string("x"), std::string("a:b"), std::string("t"), std::string("t"), std::string("t"),
        std::string("t.1"), std::string("\xff"), std::string(256, 'a'), std::string(256, 'a')}) {
    graph.AddOutput("y", add(name));
  }
  const absl::StatusOr<v1::Graph> wire = EncodeGraph(graph);
  ASSERT_TRUE(wire.ok()) << wire.status();
  EXPECT_EQ(wire->inputs(0).name(), "x");
  EXPECT_EQ(wire->nodes(3).name(), "t");
  const absl::StatusOr<Graph> again = Decoded(*wire);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(CanonicalBytes(*again), CanonicalBytes(graph));
}

TEST(GraphCodecTest, AnOpWithoutAWireFormIsInternal) {
  OpDef op = Def(CoreOp::kSin);
  op.name = "no_such_field";
  for (const OpClass op_class : {OpClass::kUnary, OpClass::kBinary, OpClass::kPlain}) {
    op.op_class = op_class;
    Graph graph;
    graph.AddNode({.name = "n", .op = &op});
    EXPECT_EQ(ReasonOf(EncodeGraph(graph).status()), "INTERNAL");
  }
  op.op_class = OpClass::kExtension;
  Graph graph;
  graph.AddNode({.name = "n", .op = &op});
  EXPECT_EQ(ReasonOf(EncodeGraph(graph).status()), "INTERNAL");
  op.name = "inputs";  // a field of Node that is no operation
  v1::Node node;
  EXPECT_FALSE(SetOp(op, &node).ok());
}

TEST(ErrorCodecTest, TheDetailIsWhatTheRefusalSays) {
  const v1::ErrorDetail detail = EncodeError(WithNode(RefuseLimit("rank", 16, 17, "rank"), "n", "add")).detail();
  EXPECT_EQ(detail.reason(), "LIMIT_EXCEEDED");
  EXPECT_EQ(detail.node(), "n");
  EXPECT_EQ(detail.op(), "add");
  EXPECT_EQ(detail.limit(), "rank");
  EXPECT_EQ(detail.limit_value(), 16);
  EXPECT_EQ(detail.actual_value(), 17);
  EXPECT_EQ(EncodeError(absl::UnavailableError("x")).detail().reason(), "UNAVAILABLE");
  EXPECT_EQ(EncodeError(absl::OkStatus()).SerializeAsString(), "");
}

TEST(ErrorCodecTest, StringsAreUtf8WhateverTheStatusHolds) {
  const v1::Error error = EncodeError(WithNode(absl::InternalError("\xff\xfe"), "\xff", "\xc0"));
  EXPECT_EQ(error.code(), static_cast<int>(absl::StatusCode::kInternal));
  EXPECT_TRUE(IsUtf8(error.message()));
  EXPECT_TRUE(IsUtf8(error.detail().node()));
  EXPECT_TRUE(IsUtf8(error.detail().op()));
  EXPECT_EQ(EncodeError(absl::OkStatus()).code(), 0);
  EXPECT_FALSE(EncodeError(absl::OkStatus()).has_detail());
}

}  // namespace
}  // namespace tensord::codec
