#include "tests/fuzz/entries.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "backends/cpu/cpu_backend.h"
#include "engine/base/refusal.h"
#include "engine/families/all_families.h"
#include "engine/ir/canonical.h"
#include "engine/ir/parser.h"
#include "engine/ir/printer.h"
#include "engine/ir/text_round_trip.h"
#include "engine/ir/verifier.h"
#include "engine/ops/core_ops.h"
#include "engine/reference/evaluator.h"
#include "engine/runtime/compile/compiler.h"
#include "engine/runtime/compile/explain.h"
#include "engine/runtime/programs/stored_program.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/stubs/logging.h"
#include "google/protobuf/text_format.h"
#include "proto/codec/error_codec.h"
#include "proto/codec/graph_codec.h"
#include "proto/codec/type_codec.h"
#include "tests/fuzz/require.h"

namespace tensord {
namespace {

void RequireRefusal(const absl::Status& status) {
  Require(codec::EncodeError(status).detail().ByteSizeLong() > 0, "a refusal has a detail", status);
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

// Numbers of 32 bits between commas, in lists between semicolons; what is none is 0.
std::vector<std::vector<int64_t>> ReadLists(absl::string_view line) {
  std::vector<std::vector<int64_t>> lists;
  if (line.empty()) return lists;
  for (absl::string_view list : absl::StrSplit(line, ';')) {
    lists.emplace_back();
    for (absl::string_view number : absl::StrSplit(list, ',', absl::SkipEmpty())) {
      int32_t value = 0;
      lists.back().push_back(absl::SimpleAtoi(number, &value) ? value : 0);
    }
  }
  return lists;
}

// Operands "x0", "x1", … and a result "y". Sizes are at most 4 digits or a symbol.
std::optional<Graph> EinsumGraph(absl::string_view text) {
  std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  lines.resize(5);
  const OpDef* const op = FamilyRegistry().Find("tensord.einsum.v1.Einsum");
  Require(op != nullptr, "there is an einsum");
  Graph graph;
  Node node{.name = "y", .op = op, .attrs = Attributes(op->attrs)};
  for (absl::string_view written : absl::StrSplit(lines[1], ';')) {
    TensorType type{.dtype = DType::kI32};
    for (absl::string_view size : absl::StrSplit(written, ',', absl::SkipEmpty())) {
      int32_t value = 0;
      if (size == "n" || size == "m") {
        type.shape.push_back(DimExpr::Symbol(size));
      } else {
        type.shape.push_back(DimExpr(absl::SimpleAtoi(size, &value) && value >= 0 ? value % 10'000 : 0));
      }
    }
    if (type.shape.size() > 64 || node.operands.size() == 64) return std::nullopt;
    node.operands.push_back(graph.AddInput(absl::StrCat("x", node.operands.size()), std::move(type)));
  }
  node.attrs.Set("equation", std::string(lines[0])).Set("path", ReadLists(lines[2]));
  int32_t number = 0;
  if (absl::SimpleAtoi(lines[3], &number) && number >= 0 && number < 4) {
    node.attrs.Set("optimizer", int64_t{number});
  }
  if (absl::SimpleAtoi(lines[4], &number)) node.attrs.Set("largest_intermediate", std::optional<int64_t>(number));
  graph.AddOutput("y", graph.AddNode(std::move(node)));
  return graph;
}

// Sizes of the symbols n and m in a run: one of both may be 1, which repeats in an ellipsis.
struct SymbolSizes {
  int64_t n = 0, m = 0;
};
constexpr SymbolSizes kSymbolSizes[] = {{3, 1}, {1, 3}, {2, 2}, {0, 1}, {3, 2}};

// Returns arguments of small whole numbers, whose sums are exact. Nothing if the reference would take long.
std::optional<std::vector<Literal>> EinsumArguments(const Graph& graph, const SymbolSizes& sizes) {
  std::vector<Literal> arguments;
  int64_t most = 1;
  for (const GraphInput& input : graph.inputs()) {
    ConcreteType type{.dtype = input.type.dtype};
    for (const Dim& dim : input.type.shape) {
      const int64_t of_symbol = dim.size == DimExpr::Symbol("n") ? sizes.n : sizes.m;
      type.shape.push_back(dim.is_static() ? dim.size.constant() : of_symbol);
      most *= std::max<int64_t>(1, type.shape.back());
      if (most > 1 << 16) return std::nullopt;
    }
    absl::StatusOr<Literal> literal = Literal::Create(type);
    Require(literal.ok(), "arguments fit", literal.status());
    int32_t value = 0;
    for (int32_t& x : literal->mutable_values<int32_t>()) x = ++value % 7 - 3;
    arguments.push_back(*std::move(literal));
  }
  return arguments;
}

// Requires a run with the reference's result, or a refusal together with the reference's or for the memory bound.
void RequireRunsAsReference(const Graph& graph, absl::Span<const ShapeGuard> guards, const CompiledProgram& program,
                            Backend* backend, absl::Span<const Literal> arguments) {
  std::vector<ConcreteType> types;
  std::vector<BufferPtr> buffers;
  for (const Literal& argument : arguments) {
    types.push_back(argument.type());
    absl::StatusOr<std::shared_ptr<Buffer>> buffer = backend->Allocate(argument.type().num_bytes());
    Require(buffer.ok(), "there is memory", buffer.status());
    if (!argument.bytes().empty()) {
      std::memcpy((*buffer)->address(), argument.bytes().data(), argument.bytes().size());
    }
    buffers.push_back(*std::move(buffer));
  }
  const absl::StatusOr<ProgramResults> results = program.Run(types, buffers, nullptr);
  if (!results.ok()) RequireRefusal(results.status());
  const absl::StatusOr<std::vector<Literal>> wanted = EvaluateReference(graph, guards, arguments);
  if (!wanted.ok()) {
    RequireRefusal(wanted.status());
    return Require(!results.ok(), "a run refuses what the reference refuses", wanted.status());
  }
  if (!results.ok()) {
    return Require(DetailOf(results.status())->reason == "LIMIT_EXCEEDED", "only a limit refuses a run",
                   results.status());
  }
  const absl::string_view bytes = (*wanted)[0].bytes();
  Require(results->types[0] == (*wanted)[0].type(), "a run gives the reference's type");
  Require(bytes.empty() || std::memcmp(results->buffers[0]->address(), bytes.data(), bytes.size()) == 0,
          "a run gives what the reference gives");
}

// One program for all sizes of the symbols.
void RequireRunsAsReference(const Graph& graph, absl::Span<const ShapeGuard> guards) {
  if (!EinsumArguments(graph, kSymbolSizes[0]).has_value()) return;
  static Backend* const backend = MakeCpuBackend({.threads = 1}).release();
  const CompileSettings settings{.device = "cpu:0"};
  const ProgramKey key = MakeProgramKey(graph, settings);
  const absl::StatusOr<CompiledProgramPtr> program = Compile(graph, settings, key.fingerprint, backend);
  if (!program.ok()) return RequireRefusal(program.status());
  const auto is_static = [](const GraphInput& input) { return input.type.is_static(); };
  const bool has_symbols = !std::all_of(graph.inputs().begin(), graph.inputs().end(), is_static);
  for (const SymbolSizes& sizes : kSymbolSizes) {
    const std::optional<std::vector<Literal>> arguments = EinsumArguments(graph, sizes);
    if (arguments.has_value()) RequireRunsAsReference(graph, guards, **program, backend, *arguments);
    if (!has_symbols) return;
  }
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

void FuzzStoredProgram(absl::string_view bytes) {
  const CompileSettings settings{.device = "cpu:0"};
  const absl::StatusOr<Graph> graph = ParseGraph(bytes, FamilyRegistry());
  Fingerprint fingerprint = Fingerprint::Of(bytes);
  std::string entry(bytes);
  if (graph.ok()) {
    fingerprint = MakeProgramKey(*graph, settings).fingerprint;
    entry = EncodeStoredProgram(*graph, settings, fingerprint);
  }
  StoredProgram program;
  const EntryDamage damage = DecodeStoredProgram(entry, fingerprint, FamilyRegistry(), &program);
  Require((damage == EntryDamage::kNone) == graph.ok(), Name(damage), graph.status());
  // The same with a right checksum and the fingerprint of the seeds, so that all fields are read.
  constexpr size_t kHeaderBytes = 20;
  if (bytes.size() >= 1 && !graph.ok()) {
    std::string forged = EncodeStoredProgram(Graph(), settings, fingerprint).substr(0, kHeaderBytes);
    forged.append(bytes.data(), bytes.size());
    const uint64_t size = forged.size() + 2 * Fingerprint::kBytes;
    for (size_t i = 0; i < 8; ++i) forged[12 + i] = static_cast<char>(size >> (8 * i));
    forged += Fingerprint::Of(forged).ToHex();
    Require(DecodeStoredProgram(forged, Fingerprint(), FamilyRegistry(), &program) != EntryDamage::kNone,
            "a fingerprint of other bytes is no program's");
  }
  if (damage == EntryDamage::kNone) {
    Require(CanonicalBytes(program.graph) == CanonicalBytes(*graph), "an entry keeps what a graph means");
    Require(PrintGraph(program.graph) == PrintGraph(*graph), "an entry keeps a graph's names");
  }
}

void FuzzEinsum(absl::string_view text) {
  std::optional<Graph> graph = EinsumGraph(text);
  if (!graph.has_value()) return;
  const absl::StatusOr<std::vector<ShapeGuard>> guards = InferTypes(&*graph);
  if (!guards.ok()) return RequireRefusal(guards.status());
  RequireTextRoundTrip(*graph);
  RequireRunsAsReference(*graph, *guards);
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
