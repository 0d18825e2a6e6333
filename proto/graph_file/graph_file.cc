#include "proto/graph_file/graph_file.h"

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/json_util.h"
#include "tensord/einsum/v1/einsum.pb.h"
#include "tensord/fft/v1/fft.pb.h"
#include "tensord/linalg/v1/linalg.pb.h"

namespace tensord::wire {
namespace {

// Protobuf's own limit for the wire format, for the formats that have none.
constexpr int kMaxNesting = 100;

// Keeps the family messages in the binary: a graph's Any fields name them only in text.
bool AreFamiliesLinked() {
  return einsum::v1::Einsum::descriptor() != nullptr && fft::v1::Fft::descriptor() != nullptr &&
         linalg::v1::Cholesky::descriptor() != nullptr;
}

class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (text_.empty()) text_ = absl::StrCat("line ", line + 1, ", column ", column + 1, ": ", message);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

absl::StatusOr<v1::Graph> ParseJson(const std::string& contents) {
  v1::Graph graph;
  const auto status = google::protobuf::util::JsonStringToMessage(contents, &graph);
  if (!status.ok())
    return absl::InvalidArgumentError(absl::StrCat("no graph in JSON: ", std::string(status.message())));
  return graph;
}

absl::StatusOr<v1::Graph> ParseText(const std::string& contents) {
  v1::Graph graph;
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  parser.SetRecursionLimit(kMaxNesting);
  if (!parser.ParseFromString(contents, &graph)) {
    return absl::InvalidArgumentError(absl::StrCat("no graph in protobuf's text format: ", error.text()));
  }
  return graph;
}

absl::StatusOr<v1::Graph> ParseBinary(const std::string& contents) {
  v1::Graph graph;
  if (!graph.ParseFromString(contents)) return absl::InvalidArgumentError("no graph in protobuf's wire format");
  return graph;
}

absl::StatusOr<std::string> PrintJson(const v1::Graph& graph) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(graph, &text, options);
  if (!status.ok()) return absl::InvalidArgumentError(absl::StrCat("no JSON: ", std::string(status.message())));
  return text;
}

absl::StatusOr<std::string> PrintText(const v1::Graph& graph) {
  google::protobuf::TextFormat::Printer printer;
  printer.SetExpandAny(true);
  std::string text;
  if (!printer.PrintToString(graph, &text)) return absl::InternalError("no text of the graph");
  return text;
}

}  // namespace

absl::StatusOr<GraphFormat> GraphFormatOf(absl::string_view path) {
  if (path == "-" || absl::EndsWith(path, ".json")) return GraphFormat::kJson;
  for (absl::string_view end : {".textproto", ".txtpb", ".pbtxt"}) {
    if (absl::EndsWith(path, end)) return GraphFormat::kText;
  }
  if (absl::EndsWith(path, ".pb") || absl::EndsWith(path, ".binpb")) return GraphFormat::kBinary;
  return absl::InvalidArgumentError(
      absl::StrCat("a graph file's name ends in .json, .textproto, .txtpb, .pbtxt, .pb or .binpb: ", path));
}

absl::StatusOr<v1::Graph> ParseGraph(const std::string& contents, GraphFormat format) {
  if (!AreFamiliesLinked()) return absl::InternalError("the messages of the families are missing");
  switch (format) {
    case GraphFormat::kJson:
      return ParseJson(contents);
    case GraphFormat::kText:
      return ParseText(contents);
    case GraphFormat::kBinary:
      return ParseBinary(contents);
  }
  return absl::InternalError("no such format");
}

absl::StatusOr<std::string> PrintGraph(const v1::Graph& graph, GraphFormat format) {
  if (!AreFamiliesLinked()) return absl::InternalError("the messages of the families are missing");
  switch (format) {
    case GraphFormat::kJson:
      return PrintJson(graph);
    case GraphFormat::kText:
      return PrintText(graph);
    case GraphFormat::kBinary:
      return graph.SerializeAsString();
  }
  return absl::InternalError("no such format");
}

}  // namespace tensord::wire
