#include "engine/runtime/compile/compiler.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "engine/algebra/standard_form.h"
#include "engine/algebra/vocabulary.h"
#include "engine/base/program_at_work.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/base/stop_signal.h"
#include "engine/exec/program/program_passes.h"
#include "engine/exec/program/sessions.h"
#include "engine/ir/canonical.h"
#include "engine/ir/liveness.h"
#include "engine/ir/sized_graph.h"
#include "engine/ir/verifier.h"
#include "engine/passes/layout/reverse_wire_order.h"
#include "engine/passes/lowering/expand_families.h"
#include "engine/passes/pipeline.h"
#include "engine/runtime/compile/renaming.h"
#include "engine/tensor/run_time_size.h"

namespace tensord {
namespace {

void AppendText(std::string* bytes, absl::string_view text) { absl::StrAppend(bytes, text.size(), ":", text); }

// The backend's consent to every instruction.
absl::Status CheckSupport(const ExecProgram& program, const Backend& backend) {
  for (const ExecInstruction& instruction : program.instructions) {
    absl::InlinedVector<DType, 4> operands;
    for (Slot slot : instruction.operands) operands.push_back(program.slot_types[static_cast<size_t>(slot)].dtype);
    const DType result = program.slot_types[static_cast<size_t>(instruction.results[0])].dtype;
    RETURN_IF_ERROR(
        WithNode(backend.Supports(*instruction.op, operands, result), instruction.node, instruction.written_op().name));
  }
  return absl::OkStatus();
}

// The guards of the graph before the passes, on sizes that the run decides: a pass may have found that nothing needs a
// size, and then nobody decides it.
void DropUndecidedGuards(ExecProgram* program) {
  absl::flat_hash_set<std::string> decided;
  for (const ExecInstruction& instruction : program->instructions) {
    if (!instruction.decides.empty()) decided.insert(instruction.decides);
  }
  const auto is_undecided = [&decided](const DimExpr& size) {
    bool undecided = false;
    size.ForEachLeaf([&](const DimAtom& atom) {
      undecided = undecided || (IsRunTimeSymbol(atom.symbol) && !decided.contains(atom.symbol));
    });
    return undecided;
  };
  std::erase_if(program->guards, [&](const ProgramGuard& guard) {
    return is_undecided(guard.guard.lhs) || is_undecided(guard.guard.rhs);
  });
}

absl::Status PutIn(const ExpandedSizes& sizes, std::vector<ProgramGuard>* guards) {
  if (sizes.empty()) return absl::OkStatus();
  const auto replacement = [&sizes](const DimAtom& atom) -> absl::StatusOr<DimExpr> {
    const auto it = sizes.find(atom.symbol);
    return it == sizes.end() ? DimExpr::Symbol(atom.symbol) : it->second;
  };
  for (ProgramGuard& guard : *guards) {
    for (DimExpr* size : {&guard.guard.lhs, &guard.guard.rhs}) {
      ASSIGN_OR_RETURN(*size, size->Substitute(replacement));
    }
  }
  return absl::OkStatus();
}

// The ops of a graph by their nodes' names. Nodes made of a node, by expansion or by passes, keep its name, so that
// later refusals still speak of the op that the client wrote.
class WrittenOps {
 public:
  explicit WrittenOps(const Graph& graph) {
    ops_.reserve(graph.nodes().size());
    for (const Node& node : graph.nodes()) ops_.emplace(node.name, node.op);
  }

  void Note(ExecProgram* program) const {
    for (ExecInstruction& instruction : program->instructions) instruction.written = Find(instruction.node);
  }

 private:
  // Returns null for an op of no node, such as one between the client's order and the program's.
  const OpDef* Find(const std::string& node) const {
    const auto it = ops_.find(node);
    return it == ops_.end() ? nullptr : it->second;
  }

  absl::flat_hash_map<std::string, const OpDef*> ops_;
};

// Tells whether some op would be expanded better if the sizes of the arguments were known.
bool IsPlannedBySize(const Graph& graph, const std::vector<bool>& live) {
  const auto follows_from_arguments = [&graph](ValueId value) {
    for (const Dim& dim : graph.type(value).shape) {
      if (!dim.is_static() && !DependsOnRun(dim.size)) return true;
    }
    return false;
  };
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (live[i] && node.op->has(kPlannedBySize) && node.operands.size() > 2 &&
        std::any_of(node.operands.begin(), node.operands.end(), follows_from_arguments)) {
      return true;
    }
  }
  return false;
}

// Tells whether sizes of the arguments are open.
bool HasOpenInputs(const Graph& graph) {
  for (const GraphInput& input : graph.inputs()) {
    for (const Dim& dim : input.type.shape) {
      if (!dim.is_static()) return true;
    }
  }
  return false;
}

// Views the names in `settings`. Refuses those that are no pass's.
absl::StatusOr<PassSelection> SelectPasses(const CompileSettings& settings) {
  RETURN_IF_ERROR(CheckPassNames(settings.disabled_passes));
  RETURN_IF_ERROR(CheckPassNames(settings.enabled_passes));
  return PassSelection{.disabled = settings.disabled_passes, .enabled = settings.enabled_passes};
}

// `whole` is the phase that the watch gets for all of it. `constants` are those of the programs for all sizes.
absl::StatusOr<CompiledProgramPtr> CompileAs(CompilePhase whole, Graph graph, const CompileSettings& settings,
                                             const Fingerprint& fingerprint, Backend* backend,
                                             const BindingOptions& bindings, const CompileWatch& watch,
                                             const std::shared_ptr<ConstantBuffers>& constants) {
  PhaseClock clock(watch);
  std::vector<std::string> names = NamesOf(graph);
  ASSIGN_OR_RETURN(std::vector<ShapeGuard> guards, InferTypes(&graph));
  RETURN_IF_ERROR(CheckVocabulary(graph));
  const std::vector<GraphInput> inputs = graph.inputs();
  std::vector<TensorType> wire_outputs;
  for (const GraphOutput& output : graph.outputs()) wire_outputs.push_back(graph.type(output.value));
  std::vector<ProgramGuard> program_guards;
  const std::vector<bool> live = LiveNodes(graph);
  for (ShapeGuard& guard : guards) {
    // A dead node decides nothing.
    if (!live[static_cast<size_t>(guard.node)] && (DependsOnRun(guard.lhs) || DependsOnRun(guard.rhs))) continue;
    const Node& node = graph.nodes()[static_cast<size_t>(guard.node)];
    program_guards.push_back({.guard = std::move(guard), .node = node.name, .op = std::string(node.op->name)});
  }

  CompiledProgram::CompileSized compile_sized;
  if (IsPlannedBySize(graph, live) || (backend->Describe().prepares_slowly && HasOpenInputs(graph))) {
    compile_sized = [graph, settings, fingerprint, backend, bindings, watch,
                     constants](const SizeBinding& sizes) -> absl::StatusOr<CompiledProgramPtr> {
      ASSIGN_OR_RETURN(Graph sized, WithSizes(graph, sizes));
      return CompileAs(CompilePhase::kSizes, std::move(sized), settings, fingerprint, backend, bindings, watch,
                       constants);
    };
  }
  const WrittenOps written(graph);
  clock.End(CompilePhase::kInfer);
  RETURN_IF_ERROR(CheckStopped());
  std::vector<ContractionPlan> contractions;
  ExpandedSizes expanded_sizes;
  RETURN_IF_ERROR(ExpandFamilies(&graph, &contractions, &expanded_sizes, settings.most_nodes));
  RETURN_IF_ERROR(PutIn(expanded_sizes, &program_guards));
  RETURN_IF_ERROR(WriteInStandardForm(&graph, settings.most_nodes));
  clock.End(CompilePhase::kExpand);
  if (settings.row_major) graph = ReverseWireOrder(std::move(graph));
  ASSIGN_OR_RETURN(const PassSelection selection, SelectPasses(settings));
  ASSIGN_OR_RETURN(std::vector<PassRecord> passes,
                   RunPipeline(&graph, {.row_major = settings.row_major, .fuses = backend->runs_fused()}, selection));
  clock.End(CompilePhase::kPasses);
  RETURN_IF_ERROR(CheckStopped());
  ExecProgram program = LowerToProgram(graph);
  program.inputs = inputs;
  program.wire_outputs = std::move(wire_outputs);
  program.row_major = settings.row_major;
  program.guards = std::move(program_guards);
  DropUndecidedGuards(&program);
  program.passes = std::move(passes);
  RunProgramPasses(selection, &program);
  written.Note(&program);
  RETURN_IF_ERROR(CheckSupport(program, *backend));
  clock.End(CompilePhase::kLower);
  CompiledProgram::Identity identity = {.fingerprint = fingerprint,
                                        .device = settings.device,
                                        .tenant = settings.tenant,
                                        .names = std::move(names),
                                        .contractions = std::move(contractions)};
  ASSIGN_OR_RETURN(CompiledProgramPtr compiled,
                   CompiledProgram::Create(std::move(program), std::move(identity), backend, bindings,
                                           std::move(compile_sized), constants));
  // A pass that returned early may leave something like a program.
  RETURN_IF_ERROR(CheckStopped());
  clock.End(CompilePhase::kPrepare);
  clock.EndAll(whole);
  return compiled;
}

}  // namespace

ProgramKey MakeProgramKey(const Graph& graph, const CompileSettings& settings) {
  ProgramKey key;
  AppendText(&key.bytes, kCompilerVersion);
  AppendText(&key.bytes, settings.device);
  AppendText(&key.bytes, settings.row_major ? "row" : "column");
  for (const std::vector<std::string>* passes : {&settings.disabled_passes, &settings.enabled_passes}) {
    absl::StrAppend(&key.bytes, passes->size(), ";");
    for (const std::string& pass : *passes) AppendText(&key.bytes, pass);
  }
  if (!settings.tenant.empty()) {
    AppendText(&key.bytes, "tenant");
    AppendText(&key.bytes, settings.tenant);
  }
  key.bytes += CanonicalBytes(graph);
  key.fingerprint = Fingerprint::Of(key.bytes);
  return key;
}

absl::StatusOr<CompiledProgramPtr> Compile(Graph graph, const CompileSettings& settings, const Fingerprint& fingerprint,
                                           Backend* backend, const BindingOptions& bindings,
                                           const CompileWatch& watch) {
  const ProgramAtWork at_work(fingerprint, ProgramWork::kCompile);
  return CompileAs(CompilePhase::kTotal, std::move(graph), settings, fingerprint, backend, bindings, watch,
                   std::make_shared<ConstantBuffers>(backend));
}

}  // namespace tensord
