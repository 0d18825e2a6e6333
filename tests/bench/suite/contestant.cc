#include "tests/bench/suite/contestant.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <complex>
#include <cstring>
#include <random>
#include <type_traits>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/runtime/compile/compiler.h"

namespace tensord {
namespace {

constexpr size_t kNoArgument = static_cast<size_t>(-1);

double MillisecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

template <typename T>
void Fill(const Range& range, Literal* literal, std::mt19937_64* random) {
  std::uniform_real_distribution<double> distribution(range.low, range.high);
  for (T& value : literal->mutable_values<T>()) {
    if constexpr (ComplexElement<T>) {
      using Part = typename T::value_type;
      const Part real = static_cast<Part>(distribution(*random));
      value = {real, static_cast<Part>(distribution(*random))};
    } else if constexpr (std::is_same_v<T, Bool>) {
      value = Bool(distribution(*random) >= 1);
    } else if constexpr (std::is_integral_v<T>) {
      value = static_cast<T>(std::floor(distribution(*random)));
    } else if constexpr (sizeof(T) == 2) {
      value = T(static_cast<float>(distribution(*random)));
    } else {
      value = static_cast<T>(distribution(*random));
    }
  }
}

double Conjugate(double x) { return x; }
std::complex<double> Conjugate(std::complex<double> x) { return std::conj(x); }

// Makes matrices [n, n] or [n, n, batch]: (A + A^H)/2 + 2n I for random A; the sums of A's rows are at most n in each
// part.
template <typename T>
void MakeDefinite(Literal* literal) {
  const size_t n = static_cast<size_t>(literal->type().shape[0]);
  const absl::Span<T> values = literal->mutable_values<T>();
  for (size_t matrix = 0; matrix < values.size(); matrix += n * n) {
    T* a = values.data() + matrix;
    for (size_t j = 0; j < n; ++j) {
      for (size_t i = 0; i <= j; ++i) {
        T& above = a[i + n * j];
        T& below = a[j + n * i];
        below = (Conjugate(above) + below) / 2.0;
        above = Conjugate(below);
      }
      a[j + n * j] += 2 * static_cast<double>(n);
    }
  }
}

}  // namespace

std::vector<std::shared_ptr<const Literal>> MakeInputs(const Workload& workload, const Graph& graph) {
  std::mt19937_64 random(7);
  std::vector<std::shared_ptr<const Literal>> inputs;
  for (const GraphInput& input : graph.inputs()) {
    Range range = workload.range;
    for (const auto& [name, own] : workload.ranges) {
      if (name == input.name) range = own;
    }
    Literal literal = *Literal::Create(ToConcreteType(input.type));
    switch (input.type.dtype) {
      case DType::kF32:
        Fill<float>(range, &literal, &random);
        break;
      case DType::kF16:
        Fill<Float16>(range, &literal, &random);
        break;
      case DType::kBF16:
        Fill<BFloat16>(range, &literal, &random);
        break;
      case DType::kBool:
        Fill<Bool>(range, &literal, &random);
        break;
      case DType::kI32:
        Fill<int32_t>(range, &literal, &random);
        break;
      case DType::kI64:
        Fill<int64_t>(range, &literal, &random);
        break;
      case DType::kC64:
        Fill<std::complex<float>>(range, &literal, &random);
        break;
      case DType::kC128:
        Fill<std::complex<double>>(range, &literal, &random);
        break;
      default:
        Fill<double>(range, &literal, &random);
        break;
    }
    if (std::find(workload.definite.begin(), workload.definite.end(), input.name) != workload.definite.end()) {
      if (literal.dtype() == DType::kC128) {
        MakeDefinite<std::complex<double>>(&literal);
      } else {
        MakeDefinite<double>(&literal);
      }
    }
    inputs.push_back(std::make_shared<const Literal>(std::move(literal)));
  }
  return inputs;
}

absl::StatusOr<Contestant> Contestant::Create(Graph graph, std::vector<std::string> disabled_passes, Backend* backend,
                                              const std::vector<std::shared_ptr<const Literal>>& inputs,
                                              const std::vector<std::string>& state) {
  Contestant contestant;
  const auto start = std::chrono::steady_clock::now();
  const CompileSettings settings{.device = "cpu:0", .disabled_passes = std::move(disabled_passes)};
  const ProgramKey key = MakeProgramKey(graph, settings);
  ASSIGN_OR_RETURN(contestant.program_, Compile(std::move(graph), settings, key.fingerprint, backend));
  std::vector<ConcreteType> types;
  for (const std::shared_ptr<const Literal>& input : inputs) types.push_back(input->type());
  ASSIGN_OR_RETURN(contestant.bound_, contestant.program_->Bind(types));
  contestant.compile_ms_ = MillisecondsSince(start);
  for (const std::shared_ptr<const Literal>& input : inputs) RETURN_IF_ERROR(contestant.CopyArgument(*input, backend));

  const ExecProgram& program = contestant.program_->program();
  absl::InlinedVector<bool, 16> donated(program.inputs.size(), false);
  for (const auto& output : program.outputs) {
    const auto input = std::find_if(program.inputs.begin(), program.inputs.end(),
                                    [&](const auto& candidate) { return candidate.name == output.name; });
    const bool is_state = std::find(state.begin(), state.end(), output.name) != state.end();
    const size_t index = is_state ? static_cast<size_t>(input - program.inputs.begin()) : kNoArgument;
    contestant.successors_.push_back(index);
    if (is_state) donated[index] = true;
  }
  if (!state.empty()) {
    ASSIGN_OR_RETURN(contestant.plan_, contestant.bound_->PlanFor(donated));
  }
  return contestant;
}

absl::Status Contestant::CopyArgument(const Literal& input, Backend* backend) {
  const absl::string_view bytes = input.bytes();
  ASSIGN_OR_RETURN(std::shared_ptr<Buffer> buffer, backend->Allocate(static_cast<int64_t>(bytes.size())));
  if (!bytes.empty()) std::memcpy(buffer->address(), bytes.data(), bytes.size());
  arguments_.push_back(std::move(buffer));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<BufferPtr>> Contestant::Run() {
  ASSIGN_OR_RETURN(std::vector<BufferPtr> results, bound_->Run(arguments_, nullptr, {}, plan_.get()));
  for (size_t i = 0; i < results.size(); ++i) {
    if (successors_[i] != kNoArgument) arguments_[successors_[i]] = results[i];
  }
  return results;
}

absl::StatusOr<double> Contestant::RunTimed() {
  const auto start = std::chrono::steady_clock::now();
  RETURN_IF_ERROR(Run().status());
  return MillisecondsSince(start);
}

}  // namespace tensord
