#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "engine/autodiff/differentiate.h"
#include "engine/base/refusal.h"
#include "engine/families/all_families.h"
#include "engine/ir/parser.h"
#include "engine/ir/printer.h"
#include "engine/ir/verifier.h"
#include "proto/codec/error_codec.h"
#include "proto/codec/graph_codec.h"
#include "tests/fuzz/entries.h"
#include "tests/fuzz/require.h"

namespace tensord {
namespace {

constexpr DerivativeBounds kBounds = {.nodes = 5000, .edges = 20'000};

bool IsLimit(const absl::Status& status) {
  const std::optional<RefusalDetail> detail = DetailOf(status);
  return detail.has_value() && (detail->reason == "LIMIT_EXCEEDED" || detail->reason == "DIM_EXPR_INVALID");
}

std::vector<std::string> NamesIn(absl::string_view list) {
  if (list.empty()) return {};
  return absl::StrSplit(list, ',');
}

struct Request {
  DerivativeRequest derivative;
  bool split = false;
};

// Words between semicolons: the number of the mode; "keep" or nothing; "split" or nothing; names of inputs and
// references to checkpoints, with commas between them.
Request ReadRequest(absl::string_view line) {
  std::vector<absl::string_view> words = absl::StrSplit(line, ';');
  words.resize(5);
  int32_t mode = 0;
  Request request;
  if (!absl::SimpleAtoi(words[0], &mode)) mode = 0;
  request.derivative = {.mode = static_cast<DerivativeMode>(mode & 7),
                        .wrt = NamesIn(words[3]),
                        .keep_outputs = words[1] == "keep",
                        .checkpoints = NamesIn(words[4]),
                        .bounds = kBounds};
  request.split = words[2] == "split";
  return request;
}

void RequireRefusedByDetail(const absl::Status& status) {
  Require(codec::EncodeError(status).detail().ByteSizeLong() > 0, "a refusal has a detail", status);
  Require(status.code() != absl::StatusCode::kInternal, "input is never an internal error", status);
}

// Requires that any client may send the graph back, which may only be too large to be written out.
void RequireOrdinary(const Graph& graph) {
  Require(static_cast<int64_t>(graph.nodes().size()) <= kBounds.nodes, "a derivative keeps its bounds");
  Graph again = graph;
  const absl::Status inferred = InferTypes(&again).status();
  Require(inferred.ok() || IsLimit(inferred), "a derivative is an ordinary graph", inferred);
  const absl::StatusOr<v1::Graph> encoded = codec::EncodeGraph(graph);
  Require(encoded.ok(), "a derivative encodes", encoded.status());
  const absl::StatusOr<Graph> decoded =
      codec::DecodeGraph(*encoded, FamilyRegistry(), codec::GraphLimits(), Order::kRowMajor);
  Require(decoded.ok() || IsLimit(decoded.status()), "a derivative decodes", decoded.status());
}

void DifferentiateWhole(const Graph& graph, const DerivativeRequest& request) {
  const absl::StatusOr<Graph> derivative = Differentiate(graph, request);
  if (!derivative.ok()) return RequireRefusedByDetail(derivative.status());
  RequireOrdinary(*derivative);
  const absl::StatusOr<Graph> again = Differentiate(graph, request);
  Require(again.ok() && PrintGraph(*again) == PrintGraph(*derivative), "the same request gives the same graph");
}

void DifferentiateSplit(const Graph& graph, const DerivativeRequest& request) {
  const absl::StatusOr<SplitDerivative> passes = DifferentiateInTwo(graph, request);
  if (!passes.ok()) return RequireRefusedByDetail(passes.status());
  RequireOrdinary(passes->forward);
  RequireOrdinary(passes->backward);
  Require(passes->forward.outputs().size() >= graph.outputs().size(), "the forward pass keeps the outputs");
}

}  // namespace

void FuzzDifferentiate(absl::string_view text) {
  const size_t end = text.find('\n');
  if (end == absl::string_view::npos) return;
  const Request request = ReadRequest(text.substr(0, end));
  absl::StatusOr<Graph> graph = ParseGraph(text.substr(end + 1), FamilyRegistry());
  if (!graph.ok() || graph->nodes().size() > 100 || !InferTypes(&*graph).ok()) return;
  if (request.split) {
    DifferentiateSplit(*graph, request.derivative);
  } else {
    DifferentiateWhole(*graph, request.derivative);
  }
}

}  // namespace tensord
