#include "tests/testlib/graphs/derivative_check.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/autodiff/differentiate.h"
#include "engine/base/status_macros.h"
#include "engine/ir/verifier.h"
#include "engine/reference/evaluator.h"

namespace tensord {
namespace {

// Of central differences: their error is about step^2 and 1e-16 / step.
constexpr double kStep = 3e-6;

bool IsSmooth(const Literal& literal) { return literal.dtype() == DType::kF64 || literal.dtype() == DType::kC128; }

// The numbers of F64, and the parts of C128.
absl::Span<const double> PartsOf(const Literal& literal) {
  return {reinterpret_cast<const double*>(literal.bytes().data()), literal.bytes().size() / sizeof(double)};
}
absl::Span<double> MutablePartsOf(Literal* literal) {
  return {reinterpret_cast<double*>(literal->mutable_data()), literal->bytes().size() / sizeof(double)};
}

std::vector<Literal> SmoothOnes(const std::vector<Literal>& literals) {
  std::vector<Literal> smooth;
  for (const Literal& literal : literals) {
    if (IsSmooth(literal)) smooth.push_back(literal);
  }
  return smooth;
}

std::vector<Literal> RandomLike(std::vector<Literal> literals, std::mt19937_64* random) {
  std::uniform_real_distribution<double> number(-1, 1);
  for (Literal& literal : literals) {
    for (double& part : MutablePartsOf(&literal)) part = number(*random);
  }
  return literals;
}

absl::StatusOr<std::vector<Literal>> Evaluate(Graph graph, const std::vector<Literal>& arguments) {
  ASSIGN_OR_RETURN(const std::vector<ShapeGuard> guards, InferTypes(&graph));
  return EvaluateReference(graph, guards, arguments);
}

absl::StatusOr<std::vector<Literal>> EvaluateDerivative(const Graph& graph, DerivativeMode mode,
                                                        std::vector<Literal> arguments,
                                                        const std::vector<Literal>& added) {
  ASSIGN_OR_RETURN(Graph derivative, Differentiate(graph, {.mode = mode, .wrt = {}}));
  arguments.insert(arguments.end(), added.begin(), added.end());
  return Evaluate(std::move(derivative), arguments);
}

std::vector<Literal> Moved(std::vector<Literal> arguments, const std::vector<Literal>& tangents, double step) {
  size_t next = 0;
  for (Literal& argument : arguments) {
    if (!IsSmooth(argument)) continue;
    const absl::Span<const double> direction = PartsOf(tangents[next++]);
    const absl::Span<double> parts = MutablePartsOf(&argument);
    for (size_t i = 0; i < parts.size(); ++i) parts[i] += step * direction[i];
  }
  return arguments;
}

double Relative(double a, double b, double scale = 0) {
  const double error = std::abs(a - b) / std::max({1.0, std::abs(a), std::abs(b), scale});
  return std::isnan(error) ? HUGE_VAL : error;
}

// The product Re(conj(a) b), and the sum of its terms' sizes.
std::pair<double, double> Product(const std::vector<Literal>& a, const std::vector<Literal>& b) {
  double sum = 0, size = 0;
  for (size_t k = 0; k < a.size(); ++k) {
    const absl::Span<const double> x = PartsOf(a[k]), y = PartsOf(b[k]);
    for (size_t i = 0; i < x.size(); ++i) {
      sum += x[i] * y[i];
      size += std::abs(x[i] * y[i]);
    }
  }
  return {sum, size};
}

}  // namespace

absl::StatusOr<DerivativeErrors> MeasureDerivatives(const Graph& graph, const std::vector<Literal>& arguments,
                                                    std::mt19937_64* random) {
  const std::vector<Literal> tangents = RandomLike(SmoothOnes(arguments), random);
  ASSIGN_OR_RETURN(const std::vector<Literal> jvp,
                   EvaluateDerivative(graph, DerivativeMode::kJvp, arguments, tangents));
  ASSIGN_OR_RETURN(const std::vector<Literal> above, Evaluate(graph, Moved(arguments, tangents, kStep)));
  ASSIGN_OR_RETURN(const std::vector<Literal> below, Evaluate(graph, Moved(arguments, tangents, -kStep)));
  const std::vector<Literal> high = SmoothOnes(above), low = SmoothOnes(below);
  DerivativeErrors errors;
  for (size_t k = 0; k < jvp.size(); ++k) {
    for (size_t i = 0; i < PartsOf(jvp[k]).size(); ++i) {
      const double difference = (PartsOf(high[k])[i] - PartsOf(low[k])[i]) / (2 * kStep);
      errors.jvp = std::max(errors.jvp, Relative(PartsOf(jvp[k])[i], difference));
    }
  }
  const std::vector<Literal> cotangents = RandomLike(jvp, random);
  ASSIGN_OR_RETURN(const std::vector<Literal> vjp,
                   EvaluateDerivative(graph, DerivativeMode::kVjp, arguments, cotangents));
  const auto [forward, forward_size] = Product(cotangents, jvp);
  const auto [backward, backward_size] = Product(vjp, tangents);
  errors.adjoint = Relative(forward, backward, std::max(forward_size, backward_size));
  return errors;
}

}  // namespace tensord
