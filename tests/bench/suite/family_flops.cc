#include "tests/bench/suite/family_flops.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "engine/tensor/shape.h"

namespace tensord {
namespace {

double MatrixFlops(absl::string_view op, double m, double n, double right_sides) {
  const double k = std::min(m, n);
  if (op == "Cholesky") return n * n * n / 3;
  if (op == "Lu") return 2 * m * n * k - (m + n) * k * k + 2. / 3 * k * k * k;
  // R, and as much again for Q.
  if (op == "Qr") return 2 * (2 * m * n * k - 2. / 3 * k * k * k);
  // To two diagonals, the vectors of these by dividing, and back.
  if (op == "Svd") return 22 * k * k * std::max(m, n);
  if (op == "Eigh") return 9 * n * n * n;
  if (op == "Solve") return 2. / 3 * n * n * n + 2 * n * n * right_sides;
  if (op == "TriangularSolve") return n * n * right_sides;
  return 0;
}

double TransformFlops(const ConcreteType& operand, const ConcreteType& result, const Attributes& attrs) {
  const double elements = static_cast<double>(std::max(operand.num_elements(), result.num_elements()));
  const bool is_real = (operand.dtype == DType::kF64 || operand.dtype == DType::kF32) !=
                       (result.dtype == DType::kF64 || result.dtype == DType::kF32);
  double flops = 0;
  for (const int64_t axis : attrs.Ints("axes")) {
    const size_t at = static_cast<size_t>(axis);
    flops += 5 * elements * std::log2(static_cast<double>(std::max(operand.shape[at], result.shape[at])));
  }
  return is_real ? flops / 2 : flops;
}

}  // namespace

double FamilyFlops(const Graph& graph, const Node& node) {
  if (node.operands.empty()) return 0;
  const ConcreteType operand = ToConcreteType(graph.type(node.operands[0]));
  if (node.op->family == absl::string_view("fft")) {
    return TransformFlops(operand, ToConcreteType(graph.type(node.first_result)), node.attrs);
  }
  if (node.op->family != absl::string_view("linalg") || operand.num_elements() == 0) return 0;
  const double m = static_cast<double>(operand.shape[0]), n = static_cast<double>(operand.shape[1]);
  const double batch = static_cast<double>(operand.num_elements()) / (m * n);
  const double right_sides =
      node.operands.size() > 1 ? static_cast<double>(ToConcreteType(graph.type(node.operands[1])).shape[1]) : 0;
  absl::string_view op = node.op->name;
  absl::ConsumePrefix(&op, "tensord.linalg.v1.");
  // A product of complex numbers is four, a sum two.
  const double parts = operand.dtype == DType::kC64 || operand.dtype == DType::kC128 ? 4 : 1;
  return parts * batch * MatrixFlops(op, m, n, right_sides);
}

}  // namespace tensord
