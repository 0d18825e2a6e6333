#include "tensord/evaluation.h"

#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace tensord::client {
namespace {

// Writes expressions into a graph, operands first, each once.
class Tracer {
 public:
  // Returns the name under which the graph knows the expression's value.
  std::string Visit(const Expression& root);
  void AddOutput(const std::string& value);
  TracedGraph Finish() { return std::move(traced_); }

 private:
  struct Pending {
    const Expression* expression;
    size_t next_operand;
  };

  void Add(const Expression& expression);

  TracedGraph traced_;
  absl::flat_hash_map<const Expression*, std::string> names_;
};

std::string Tracer::Visit(const Expression& root) {
  std::vector<Pending> stack;
  if (!names_.contains(&root)) stack.push_back({&root, 0});
  while (!stack.empty()) {
    Pending& top = stack.back();
    if (top.next_operand < top.expression->operands.size()) {
      const Expression* operand = top.expression->operands[top.next_operand++].get();
      if (!names_.contains(operand)) stack.push_back({operand, 0});
      continue;
    }
    Add(*top.expression);
    stack.pop_back();
  }
  return names_.at(&root);
}

void Tracer::Add(const Expression& expression) {
  if (expression.host.has_value()) {
    v1::GraphInput* input = traced_.graph.add_inputs();
    input->set_name(absl::StrCat("x", traced_.arguments.size()));
    input->mutable_type()->set_dtype(ToWire(expression.dtype));
    for (int64_t dim : expression.shape) input->mutable_type()->add_shape()->set_size(dim);
    traced_.arguments.push_back(*expression.host);
    names_.emplace(&expression, input->name());
    return;
  }
  v1::Node* node = traced_.graph.add_nodes();
  *node = expression.op;
  node->set_name(absl::StrCat("n", traced_.graph.nodes_size() - 1));
  for (const auto& operand : expression.operands) node->add_inputs(names_.at(operand.get()));
  names_.emplace(&expression, node->name());
}

void Tracer::AddOutput(const std::string& value) {
  v1::GraphOutput* output = traced_.graph.add_outputs();
  output->set_name(absl::StrCat("y", traced_.graph.outputs_size() - 1));
  output->set_value(value);
}

}  // namespace

absl::StatusOr<TracedGraph> Trace(absl::Span<const Tensor> outputs) {
  Tracer tracer;
  for (const Tensor& output : outputs) {
    if (!output.ok()) return output.status();
    tracer.AddOutput(tracer.Visit(*output.expression()));
  }
  return tracer.Finish();
}

absl::StatusOr<std::vector<HostTensor>> EvalAll(Client& client, absl::Span<const Tensor> outputs,
                                                const ExecuteOptions& options) {
  absl::StatusOr<TracedGraph> traced = Trace(outputs);
  if (!traced.ok()) return traced.status();
  if (outputs.empty()) return std::vector<HostTensor>();
  absl::StatusOr<ExecuteResult> result = client.Execute(traced->graph, traced->arguments, options);
  if (!result.ok()) return result.status();
  if (result->outputs.size() != outputs.size()) {
    return absl::InternalError(
        absl::StrCat("the server sent another number of results: ", result->outputs.size(), " for ", outputs.size()));
  }
  return std::move(result->outputs);
}

absl::StatusOr<HostTensor> Eval(Client& client, const Tensor& output, const ExecuteOptions& options) {
  absl::StatusOr<std::vector<HostTensor>> values = EvalAll(client, {output}, options);
  if (!values.ok()) return values.status();
  return std::move(values->front());
}

}  // namespace tensord::client
