#include "tensord/evaluation.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "clients/cpp/lazy/expression.h"
#include "tensord/messages.h"

namespace tensord::client {
namespace {

// Writes expressions into a graph, operands first, each once.
class Tracer {
 public:
  absl::Status AddParameter(const Tensor& parameter);
  // Returns the name under which the graph knows the expression's value.
  std::string Visit(const Expression& root);
  void AddOutput(const std::string& value);
  // Fails if the graph uses a parameter that is none of its own.
  absl::StatusOr<TracedGraph> Finish();

 private:
  void Add(const Expression& expression);
  void AddInput(const Expression& expression, std::string name);

  TracedGraph traced_;
  absl::Status status_;
  absl::flat_hash_map<const Expression*, std::string> names_;
};

std::string Tracer::Visit(const Expression& root) {
  VisitOperandsFirst(
      root, [this](const Expression& one) { return names_.contains(&one); },
      [this](const Expression& one) { Add(one); });
  return names_.at(&root);
}

absl::Status Tracer::AddParameter(const Tensor& parameter) {
  if (!parameter.ok()) return parameter.status();
  const Expression& expression = *parameter.expression();
  if (!expression.parameter.has_value()) {
    return absl::InvalidArgumentError("Trace: a tensor among the parameters is none; make it by Tensor::Parameter");
  }
  for (const v1::GraphInput& input : traced_.graph.inputs()) {
    if (input.name() != *expression.parameter) continue;
    return absl::InvalidArgumentError(absl::StrCat("Trace: two parameters have one name: ", input.name()));
  }
  AddInput(expression, *expression.parameter);
  return absl::OkStatus();
}

void Tracer::AddInput(const Expression& expression, std::string name) {
  v1::GraphInput* input = traced_.graph.add_inputs();
  input->mutable_type()->set_dtype(ToWire(expression.dtype));
  for (int64_t dim : expression.shape) {
    v1::DimExpr* size = input->mutable_type()->add_shape();
    IsSymbol(dim) ? size->set_symbol(SymbolName(dim)) : size->set_size(dim);
  }
  names_.emplace(&expression, name);
  input->set_name(std::move(name));
}

void Tracer::Add(const Expression& expression) {
  if (expression.parameter.has_value()) {
    if (status_.ok()) {
      status_ = absl::InvalidArgumentError(absl::StrCat(
          "a parameter has no value; compile its function, or name it among those of Trace: ", *expression.parameter));
    }
    names_.emplace(&expression, *expression.parameter);
    return;
  }
  if (expression.host.has_value()) {
    std::string name = absl::StrCat("x", traced_.arguments.size());
    const auto is_taken = [&] {
      return std::any_of(traced_.graph.inputs().begin(), traced_.graph.inputs().end(),
                         [&](const v1::GraphInput& input) { return input.name() == name; });
    };
    // Values have names of their own; those of parameters stand first, and are the user's.
    if (traced_.graph.inputs_size() > static_cast<int>(traced_.arguments.size())) {
      while (is_taken()) name += "_";
    }
    traced_.arguments.push_back(*expression.host);
    AddInput(expression, std::move(name));
    return;
  }
  if (expression.result != 0) {
    names_.emplace(&expression, absl::StrCat(names_.at(expression.operands[0].get()), ":", expression.result));
    return;
  }
  v1::Node* node = traced_.graph.add_nodes();
  *node = expression.op;
  node->set_name(NodeNameOf(expression, traced_.graph.nodes_size() - 1));
  for (const auto& operand : expression.operands) node->add_inputs(names_.at(operand.get()));
  names_.emplace(&expression, node->name());
}

void Tracer::AddOutput(const std::string& value) {
  v1::GraphOutput* output = traced_.graph.add_outputs();
  output->set_name(absl::StrCat("y", traced_.graph.outputs_size() - 1));
  output->set_value(value);
}

absl::StatusOr<TracedGraph> Tracer::Finish() {
  if (!status_.ok()) return status_;
  return std::move(traced_);
}

}  // namespace

absl::StatusOr<TracedGraph> Trace(absl::Span<const Tensor> outputs, absl::Span<const Tensor> parameters) {
  Tracer tracer;
  for (const Tensor& parameter : parameters) {
    const absl::Status added = tracer.AddParameter(parameter);
    if (!added.ok()) return added;
  }
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
