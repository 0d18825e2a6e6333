#include "engine/exec/binding/reversal.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/ir/graph.h"
#include "engine/ir/verifier.h"
#include "engine/ops/core_ops.h"
#include "engine/tensor/tensor_type.h"

namespace tensord {
namespace {

// Returns a program that transposes a tensor of this type by reversing its axes.
absl::StatusOr<ExecProgram> TranspositionOf(const ConcreteType& type) {
  std::vector<int64_t> permutation(static_cast<size_t>(type.rank()));
  std::iota(permutation.rbegin(), permutation.rend(), 0);
  Graph graph;
  const ValueId x = graph.AddInput("x", ToTensorType(type));
  const OpDef& op = Def(CoreOp::kTranspose);
  Node transpose = {.name = "y", .op = &op, .attrs = Attributes(op.attrs), .operands = {x}};
  transpose.attrs.Set("permutation", std::move(permutation));
  graph.AddOutput("y", graph.AddNode(std::move(transpose)));
  RETURN_IF_ERROR(InferTypes(&graph).status());
  ExecProgram program = LowerToProgram(graph);
  program.inputs = graph.inputs();
  return program;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Reversal>> Reversal::Create(const ConcreteType& type, Backend* backend) {
  ConcreteType lies = type;
  std::reverse(lies.shape.begin(), lies.shape.end());
  ASSIGN_OR_RETURN(ExecProgram program, TranspositionOf(lies));
  std::shared_ptr<Reversal> reversal(new Reversal(std::move(program)));
  ASSIGN_OR_RETURN(const SizeBinding sizes, BindSizes(reversal->program_, {lies}));
  ASSIGN_OR_RETURN(reversal->bound_, BoundProgram::Create(reversal->program_, backend, sizes));
  return reversal;
}

absl::StatusOr<BufferPtr> Reversal::Run(const BufferPtr& buffer, const RunCheck& check) const {
  ASSIGN_OR_RETURN(std::vector<BufferPtr> results, bound_->Run({buffer}, check));
  return std::move(results[0]);
}

}  // namespace tensord
