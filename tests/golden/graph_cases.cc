#include "tests/golden/graph_cases.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/algebra/standard_form.h"
#include "engine/algebra/vocabulary.h"
#include "engine/autodiff/differentiate.h"
#include "engine/base/fingerprint.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/families/all_families.h"
#include "engine/ir/canonical.h"
#include "engine/ir/parser.h"
#include "engine/ir/printer.h"
#include "engine/ir/verifier.h"
#include "engine/ops/core_ops.h"
#include "engine/passes/lowering/expand_families.h"
#include "google/protobuf/text_format.h"
#include "proto/codec/graph_codec.h"
#include "tests/golden/cuda_cases.h"
#include "tests/golden/explain_cases.h"
#include "tests/golden/pass_cases.h"

namespace tensord {
namespace {

std::string RefusalText(const absl::Status& status) {
  const RefusalDetail detail = DetailOf(status).value_or(RefusalDetail{.reason = "(no reason)"});
  std::string text = absl::StrCat(absl::StatusCodeToString(status.code()), " ", detail.reason, "\n");
  if (!detail.node.empty()) absl::StrAppend(&text, "node: ", detail.node, "\n");
  if (!detail.op.empty()) absl::StrAppend(&text, "op: ", detail.op, "\n");
  if (!detail.limit.empty()) {
    absl::StrAppend(&text, "limit: ", detail.limit, " = ", detail.limit_value, ", actual ", detail.actual_value, "\n");
  }
  return absl::StrCat(text, status.message(), "\n");
}

absl::StatusOr<Graph> FromWireText(const std::string& input) {
  v1::Graph wire;
  if (!google::protobuf::TextFormat::ParseFromString(input, &wire)) {
    return absl::InvalidArgumentError("the case is no tensord.v1.Graph");
  }
  ASSIGN_OR_RETURN(Graph graph, codec::DecodeGraph(wire, FamilyRegistry(), codec::GraphLimits(), Order::kColumnMajor));
  ASSIGN_OR_RETURN(const v1::Graph encoded, codec::EncodeGraph(graph));
  ASSIGN_OR_RETURN(const Graph again,
                   codec::DecodeGraph(encoded, FamilyRegistry(), codec::GraphLimits(), Order::kRowMajor));
  if (CanonicalBytes(graph) != CanonicalBytes(again))
    return absl::InternalError("encoding does not give the graph back");
  return graph;
}

absl::StatusOr<std::string> StandardForm(Graph graph) {
  RETURN_IF_ERROR(CheckVocabulary(graph));
  RETURN_IF_ERROR(ExpandFamilies(&graph));
  RETURN_IF_ERROR(WriteInStandardForm(&graph));
  return PrintGraph(graph);
}

absl::StatusOr<std::string> Derivatives(const Graph& graph) {
  ASSIGN_OR_RETURN(const Graph jvp, Differentiate(graph, {.mode = DerivativeMode::kJvp, .wrt = {}}));
  ASSIGN_OR_RETURN(const Graph vjp, Differentiate(graph, {.mode = DerivativeMode::kVjp, .wrt = {}}));
  return absl::StrCat(PrintGraph(jvp), PrintGraph(vjp));
}

absl::StatusOr<std::string> Show(const std::string& folder, const std::string& input) {
  if (folder == "passes") return RunPassCase(input);
  if (folder == "explain") return RunExplainCase(input);
  if (folder == "cuda") return RunCudaCase(input);
  ASSIGN_OR_RETURN(Graph graph, ReadGraphCase(input));
  if (folder == "canonical") return absl::StrCat(Fingerprint::Of(CanonicalBytes(graph)).ToHex(), "\n");
  ASSIGN_OR_RETURN(const std::vector<ShapeGuard> guards, InferTypes(&graph));
  if (folder == "algebra") return StandardForm(std::move(graph));
  if (folder == "derivatives") return Derivatives(graph);
  std::string text = PrintGraph(graph);
  ASSIGN_OR_RETURN(const Graph again, ParseGraph(text, FamilyRegistry()));
  if (PrintGraph(again) != text) return absl::InternalError("printing does not give the graph back");
  for (const ShapeGuard& guard : guards) {
    const absl::string_view relation = guard.kind == ShapeGuard::Kind::kEqual        ? " == "
                                       : guard.kind == ShapeGuard::Kind::kEqualOrOne ? " is 1 or == "
                                                                                     : " <= ";
    absl::StrAppend(&text, "guard ", graph.nodes()[static_cast<size_t>(guard.node)].name, ": ", guard.lhs.ToString(),
                    relation, guard.rhs.ToString(), "\n");
  }
  return text;
}

}  // namespace

absl::StatusOr<Graph> ReadGraphCase(const std::string& input) {
  return absl::StartsWith(input, "graph ") ? ParseGraph(input, FamilyRegistry()) : FromWireText(input);
}

std::string RunGraphCase(const std::string& folder, const std::string& input) {
  const absl::StatusOr<std::string> shown = Show(folder, input);
  return shown.ok() ? *shown : RefusalText(shown.status());
}

}  // namespace tensord
