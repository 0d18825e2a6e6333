#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "clients/cpp/lazy/expression.h"
#include "clients/cpp/lazy/recorded_call.h"
#include "clients/cpp/lazy/refused_operation.h"
#include "tensord/evaluation.h"
#include "tensord/messages.h"

namespace tensord::client {
namespace {

// Constants up to this size go along, since rules of derivatives may look at their numbers; larger ones are inputs.
constexpr size_t kMostConstantBytes = 64;

// The most results of an operation: more are not read from an answer.
constexpr size_t kMostResults = 64;

// A value reference of the wire: "svd:1" as {"svd", 1}.
std::pair<std::string, size_t> SplitReference(const std::string& reference) {
  const size_t colon = reference.find(':');
  if (colon == std::string::npos) return {reference, 0};
  uint32_t result = 0;
  return {reference.substr(0, colon), absl::SimpleAtoi(reference.substr(colon + 1), &result) ? result : 0};
}

// The graph of a value whose inputs are the variables and all tensors that have a value of their own. It remembers
// which tensor each name stands for, and so turns a derivative of it into tensors.
class GradientGraph {
 public:
  // Adds a variable, before the value.
  void AddVariable(const Tensor& variable);
  void AddValue(const Tensor& value);

  const v1::Graph& graph() const { return graph_; }
  const std::vector<std::string>& variables() const { return variables_; }

  // Records the derivative's nodes that are not the graph's own; returns its outputs, which have the types of `like`.
  std::vector<Tensor> Record(const v1::Graph& derivative, absl::Span<const Tensor> like);

 private:
  using Types = absl::flat_hash_map<std::string, ResultType>;

  void Add(const Expression& expression);
  void AddInput(const Expression& expression);
  void Name(const Expression& expression, std::string name);
  void RecordNode(const v1::Node& node, size_t results, const Types& types);
  // Returns the tensor of a value reference.
  Tensor Find(const std::string& reference);

  v1::Graph graph_;
  std::vector<std::string> variables_;
  absl::flat_hash_map<const Expression*, std::shared_ptr<const Expression>> owners_;
  absl::flat_hash_map<const Expression*, std::string> names_;
  absl::flat_hash_map<std::string, Tensor> tensors_;  // by name, or reference to a further result
};

void GradientGraph::AddVariable(const Tensor& variable) {
  owners_.emplace(variable.expression().get(), variable.expression());
  if (names_.contains(variable.expression().get())) return;
  AddInput(*variable.expression());
  variables_.push_back(names_.at(variable.expression().get()));
}

void GradientGraph::AddValue(const Tensor& value) {
  owners_.emplace(value.expression().get(), value.expression());
  VisitOperandsFirst(
      *value.expression(), [this](const Expression& one) { return names_.contains(&one); },
      [this](const Expression& one) { Add(one); });
  v1::GraphOutput* output = graph_.add_outputs();
  output->set_name("value");
  output->set_value(names_.at(value.expression().get()));
}

void GradientGraph::Add(const Expression& expression) {
  const bool is_large_constant =
      expression.op.has_constant() && expression.op.constant().value().data().size() > kMostConstantBytes;
  if (expression.parameter.has_value() || expression.host.has_value() || is_large_constant) return AddInput(expression);
  if (expression.result != 0) {
    return Name(expression, absl::StrCat(names_.at(expression.operands[0].get()), ":", expression.result));
  }
  v1::Node* node = graph_.add_nodes();
  *node = expression.op;
  node->set_name(NodeNameOf(expression, graph_.nodes_size() - 1));
  for (const auto& operand : expression.operands) node->add_inputs(names_.at(operand.get()));
  Name(expression, node->name());
}

void GradientGraph::AddInput(const Expression& expression) {
  v1::GraphInput* input = graph_.add_inputs();
  input->set_name(absl::StrCat("x", graph_.inputs_size() - 1));
  input->mutable_type()->set_dtype(ToWire(expression.dtype));
  for (int64_t dim : expression.shape) {
    v1::DimExpr* size = input->mutable_type()->add_shape();
    IsSymbol(dim) ? size->set_symbol(SymbolName(dim)) : size->set_size(dim);
  }
  Name(expression, input->name());
}

void GradientGraph::Name(const Expression& expression, std::string name) {
  for (const auto& operand : expression.operands) owners_.emplace(operand.get(), operand);
  names_.emplace(&expression, name);
  tensors_.emplace(std::move(name), Tensor());  // its owner is known once all are visited
}

std::vector<Tensor> GradientGraph::Record(const v1::Graph& derivative, absl::Span<const Tensor> like) {
  for (const auto& [expression, name] : names_) tensors_[name] = Tensor::FromExpression(owners_.at(expression));
  Types types;
  for (int i = 0; i < derivative.outputs_size(); ++i) {
    const Tensor& one = like[static_cast<size_t>(i)];
    types.insert_or_assign(derivative.outputs(i).value(), ResultType{one.dtype(), one.shape()});
  }
  absl::flat_hash_map<std::string, size_t> results;  // by node: how many of them are used
  const auto use = [&results](const std::string& reference) {
    const auto [name, index] = SplitReference(reference);
    if (index < kMostResults) results[name] = std::max(results[name], index + 1);
  };
  for (const v1::Node& node : derivative.nodes()) std::for_each(node.inputs().begin(), node.inputs().end(), use);
  for (const v1::GraphOutput& output : derivative.outputs()) use(output.value());
  for (const v1::Node& node : derivative.nodes()) {
    if (!tensors_.contains(node.name())) RecordNode(node, results[node.name()], types);
  }
  std::vector<Tensor> outputs;
  for (const v1::GraphOutput& output : derivative.outputs()) outputs.push_back(Find(output.value()));
  return outputs;
}

// Only outputs need their types: nobody else sees the tensors in between.
void GradientGraph::RecordNode(const v1::Node& node, size_t results, const Types& types) {
  std::vector<Tensor> operands;
  for (const std::string& reference : node.inputs()) operands.push_back(Find(reference));
  v1::Node op = node;
  op.clear_name();
  op.clear_inputs();
  std::vector<ResultType> result_types(std::max<size_t>(results, 1));
  std::vector<std::string> references;
  for (size_t i = 0; i < result_types.size(); ++i) {
    references.push_back(i == 0 ? node.name() : absl::StrCat(node.name(), ":", i));
    if (const auto type = types.find(references.back()); type != types.end()) result_types[i] = type->second;
  }
  const std::vector<Tensor> tensors = Tensor::FromOp(std::move(op), operands, result_types);
  for (size_t i = 0; i < tensors.size(); ++i) tensors_[references[i]] = tensors[i];
}

Tensor GradientGraph::Find(const std::string& reference) {
  const auto [name, index] = SplitReference(reference);
  const std::string key = index == 0 ? name : reference;
  if (const auto found = tensors_.find(key); found != tensors_.end()) return found->second;
  const auto node = tensors_.find(name);
  if (node == tensors_.end()) {
    return Tensor::Failed(absl::InternalError(absl::StrCat("the server's derivative reads an unknown value: ", name)));
  }
  // A result of the value's own graph that nobody had used.
  auto result = std::make_shared<Expression>();
  result->result = static_cast<int64_t>(index);
  result->operands = {node->second.expression()};
  return tensors_[key] = Tensor::FromExpression(std::move(result));
}

// Returns the reason why the tensor cannot be a variable, or OK.
absl::Status CheckVariable(const Tensor& variable) {
  if (!variable.ok()) return variable.status();
  if (!IsFloat(variable.dtype()) && !IsComplex(variable.dtype())) {
    return absl::InvalidArgumentError(absl::StrCat("Gradient: only floats and complex numbers are differentiated: ",
                                                   DTypeName(variable.dtype()), ShapeToString(variable.shape())));
  }
  if (std::find(variable.shape().begin(), variable.shape().end(), kRunTimeSize) != variable.shape().end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("Gradient: a size that only the run knows has no symbol: ", ShapeToString(variable.shape()),
                     "; differentiate with respect to what it is computed from"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> RecordGradient(Client& client, const Tensor& value, absl::Span<const Tensor> wrt) {
  if (!value.ok()) return value.status();
  GradientGraph traced;
  std::vector<Tensor> variables;
  for (const Tensor& variable : wrt) {
    const absl::Status checked = CheckVariable(variable);
    if (!checked.ok()) return checked;
    const size_t known = traced.variables().size();
    traced.AddVariable(variable);
    if (traced.variables().size() > known) variables.push_back(variable);
  }
  traced.AddValue(value);
  const absl::StatusOr<v1::Graph> derivative =
      client.Differentiate(traced.graph(), {.mode = DerivativeMode::kGrad, .wrt = traced.variables()});
  if (!derivative.ok()) return derivative.status();
  if (static_cast<size_t>(derivative->outputs_size()) != variables.size()) {
    return absl::InternalError(absl::StrCat("the server sent another number of gradients: ", derivative->outputs_size(),
                                            " for ", variables.size()));
  }
  const std::vector<Tensor> slopes = traced.Record(*derivative, variables);
  std::vector<Tensor> gradients;
  for (const Tensor& variable : wrt) {
    const auto same = std::find_if(variables.begin(), variables.end(), [&variable](const Tensor& one) {
      return one.expression() == variable.expression();
    });
    gradients.push_back(slopes[static_cast<size_t>(same - variables.begin())]);
  }
  return gradients;
}

}  // namespace

std::vector<Tensor> Gradient(Client& client, const TensorArg& value, absl::Span<const Tensor> wrt) {
  const RecordedCall call("Gradient", value.place());
  if (wrt.empty()) return {};
  absl::StatusOr<std::vector<Tensor>> gradients = RecordGradient(client, value, wrt);
  if (!gradients.ok()) return std::vector<Tensor>(wrt.size(), Tensor::Failed(gradients.status()));
  return *std::move(gradients);
}

}  // namespace tensord::client
