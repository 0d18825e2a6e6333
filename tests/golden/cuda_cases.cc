#include "tests/golden/cuda_cases.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "backends/cuda/codegen/printer.h"
#include "engine/base/status_macros.h"
#include "engine/fusion/build_micro_program.h"
#include "engine/fusion/fused_op.h"
#include "engine/ir/parser.h"
#include "engine/ir/size_binding.h"
#include "engine/ir/verifier.h"
#include "engine/ops/core_ops.h"
#include "engine/passes/fusion/fuse.h"

namespace tensord {

absl::StatusOr<std::string> RunCudaCase(const std::string& input) {
  ASSIGN_OR_RETURN(Graph graph, ParseGraph(input, CoreRegistry()));
  RETURN_IF_ERROR(InferTypes(&graph).status());
  RETURN_IF_ERROR(Fuse(&graph, {.fuses = true}).status());
  ASSIGN_OR_RETURN(const SizeBinding binding, SizeBinding::Create({}, {}));
  std::string text;
  for (const Node& node : graph.nodes()) {
    if (!IsFused(*node.op)) continue;
    std::vector<ConcreteType> types;
    for (int32_t v = 0; v < node.body->num_values(); ++v) {
      ASSIGN_OR_RETURN(types.emplace_back(), binding.Resolve(node.body->type({v})));
    }
    ASSIGN_OR_RETURN(const MicroProgram program, BuildMicroProgram(node.attrs, *node.body, types));
    const KernelText kernel = PrintCuda(program, {.name = node.name});
    absl::StrAppend(&text, ToString(program));
    for (const CudaLaunch& launch : kernel.launches) {
      absl::StrAppend(&text, "launch ", launch.entry, ": ", launch.blocks, " blocks of ", launch.threads_per_block,
                      " threads, ", launch.dynamic_shared_bytes, " bytes shared\n");
    }
    absl::StrAppend(&text, "scratch ", kernel.scratch_bytes, " bytes\n\n", kernel.source);
  }
  return text;
}

}  // namespace tensord
