#include "clients/cli/files/graph_file.h"

#include <fstream>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "tensord/linalg/v1/linalg.pb.h"

namespace tensord::cli {
namespace {

using ::testing::HasSubstr;

constexpr char kJson[] = R"({
  "name": "g",
  "inputs": [{"name": "x", "type": {"dtype": "DTYPE_F32", "shape": [{"size": "2"}, {"symbol": "n"}]}}],
  "nodes": [
    {"name": "c", "constant": {"value": {"dtype": "DTYPE_I32", "data": "BQAAAA=="}}},
    {"name": "s", "inputs": ["x"],
     "extension": {"op": {"@type": "type.googleapis.com/tensord.linalg.v1.Svd", "full": true}}}
  ],
  "outputs": [{"name": "y", "value": "s:1"}]
})";

constexpr char kText[] = R"(
name: "g"
inputs { name: "x" type { dtype: DTYPE_F32 shape { size: 2 } shape { symbol: "n" } } }
nodes { name: "c" constant { value { dtype: DTYPE_I32 data: "\005\000\000\000" } } }
nodes { name: "s" inputs: "x" extension { op { [type.googleapis.com/tensord.linalg.v1.Svd] { full: true } } } }
outputs { name: "y" value: "s:1" }
)";

std::string WhyNoGraph(const std::string& contents, GraphFormat format) {
  const auto graph = ParseGraph(contents, format);
  EXPECT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(graph.status().message());
}

TEST(GraphFile, TheThreeFormatsSayTheSame) {
  const auto json = ParseGraph(kJson, GraphFormat::kJson);
  ASSERT_TRUE(json.ok()) << json.status();
  const auto text = ParseGraph(kText, GraphFormat::kText);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(json->SerializeAsString(), text->SerializeAsString());
  const auto binary = ParseGraph(json->SerializeAsString(), GraphFormat::kBinary);
  EXPECT_EQ(binary->SerializeAsString(), json->SerializeAsString());
  EXPECT_EQ(json->nodes(0).constant().value().data(), std::string("\x05\0\0\0", 4));
  linalg::v1::Svd svd;
  ASSERT_TRUE(json->nodes(1).extension().op().UnpackTo(&svd));
  EXPECT_TRUE(svd.full());
}

TEST(GraphFile, AGraphIsReadBackInEachFormat) {
  const auto graph = ParseGraph(kJson, GraphFormat::kJson);
  ASSERT_TRUE(graph.ok()) << graph.status();
  for (GraphFormat format : {GraphFormat::kJson, GraphFormat::kText, GraphFormat::kBinary}) {
    const auto printed = PrintGraph(*graph, format);
    ASSERT_TRUE(printed.ok()) << printed.status();
    EXPECT_EQ(ParseGraph(*printed, format)->SerializeAsString(), graph->SerializeAsString()) << *printed;
  }
  EXPECT_THAT(*PrintGraph(*graph, GraphFormat::kText), HasSubstr("type.googleapis.com/tensord.linalg.v1.Svd"));
  v1::Graph strange;
  google::protobuf::Any& op = *strange.add_nodes()->mutable_extension()->mutable_op();
  op.set_type_url("type.googleapis.com/no.such.Message");
  op.set_value("\x08\x01");
  EXPECT_EQ(PrintGraph(strange, GraphFormat::kJson).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(GraphFile, SaysWhatIsWrongWithAText) {
  EXPECT_THAT(WhyNoGraph("{\"nodez\": []}", GraphFormat::kJson), HasSubstr("nodez"));
  EXPECT_THAT(WhyNoGraph("{\"name\": ", GraphFormat::kJson), HasSubstr("no graph in JSON"));
  EXPECT_THAT(WhyNoGraph("[]", GraphFormat::kJson), HasSubstr("no graph in JSON"));
  EXPECT_THAT(WhyNoGraph("name: \"g\"\nnodez {}", GraphFormat::kText), HasSubstr("line 2, column"));
  EXPECT_THAT(WhyNoGraph("\xff\xff", GraphFormat::kBinary), HasSubstr("wire format"));
}

TEST(GraphFile, DeepNestingIsRefusedInEveryFormat) {
  constexpr int kDepth = 100000;
  std::string json = "{\"inputs\":[{\"type\":{\"shape\":[";
  std::string text = "inputs { type { shape { ";
  for (int i = 0; i < kDepth; ++i) {
    json += "{\"binary\":{\"lhs\":";
    text += "binary { lhs { ";
  }
  WhyNoGraph(json, GraphFormat::kJson);
  WhyNoGraph(text, GraphFormat::kText);
  // Built outside in: each level wraps the bytes of the one within.
  std::string binary;
  for (int i = 0; i < 200; ++i) {
    v1::DimExpr level;
    level.mutable_binary()
        ->GetReflection()
        ->MutableUnknownFields(level.mutable_binary())
        ->AddLengthDelimited(2, binary);
    binary = level.SerializeAsString();
  }
  v1::Graph graph;
  v1::TensorType* type = graph.add_inputs()->mutable_type();
  type->GetReflection()->MutableUnknownFields(type)->AddLengthDelimited(2, binary);
  WhyNoGraph(graph.SerializeAsString(), GraphFormat::kBinary);
}

TEST(GraphFile, NothingIsNoGraph) {
  for (const auto& [name, contents] : {std::make_pair("empty.pb", ""), std::make_pair("empty.json", " {} "),
                                       std::make_pair("empty.textproto", "# x")}) {
    const std::string path = testing::TempDir() + name;
    std::ofstream(path) << contents;
    const absl::Status nothing = ReadGraph(path).status();
    EXPECT_EQ(nothing.code(), absl::StatusCode::kInvalidArgument) << nothing;
    EXPECT_THAT(std::string(nothing.message()), HasSubstr(path + ": there is no graph in it"));
  }
}

TEST(GraphFile, TheNameDecidesTheFormat) {
  EXPECT_EQ(*GraphFormatOf("a.json"), GraphFormat::kJson);
  EXPECT_EQ(*GraphFormatOf("-"), GraphFormat::kJson);
  EXPECT_EQ(*GraphFormatOf("a.b.textproto"), GraphFormat::kText);
  EXPECT_EQ(*GraphFormatOf("a.txtpb"), GraphFormat::kText);
  EXPECT_EQ(*GraphFormatOf("a.pbtxt"), GraphFormat::kText);
  EXPECT_EQ(*GraphFormatOf("a.pb"), GraphFormat::kBinary);
  EXPECT_EQ(*GraphFormatOf("a.binpb"), GraphFormat::kBinary);
  EXPECT_FALSE(GraphFormatOf("a.npy").ok());
  EXPECT_THAT(std::string(ReadGraph("/nowhere/g.json").status().message()), HasSubstr("/nowhere/g.json"));
}

}  // namespace
}  // namespace tensord::cli
