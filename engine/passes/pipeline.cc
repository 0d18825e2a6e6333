#include "engine/passes/pipeline.h"

#include <algorithm>
#include <chrono>

#include "engine/base/status_macros.h"
#include "engine/base/stop_signal.h"
#include "engine/ir/verifier.h"
#include "engine/passes/algebra/eliminate_common_subexpressions.h"
#include "engine/passes/algebra/eliminate_dead_code.h"
#include "engine/passes/algebra/fold_conj.h"
#include "engine/passes/algebra/fold_constants.h"
#include "engine/passes/algebra/repeat_converts.h"
#include "engine/passes/algebra/simplify_algebra.h"
#include "engine/passes/algebra/sink_conj.h"
#include "engine/passes/fusion/fuse.h"
#include "engine/passes/fusion/repeat_for_reductions.h"
#include "engine/passes/layout/fold_transposes.h"
#include "engine/passes/layout/hoist_slices.h"
#include "engine/passes/layout/order_broadcasts.h"
#include "engine/passes/layout/permute_products.h"
#include "engine/passes/layout/read_windows.h"
#include "engine/passes/layout/simplify_layout.h"
#include "engine/passes/layout/sort_dot_dimensions.h"
#include "engine/passes/lowering/decompose_dots.h"
#include "engine/passes/lowering/expand_composites.h"
#include "engine/passes/lowering/resolve_sizes.h"

namespace tensord {
namespace {

constexpr Pass kResolveSizes = {"resolve_sizes",
                                "Writes sizes as numbers and symbols, so that no value is kept for its shape alone.",
                                &ResolveSizes};
constexpr Pass kExpandComposites = {
    "expand_composites", "Writes an op as simpler ones where these join their neighbours.", &ExpandComposites};
constexpr Pass kEliminateDeadCode = {"eliminate_dead_code", "Drops nodes that no output needs.", &EliminateDeadCode};
constexpr Pass kFoldConstants = {"fold_constants", "Computes what depends on constants only.", &FoldConstants};
constexpr Pass kSimplifyAlgebra = {"simplify_algebra", "Applies laws of arithmetic that hold bit for bit.",
                                   &SimplifyAlgebra};
constexpr Pass kSinkConj = {"sink_conj", "Moves conjugations to where they meet others or less is to conjugate.",
                            &SinkConj};
constexpr Pass kHoistSlices = {"hoist_slices", "Slices what elementwise ops read instead of what they compute.",
                               &HoistSlices};
constexpr Pass kSimplifyLayout = {"simplify_layout", "Joins what only moves elements, and drops what does nothing.",
                                  &SimplifyLayout};
constexpr Pass kSortDotDimensions = {
    "sort_dot_dimensions", "Lists contracted axes that lie beside each other in ascending order.", &SortDotDimensions};
constexpr Pass kFoldTransposes = {"fold_transposes",
                                  "Reads operands in the order in which they are stored, instead of transposing them.",
                                  &FoldTransposes};
constexpr Pass kFoldConj = {"fold_conj", "Lets products conjugate their operands themselves.", &FoldConj};
constexpr Pass kDecomposeDots = {"decompose_dots",
                                 "Gives every product the form of a batched matrix product, batch axes last.",
                                 &DecomposeDots, /*on_by_default=*/false};
constexpr Pass kReadWindows = {
    "read_windows", "Lets products read windows of a tensor where they lie, instead of copies of them.", &ReadWindows};
constexpr Pass kEliminateCommonSubexpressions = {
    "eliminate_common_subexpressions", "Computes once what several nodes compute.", &EliminateCommonSubexpressions};
constexpr Pass kRepeatForReductions = {
    "repeat_for_reductions", "Computes cheap values again for reductions along other axes, instead of storing them.",
    &RepeatForReductions};
constexpr Pass kPermuteProducts = {
    "permute_products", "Lets products write their results in the order in which they are read.", &PermuteProducts};
constexpr Pass kRepeatConverts = {"repeat_converts",
                                  "Converts slices of the narrow tensor to a wider dtype, not slices of the wide one.",
                                  &RepeatConverts};
constexpr Pass kOrderBroadcasts = {
    "order_broadcasts", "Transposes a tensor before it is repeated, not once for each repetition.", &OrderBroadcasts};
constexpr Pass kFuse = {"fuse", "Makes one kernel of elementwise ops, reductions and the views that they read.", &Fuse};

constexpr Pass kGraphPasses[] = {
    // First, so that values needed for their shape alone are dead.
    kResolveSizes,
    // Before all passes that work on its products; after the sizes, which decide whether a gather is one.
    kExpandComposites,
    // So that no pass works on values without readers.
    kEliminateDeadCode,
    // Before the passes that look for constants.
    kFoldConstants,
    // Makes broadcasts, reshapes and constants.
    kSimplifyAlgebra,
    // Needs to see layout ops before they are joined past it, and leaves conjugations next to their operands.
    kSinkConj,
    // Leaves slices of slices and of broadcasts to be joined.
    kHoistSlices,
    // Before transposes are folded: pairs that undo each other need not be folded.
    kSimplifyLayout,
    // Before transposes are folded, which keeps the order in which axes are listed.
    kSortDotDimensions,
    // Before everything that looks at layouts: afterwards no transpose is left that an op could have absorbed.
    kFoldTransposes,
    // Renamed axes bring reshapes, broadcasts and transposes together that were apart, and leave contracted axes in
    // another order.
    kSimplifyLayout,
    kSortDotDimensions,
    // After all that moves conjugations and layouts away from the products.
    kFoldConj,
    // Off: kernels take any axes.
    kDecomposeDots,
    // When products and layouts are settled; leaves the copies without readers.
    kReadWindows,
    // After all passes that make nodes, some of them twice.
    kEliminateCommonSubexpressions,
    // Makes equal nodes, which nobody joins any more, and leaves some without readers.
    kRepeatForReductions,
    // Removes the nodes that others have replaced, and constants in an order that nobody wants any more.
    kEliminateDeadCode,
    // Needs to know that nobody else reads a product; joins no equal ones any more.
    kPermuteProducts,
    // Makes equal nodes, which nobody joins any more.
    kRepeatConverts,
    // After the passes that join transposes and broadcasts.
    kOrderBroadcasts,
    // Last: the other passes do not look into bodies.
    kFuse,
};

bool Contains(absl::Span<const std::string> names, absl::string_view name) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& n) { return name == n; });
}

}  // namespace

absl::Span<const Pass> GraphPasses() { return kGraphPasses; }
bool PassSelection::Selects(absl::string_view name, bool on_by_default) const {
  return (on_by_default || Contains(enabled, name)) && !Contains(disabled, name);
}

absl::StatusOr<std::vector<PassRecord>> RunPipeline(Graph* graph, const PassOptions& options,
                                                    const PassSelection& selection) {
  RETURN_IF_ERROR(VerifyTypes(*graph));
  std::vector<PassRecord> records;
  for (const Pass& pass : kGraphPasses) {
    if (!selection.Selects(pass.name, pass.on_by_default)) continue;
    RETURN_IF_ERROR(CheckStopped());
    PassRecord record{.name = std::string(pass.name), .nodes_before = static_cast<int64_t>(graph->nodes().size())};
    const auto start = std::chrono::steady_clock::now();
    ASSIGN_OR_RETURN(record.fired, pass.run(graph, options));
    record.duration_ns = std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count();
    record.nodes_after = static_cast<int64_t>(graph->nodes().size());
    if (record.fired) RETURN_IF_ERROR(VerifyTypes(*graph));
    records.push_back(std::move(record));
  }
  return records;
}

std::vector<std::string> FiredPasses(absl::Span<const PassRecord> records) {
  std::vector<std::string> names;
  for (const PassRecord& record : records) {
    if (record.fired && !Contains(names, record.name)) names.push_back(record.name);
  }
  return names;
}

}  // namespace tensord
