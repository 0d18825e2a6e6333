#include "tests/golden/explain_cases.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "engine/autodiff/differentiate.h"
#include "engine/base/status_macros.h"
#include "engine/exec/program/program_passes.h"
#include "engine/families/all_families.h"
#include "engine/ir/parser.h"
#include "engine/ir/verifier.h"
#include "engine/ops/core_ops.h"
#include "engine/runtime/compile/compiler.h"
#include "engine/runtime/compile/explain.h"
#include "tests/testlib/runs/hidden_memory_backend.h"

namespace tensord {

absl::StatusOr<std::string> RunExplainCase(const std::string& input) {
  const std::string directive = input.substr(0, input.find('\n'));
  const std::vector<std::string> words = absl::StrSplit(directive, absl::ByAnyChar(" :"), absl::SkipEmpty());
  if (words.size() < 2 || words[0] != "//" || (words[1] != "column_major" && words[1] != "row_major")) {
    return absl::InvalidArgumentError(absl::StrCat("no order and passes: ", directive));
  }
  CompileSettings settings{.device = "hidden:0", .row_major = words[1] == "row_major"};
  const bool is_derivative = words.size() > 2 && words[2] == "vjp";
  settings.enabled_passes.assign(words.begin() + (is_derivative ? 3 : 2), words.end());
  RETURN_IF_ERROR(CheckPassNames(settings.enabled_passes));
  for (std::string& name : PassNames()) {
    const auto& wanted = settings.enabled_passes;
    if (std::find(wanted.begin(), wanted.end(), name) == wanted.end()) {
      settings.disabled_passes.push_back(std::move(name));
    }
  }
  ASSIGN_OR_RETURN(Graph graph, ParseGraph(absl::string_view(input).substr(directive.size()), FamilyRegistry()));
  if (is_derivative) {
    RETURN_IF_ERROR(InferTypes(&graph).status());
    ASSIGN_OR_RETURN(graph, Differentiate(graph, {.mode = DerivativeMode::kVjp, .wrt = {}}));
  }
  HiddenMemoryBackend backend(/*runs_fused=*/true);
  ASSIGN_OR_RETURN(const CompiledProgramPtr program, Compile(std::move(graph), settings, Fingerprint(), &backend));
  return ExplainProgram(*program);
}

}  // namespace tensord
