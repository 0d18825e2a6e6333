// Functions of lazy tensors, compiled once and called with values:
//
//   const int64_t n = Symbol("n");
//   auto layer = Compile(*client, [](const Tensor& x, const Tensor& w) { return Tanh(MatMul(x, w)); },
//                        Spec<float>({n, 4}, "x"), Spec<float>({4, 8}, "w"));
//   if (!layer.ok()) return layer.status();
//   absl::StatusOr<HostTensor> y = (*layer)(x, w);            // computes: x and w are HostTensors
//   Tensor z = (*layer)(Tensor::FromHost(x), weights) * 2.0;  // records: becomes part of another graph
#ifndef TENSORD_PROGRAM_H_
#define TENSORD_PROGRAM_H_

#include <array>
#include <concepts>
#include <cstddef>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tensord/client.h"
#include "tensord/execute_answer.h"
#include "tensord/execute_call.h"
#include "tensord/host_tensor.h"
#include "tensord/tensor.h"

namespace tensord::client {

// Type of a parameter: dtype, shape, of whose sizes some may be symbols, and a name for people. Without a name it is
// x0, x1, … by its place. An example value is a type too.
struct ParameterSpec {
  ParameterSpec(DType parameter_dtype, Shape parameter_shape, std::string parameter_name = "")
      : dtype(parameter_dtype), shape(std::move(parameter_shape)), name(std::move(parameter_name)) {}
  ParameterSpec(const HostTensor& example)  // NOLINT(google-explicit-constructor): Compile(client, f, x)
      : dtype(example.dtype()), shape(example.shape()) {}

  DType dtype;
  Shape shape;
  std::string name;
};

// Spec<float>({n, 4}, "x"), where the C++ type says the dtype.
template <typename T>
ParameterSpec Spec(Shape shape, std::string name = "") {
  return {DTypeOf<T>::kValue, std::move(shape), std::move(name)};
}

using TracedFunction = std::function<std::vector<Tensor>(absl::Span<const Tensor>)>;

// A compiled function whose arguments and results are lists. Program gives it the function's own types. A value; a
// moved-from one is still the same function. Thread-compatible. The client must outlive it, and so must all that the
// function refers to.
class CompiledFunction {
 public:
  CompiledFunction(const CompiledFunction&) = default;
  CompiledFunction& operator=(const CompiledFunction&) = default;

  // Calls `function` once, with parameters, and compiles what it returns. INVALID_ARGUMENT if a result failed, or two
  // parameters have one name.
  static absl::StatusOr<CompiledFunction> Compile(Client& client, std::vector<ParameterSpec> parameters,
                                                  TracedFunction function, const ExecuteOptions& options);

  // Names the program on the server, for all clients.
  const std::string& fingerprint() const { return fingerprint_; }
  const std::vector<ParameterSpec>& parameters() const { return parameters_; }
  // Types of the results; a size that is an expression of symbols is kRunTimeSize.
  const std::vector<ResultType>& results() const { return results_; }

  // Computes the results. INVALID_ARGUMENT, without a call, if the arguments are not of the parameters' types.
  absl::StatusOr<std::vector<HostTensor>> Execute(std::vector<HostTensor> arguments) const;
  // Computes with resident tensors among the arguments, and plans for results (see ExecuteCall).
  absl::StatusOr<ExecuteAnswer> Execute(std::vector<Argument> arguments, std::vector<ResultPlan> results,
                                        const std::string& session = "") const;
  // Returns the call that Execute makes, for a pipeline or with other options.
  ExecuteCall CallWith(std::vector<Argument> arguments, std::vector<ResultPlan> results = {},
                       const std::string& session = "") const;
  // Records the function again, for other tensors; they must be of the parameters' types. Each result is one that
  // failed, with INVALID_ARGUMENT, if they are not, or if the function returns another number of tensors than before.
  std::vector<Tensor> Inline(absl::Span<const Tensor> arguments) const;

 private:
  CompiledFunction() = default;

  Client* client_ = nullptr;
  TracedFunction function_;
  std::vector<ParameterSpec> parameters_;
  std::vector<ResultType> results_;
  std::vector<HostTensor> captured_;  // inputs that the function brought along
  std::string fingerprint_;
  ExecuteOptions options_;
};

// How results of a traced function become lists and back: a function returns a Tensor, a std::array or a std::vector of
// them.
template <typename Result>
struct ResultList;
template <>
struct ResultList<Tensor> {
  using Host = HostTensor;
  static std::vector<Tensor> ToList(Tensor result) { return {std::move(result)}; }
  template <typename T>
  static T FromList(std::vector<T> list) {
    return std::move(list.front());
  }
};
template <>
struct ResultList<std::vector<Tensor>> {
  using Host = std::vector<HostTensor>;
  static std::vector<Tensor> ToList(std::vector<Tensor> result) { return result; }
  template <typename T>
  static std::vector<T> FromList(std::vector<T> list) {
    return list;
  }
};
template <size_t N>
struct ResultList<std::array<Tensor, N>> {
  using Host = std::array<HostTensor, N>;
  static std::vector<Tensor> ToList(const std::array<Tensor, N>& result) { return {result.begin(), result.end()}; }
  template <typename T>
  static std::array<T, N> FromList(std::vector<T> list) {
    std::array<T, N> results;
    for (size_t i = 0; i < N; ++i) results[i] = std::move(list[i]);
    return results;
  }
};

// A compiled function that returns `Result`. Called with HostTensors it computes, called with Tensors it records itself
// into their graph; with handles see CompiledFunction::Execute.
template <typename Result>
class Program : public CompiledFunction {
 public:
  using HostResult = typename ResultList<Result>::Host;

  explicit Program(CompiledFunction function) : CompiledFunction(std::move(function)) {}

  template <std::convertible_to<HostTensor>... Arguments>
  absl::StatusOr<HostResult> operator()(const Arguments&... arguments) const {
    absl::StatusOr<std::vector<HostTensor>> values = Execute(std::vector<HostTensor>{arguments...});
    if (!values.ok()) return values.status();
    return ResultList<Result>::FromList(*std::move(values));
  }
  template <std::convertible_to<Tensor>... Arguments>
  requires(sizeof...(Arguments) > 0) Result operator()(const Arguments&... arguments) const {
    return ResultList<Result>::FromList(Inline(std::vector<Tensor>{arguments...}));
  }
};

// Compiles a function of as many lazy tensors as there are specs. It is called once here, and again whenever the
// program is called with Tensors.
template <typename F, std::convertible_to<ParameterSpec>... Specs>
auto Compile(Client& client, const ExecuteOptions& options, F function, const Specs&... specs) {
  using Result = std::remove_cvref_t<decltype(std::apply(function, std::array<Tensor, sizeof...(Specs)>()))>;
  TracedFunction traced = [function](absl::Span<const Tensor> arguments) {
    std::array<Tensor, sizeof...(Specs)> tensors;
    for (size_t i = 0; i < tensors.size(); ++i) tensors[i] = arguments[i];
    return ResultList<Result>::ToList(std::apply(function, tensors));
  };
  absl::StatusOr<CompiledFunction> compiled =
      CompiledFunction::Compile(client, {ParameterSpec(specs)...}, std::move(traced), options);
  if (!compiled.ok()) return absl::StatusOr<Program<Result>>(compiled.status());
  return absl::StatusOr<Program<Result>>(Program<Result>(*std::move(compiled)));
}
template <typename F, std::convertible_to<ParameterSpec>... Specs>
requires(!std::same_as<F, ExecuteOptions>) auto Compile(Client& client, F function, const Specs&... specs) {
  return Compile(client, ExecuteOptions(), std::move(function), specs...);
}

}  // namespace tensord::client

#endif  // TENSORD_PROGRAM_H_
