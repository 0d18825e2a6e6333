#include "engine/runtime/devices/reversed_buffer.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/exec/binding/bound_program.h"
#include "engine/exec/program/exec_program.h"
#include "engine/ir/graph.h"
#include "engine/ir/verifier.h"
#include "engine/ops/core_ops.h"
#include "engine/tensor/tensor_type.h"

namespace tensord {

absl::StatusOr<BufferPtr> ReversedBuffer(const ConcreteType& type, const BufferPtr& buffer, Backend* backend,
                                         const RunCheck& check) {
  ConcreteType lies = type;
  std::reverse(lies.shape.begin(), lies.shape.end());
  std::vector<int64_t> permutation(static_cast<size_t>(type.rank()));
  std::iota(permutation.rbegin(), permutation.rend(), 0);
  Graph graph;
  const ValueId x = graph.AddInput("x", ToTensorType(lies));
  const OpDef& op = Def(CoreOp::kTranspose);
  Node transpose = {.name = "y", .op = &op, .attrs = Attributes(op.attrs), .operands = {x}};
  transpose.attrs.Set("permutation", std::move(permutation));
  graph.AddOutput("y", graph.AddNode(std::move(transpose)));
  RETURN_IF_ERROR(InferTypes(&graph).status());
  ExecProgram program = LowerToProgram(graph);
  program.inputs = graph.inputs();
  ASSIGN_OR_RETURN(const SizeBinding sizes, BindSizes(program, {lies}));
  ASSIGN_OR_RETURN(const std::unique_ptr<BoundProgram> bound, BoundProgram::Create(program, backend, sizes));
  ASSIGN_OR_RETURN(std::vector<BufferPtr> results, bound->Run({buffer}, check));
  return std::move(results[0]);
}

}  // namespace tensord
