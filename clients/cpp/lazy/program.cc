#include "tensord/program.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "tensord/evaluation.h"
#include "tensord/messages.h"

namespace tensord::client {
namespace {

std::string TypeText(DType dtype, const Shape& shape) { return absl::StrCat(DTypeName(dtype), ShapeToString(shape)); }

// Checks arguments against parameters, and that each symbol stands for one size.
class ArgumentCheck {
 public:
  explicit ArgumentCheck(const std::vector<ParameterSpec>& parameters) : parameters_(parameters) {}

  absl::Status CheckCount(size_t count) const {
    if (count == parameters_.size()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("a program is called with one argument for each parameter: ", count, " for ", parameters_.size()));
  }

  absl::Status Check(size_t at, DType dtype, const Shape& shape) {
    const ParameterSpec& parameter = parameters_[at];
    bool fits = dtype == parameter.dtype && shape.size() == parameter.shape.size();
    for (size_t axis = 0; fits && axis < shape.size(); ++axis) {
      const int64_t wanted = parameter.shape[axis];
      if (!IsSymbol(wanted)) {
        fits = MayBeEqual(shape[axis], wanted);
        continue;
      }
      const auto [bound, is_new] = sizes_.try_emplace(wanted, shape[axis]);
      if (is_new || MayBeEqual(bound->second, shape[axis])) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "the size ", SymbolName(wanted), " is ", ShapeToString({bound->second}), " and ",
          ShapeToString({shape[axis]}), " in one call: argument ", parameter.name, " is ", TypeText(dtype, shape)));
    }
    if (fits) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("an argument does not have its parameter's type: ", parameter.name,
                                                   " is ", TypeText(dtype, shape), ", wanted ",
                                                   TypeText(parameter.dtype, parameter.shape)));
  }

 private:
  const std::vector<ParameterSpec>& parameters_;
  absl::flat_hash_map<int64_t, int64_t> sizes_;
};

}  // namespace

absl::StatusOr<CompiledFunction> CompiledFunction::Compile(Client& client, std::vector<ParameterSpec> parameters,
                                                           TracedFunction function, const ExecuteOptions& options) {
  CompiledFunction compiled;
  std::vector<Tensor> tensors;
  for (ParameterSpec& parameter : parameters) {
    if (parameter.name.empty()) parameter.name = absl::StrCat("x", tensors.size());
    tensors.push_back(Tensor::Parameter(parameter.name, parameter.dtype, parameter.shape));
    if (!tensors.back().ok()) return tensors.back().status();
  }
  const std::vector<Tensor> results = function(tensors);
  if (results.empty()) return absl::InvalidArgumentError("a function that is compiled returns a tensor at least");
  absl::StatusOr<TracedGraph> traced = Trace(results, tensors);
  if (!traced.ok()) return traced.status();
  absl::StatusOr<v1::CompileResponse> response = client.Compile(traced->graph, options);
  if (!response.ok()) return response.status();
  for (const Tensor& result : results) compiled.results_.push_back({result.dtype(), result.shape()});
  compiled.client_ = &client;
  compiled.function_ = std::move(function);
  compiled.parameters_ = std::move(parameters);
  compiled.captured_ = std::move(traced->arguments);
  compiled.fingerprint_ = response->program().fingerprint();
  compiled.options_ = options;
  return compiled;
}

absl::StatusOr<std::vector<HostTensor>> CompiledFunction::Execute(std::vector<HostTensor> arguments) const {
  ArgumentCheck check(parameters_);
  absl::Status status = check.CheckCount(arguments.size());
  for (size_t i = 0; status.ok() && i < arguments.size(); ++i) {
    status = check.Check(i, arguments[i].dtype(), arguments[i].shape());
  }
  if (!status.ok()) return status;
  arguments.insert(arguments.end(), captured_.begin(), captured_.end());
  absl::StatusOr<ExecuteResult> result = client_->Execute(fingerprint_, arguments, options_);
  if (!result.ok()) return result.status();
  if (result->outputs.size() != results_.size()) {
    return absl::InternalError(
        absl::StrCat("the server sent another number of results: ", result->outputs.size(), " for ", results_.size()));
  }
  return std::move(result->outputs);
}

absl::StatusOr<ExecuteAnswer> CompiledFunction::Execute(std::vector<Argument> arguments,
                                                        std::vector<ResultPlan> results,
                                                        const std::string& session) const {
  ArgumentCheck check(parameters_);
  absl::Status status = check.CheckCount(arguments.size());
  for (size_t i = 0; status.ok() && i < arguments.size(); ++i) {
    const HostTensor* tensor = arguments[i].tensor();
    if (tensor != nullptr) status = check.Check(i, tensor->dtype(), tensor->shape());
  }
  if (!status.ok()) return status;
  return client_->Execute(CallWith(std::move(arguments), std::move(results), session));
}

ExecuteCall CompiledFunction::CallWith(std::vector<Argument> arguments, std::vector<ResultPlan> results,
                                       const std::string& session) const {
  arguments.insert(arguments.end(), captured_.begin(), captured_.end());
  ExecuteCall call;
  call.fingerprint = fingerprint_;
  call.arguments = std::move(arguments);
  call.results = std::move(results);
  call.session = session;
  call.options = options_;
  return call;
}

std::vector<Tensor> CompiledFunction::Inline(absl::Span<const Tensor> arguments) const {
  ArgumentCheck check(parameters_);
  absl::Status status = check.CheckCount(arguments.size());
  for (size_t i = 0; status.ok() && i < arguments.size(); ++i) {
    status = arguments[i].ok() ? check.Check(i, arguments[i].dtype(), arguments[i].shape()) : arguments[i].status();
  }
  if (!status.ok()) return std::vector<Tensor>(results_.size(), Tensor::Failed(status));
  std::vector<Tensor> results = function_(arguments);
  if (results.size() == results_.size()) return results;
  status = absl::InvalidArgumentError(absl::StrCat("a function that is compiled returns as many tensors at each call: ",
                                                   results.size(), ", and before ", results_.size()));
  return std::vector<Tensor>(results_.size(), Tensor::Failed(status));
}

}  // namespace tensord::client
