#include "tests/testlib/property/agreement.h"

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/base/status_macros.h"
#include "engine/ir/verifier.h"
#include "engine/passes/lowering/expand_families.h"
#include "tests/testlib/property/shrinker.h"
#include "tests/testlib/runs/compiled_run.h"

namespace tensord::property {
namespace {

constexpr absl::Duration kShrinkTime = absl::Seconds(60);

}  // namespace

absl::StatusOr<Wanted> WantedOf(const Graph& graph, const std::vector<std::vector<Literal>>& arguments) {
  Graph typed = graph;
  ASSIGN_OR_RETURN(const std::vector<ShapeGuard> guards, InferTypes(&typed));
  RETURN_IF_ERROR(ExpandFamilies(&typed));
  Wanted wanted;
  for (const std::vector<Literal>& set : arguments) {
    ASSIGN_OR_RETURN(std::vector<BoundedLiteral> results, EvaluateBounded(typed, guards, set));
    wanted.push_back(std::move(results));
  }
  return wanted;
}

std::string Disagreement(SettingRun& setting, bool row_major, const Graph& graph,
                         const std::vector<std::vector<Literal>>& arguments, const Wanted& wanted) {
  const auto program = setting.CompileGraph(graph, row_major);
  if (!program.ok()) return absl::StrCat("compiling: ", program.status().ToString());
  for (size_t set = 0; set < arguments.size(); ++set) {
    // A run that may write over its arguments gives the same results.
    const absl::InlinedVector<bool, 16> donated(arguments[set].size(), set % 2 == 1);
    const auto got = RunCompiled(**program, arguments[set], 0, donated);
    if (!got.ok()) return absl::StrCat("running on arguments ", set, ": ", got.status().ToString());
    if (got->size() != wanted[set].size()) return absl::StrCat(got->size(), " results");
    for (size_t i = 0; i < got->size(); ++i) {
      const std::string difference = DifferenceFrom((*got)[i], wanted[set][i]);
      if (!difference.empty()) return absl::StrCat("arguments ", set, ", output ", i, ": ", difference);
    }
  }
  return "";
}

std::string Explained(SettingRun& setting, bool row_major, const RandomCase& failed) {
  const auto disagreement = [&](const FailingCase& candidate) -> std::string {
    const auto wanted = WantedOf(candidate.graph, {candidate.arguments});
    if (!wanted.ok()) return "";
    return Disagreement(setting, row_major, candidate.graph, {candidate.arguments}, *wanted);
  };
  const StillFails still_fails = [&](const FailingCase& candidate) { return !disagreement(candidate).empty(); };
  for (const std::vector<Literal>& arguments : failed.arguments) {
    if (!still_fails({failed.graph, arguments})) continue;
    const FailingCase small = Shrink({failed.graph, arguments}, still_fails, absl::Now() + kShrinkTime);
    return absl::StrCat("smallest case:\n", ToString(small), "\n", disagreement(small));
  }
  return "only with all sets of arguments, one after the other";
}

}  // namespace tensord::property
