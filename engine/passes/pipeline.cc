#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/ir/verifier.h"
#include "engine/passes/absorb_transposes.h"
#include "engine/passes/eliminate_dead_code.h"
#include "engine/passes/pass.h"
#include "engine/passes/resolve_sizes.h"

namespace tensord {
namespace {

constexpr Pass kPipeline[] = {
    // First, so that what was there for its shape alone is dead.
    {"resolve_sizes", "Writes sizes as numbers and symbols, so that no value is kept for its shape alone.",
     &ResolveSizes},
    // So that nobody works on what nobody reads.
    {"eliminate_dead_code", "Drops nodes that no output needs.", &EliminateDeadCode},
    // Before everything that looks at layouts: afterwards no transpose is left that an op could have absorbed.
    {"absorb_transposes", "Reads operands in the order in which they are stored, instead of transposing them.",
     &AbsorbTransposes},
    // The transposes that were absorbed, and constants in an order that nobody wants any more.
    {"eliminate_dead_code", "Drops nodes that no output needs.", &EliminateDeadCode},
};

}  // namespace

absl::Span<const Pass> Pipeline() { return kPipeline; }

absl::StatusOr<std::vector<std::string>> RunPipeline(Graph* graph, const PassOptions& options,
                                                     absl::Span<const std::string> disabled) {
  for (const std::string& name : disabled) {
    const bool known =
        std::any_of(std::begin(kPipeline), std::end(kPipeline), [&](const Pass& p) { return p.name == name; });
    if (!known) {
      return Refuse(Refusal::kPassUnknown,
                    absl::StrCat("there is no pass \"", name, "\"; there are ",
                                 absl::StrJoin(kPipeline, ", ", [](std::string* out, const Pass& pass) {
                                   absl::StrAppend(out, pass.name);
                                 })));
    }
  }
  std::vector<std::string> changed;
  for (const Pass& pass : kPipeline) {
    if (std::find(disabled.begin(), disabled.end(), pass.name) != disabled.end()) continue;
    ASSIGN_OR_RETURN(const bool did, pass.run(graph, options));
    if (!did) continue;
    if (std::find(changed.begin(), changed.end(), pass.name) == changed.end())
      changed.push_back(std::string(pass.name));
    RETURN_IF_ERROR(VerifyTypes(*graph));
  }
  return changed;
}

}  // namespace tensord
