#include "tests/bench/suite/graph_work.h"

#include <algorithm>
#include <string>

#include "engine/ops/semiring.h"
#include "engine/tensor/shape.h"
#include "tests/bench/suite/family_flops.h"

namespace tensord {
namespace {

bool CostsMore(CoreOp op) {
  switch (op) {
    case CoreOp::kExp:
    case CoreOp::kLog:
    case CoreOp::kSin:
    case CoreOp::kCos:
    case CoreOp::kTanh:
    case CoreOp::kSqrt:
    case CoreOp::kRsqrt:
    case CoreOp::kExpm1:
    case CoreOp::kLog1p:
    case CoreOp::kLogistic:
    case CoreOp::kErf:
    case CoreOp::kSinh:
    case CoreOp::kCosh:
    case CoreOp::kAsin:
    case CoreOp::kAcos:
    case CoreOp::kAtan:
    case CoreOp::kAsinh:
    case CoreOp::kAcosh:
    case CoreOp::kAtanh:
    case CoreOp::kLog2:
    case CoreOp::kLog10:
    case CoreOp::kExp2:
    case CoreOp::kPow:
    case CoreOp::kDivide:
      return true;
    default:
      return false;
  }
}

bool IsArithmetic(CoreOp op) {
  switch (op) {
    case CoreOp::kAdd:
    case CoreOp::kSubtract:
    case CoreOp::kMultiply:
    case CoreOp::kMaximum:
    case CoreOp::kMinimum:
    case CoreOp::kReduce:
      return true;
    default:
      return false;
  }
}

MatrixSizes SizesOf(const Graph& graph, const Node& node) {
  const ConcreteType lhs = ToConcreteType(graph.type(node.operands[0]));
  const ConcreteType rhs = ToConcreteType(graph.type(node.operands[1]));
  const auto product = [](const ConcreteType& type, const std::vector<int64_t>& axes) {
    int64_t size = 1;
    for (int64_t axis : axes) size *= type.shape[static_cast<size_t>(axis)];
    return size;
  };
  MatrixSizes sizes{.dtype = lhs.dtype};
  sizes.batch = product(lhs, node.attrs.Ints("lhs_batching_dimensions"));
  sizes.k = product(lhs, node.attrs.Ints("lhs_contracting_dimensions"));
  sizes.m = lhs.num_elements() / sizes.k / sizes.batch;
  sizes.n = rhs.num_elements() / sizes.k / sizes.batch;
  return sizes;
}

}  // namespace

GraphWork WorkOf(const Graph& graph) {
  GraphWork work;
  std::vector<bool> varies(static_cast<size_t>(graph.num_values()), false);
  for (int32_t i = 0; i < static_cast<int32_t>(graph.inputs().size()); ++i) varies[static_cast<size_t>(i)] = true;
  for (const Node& node : graph.nodes()) {
    const bool depends = std::any_of(node.operands.begin(), node.operands.end(),
                                     [&](ValueId v) { return varies[static_cast<size_t>(v.index)]; });
    if (!depends) continue;
    for (int32_t r = 0; r < node.num_results; ++r) varies[static_cast<size_t>(node.first_result.index + r)] = true;
    if (node.op->family != absl::string_view("core")) {
      work.arithmetic_f64 += FamilyFlops(graph, node);
      continue;
    }
    const CoreOp op = static_cast<CoreOp>(node.op->index);
    if (op == CoreOp::kDotGeneral) {
      const MatrixSizes sizes = SizesOf(graph, node);
      if (AlgebraOf(node.attrs) == Algebra::kStandard) {
        work.products.push_back(sizes);
      } else {
        work.semiring_products[{AlgebraOf(node.attrs), sizes.dtype}] +=
            static_cast<double>(sizes.batch * sizes.m * sizes.n) * static_cast<double>(sizes.k);
      }
      continue;
    }
    const ValueId counted = op == CoreOp::kReduce ? node.operands[0] : node.first_result;
    const ConcreteType type = ToConcreteType(graph.type(counted));
    const double elements = static_cast<double>(type.num_elements());
    const bool is_f32 = type.dtype == DType::kF32, is_f64 = type.dtype == DType::kF64;
    if (CostsMore(op) && (is_f32 || is_f64)) {
      work.math[{op, type.dtype}] += elements;
    } else if (IsArithmetic(op)) {
      // A product of complex numbers is four products and two sums.
      const double each = is_f32 || is_f64 || op != CoreOp::kMultiply ? 1 : 6;
      (is_f32 ? work.arithmetic_f32 : work.arithmetic_f64) += each * elements;
    }
  }
  return work;
}

}  // namespace tensord
