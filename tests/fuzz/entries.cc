#include "tests/fuzz/entries.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "backends/cpu/cpu_backend.h"
#include "engine/base/refusal.h"
#include "engine/families/all_families.h"
#include "engine/ir/canonical.h"
#include "engine/ir/parser.h"
#include "engine/ir/text_round_trip.h"
#include "engine/ir/verifier.h"
#include "engine/ops/core_ops.h"
#include "engine/runtime/compiler.h"
#include "engine/runtime/explain.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/stubs/logging.h"
#include "google/protobuf/text_format.h"
#include "proto/codec/error_codec.h"
#include "proto/codec/graph_codec.h"
#include "proto/codec/type_codec.h"

namespace tensord {
namespace {

// Like CHECK, and unlike assert in every build.
void Require(bool holds, absl::string_view what, const absl::Status& status = absl::OkStatus()) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %.*s: %s\n", static_cast<int>(what.size()), what.data(),
               status.ToString().c_str());
  std::abort();
}

void RequireRefusal(const absl::Status& status) {
  Require(codec::EncodeErrorDetail(status).SerializeAsString().size() > 0, "a refusal has a detail", status);
  Require(status.code() != absl::StatusCode::kInternal, "input is never an internal error", status);
}

void RequireTextRoundTrip(const Graph& graph) {
  const absl::StatusOr<Graph> again = ReadBackFromText(graph, FamilyRegistry());
  Require(again.ok(), "the text form keeps what a graph means", again.status());
}

// Compiles for the CPU, which makes kernels where all sizes are known, and runs nothing.
void RequireCompiles(const Graph& graph, Order order) {
  constexpr size_t kMaxNodes = 200;  // keeps an input quick; how deep passes may go does not depend on it
  if (graph.nodes().size() > kMaxNodes) return;
  static Backend* const backend = MakeCpuBackend({.threads = 1}).release();
  const CompileSettings settings{.device = "cpu:0", .row_major = order == Order::kRowMajor};
  const ProgramKey key = MakeProgramKey(graph, settings);
  const absl::StatusOr<CompiledProgramPtr> program = Compile(graph, settings, key.fingerprint, backend);
  if (!program.ok()) return RequireRefusal(program.status());
  Require(!ExplainProgram(**program).empty(), "a program explains itself");
}

// Text format without messages on the standard error.
class SilentErrors : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int, google::protobuf::io::ColumnNumber, const std::string&) override {}
};

bool ReadGraph(absl::string_view bytes, v1::Graph* graph) {
  const google::protobuf::LogSilencer silent;
  if (graph->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return true;
  SilentErrors errors;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  parser.SetRecursionLimit(100);
  return parser.ParseFromString(std::string(bytes), graph);
}

}  // namespace

void FuzzGraphWire(absl::string_view bytes) {
  v1::Graph wire;
  if (!ReadGraph(bytes, &wire)) return;
  const codec::GraphLimits limits;
  absl::StatusOr<Graph> graph = codec::DecodeGraph(wire, FamilyRegistry(), limits, Order::kRowMajor);
  if (!graph.ok()) return RequireRefusal(graph.status());
  const absl::StatusOr<v1::Graph> encoded = codec::EncodeGraph(*graph);
  Require(encoded.ok(), "what decodes encodes", encoded.status());
  const absl::StatusOr<Graph> again = codec::DecodeGraph(*encoded, FamilyRegistry(), limits, Order::kRowMajor);
  if (again.ok()) {
    Require(CanonicalBytes(*again) == CanonicalBytes(*graph), "the wire keeps what a graph means");
  } else {
    // A size may take more room written out than as it was factored.
    const std::optional<RefusalDetail> detail = DetailOf(again.status());
    Require(detail.has_value() && (detail->reason == "DIM_EXPR_INVALID" || detail->reason == "LIMIT_EXCEEDED"),
            "what encodes decodes", again.status());
  }
  RequireTextRoundTrip(*graph);
  const absl::StatusOr<std::vector<ShapeGuard>> guards = InferTypes(&*graph);
  if (!guards.ok()) return RequireRefusal(guards.status());
  RequireTextRoundTrip(*graph);
  RequireCompiles(*graph, Order::kRowMajor);
}

void FuzzGraphText(absl::string_view text) {
  absl::StatusOr<Graph> graph = ParseGraph(text, FamilyRegistry());
  if (!graph.ok()) return RequireRefusal(graph.status());
  RequireTextRoundTrip(*graph);
  const absl::StatusOr<std::vector<ShapeGuard>> guards = InferTypes(&*graph);
  if (!guards.ok()) return RequireRefusal(guards.status());
  RequireTextRoundTrip(*graph);
  RequireCompiles(*graph, Order::kColumnMajor);
}

void FuzzDimExpr(absl::string_view text) {
  const absl::StatusOr<DimExpr> size = ParseDimExpr(text);
  if (!size.ok()) return RequireRefusal(size.status());
  const absl::StatusOr<DimExpr> again = ParseDimExpr(size->ToString());
  // Printing writes out what was factored, which may be nested deeper.
  if (again.ok()) Require(*again == *size, "a size reads back as itself");
  const codec::GraphLimits limits;
  const absl::StatusOr<DimExpr> decoded = codec::DimExprDecoder(limits).Decode(codec::EncodeDimExpr(*size));
  if (decoded.ok()) Require(*decoded == *size, "a size decodes to itself");
  const absl::StatusOr<int64_t> value = size->Evaluate([](const DimAtom& atom) -> absl::StatusOr<int64_t> {
    return atom.kind == DimAtom::Kind::kSymbol ? static_cast<int64_t>(atom.symbol.size()) : atom.axis;
  });
  if (!value.ok()) return RequireRefusal(value.status());
  Require(*value >= 0, "a size is not negative");
}

}  // namespace tensord
