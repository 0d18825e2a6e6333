#include "backends/cuda/kernels/dot_plan.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace tensord::cuda {
namespace {

bool IsComplexNumber(DType dtype) { return dtype == DType::kC64 || dtype == DType::kC128; }

// Returns the distance between neighbours of a role's flat index; nothing where that is no constant.
std::optional<int64_t> StrideOf(DotSide side, const DotAxisList& axes) {
  const DotAxisList merged = MergeOn(side, axes);
  if (merged.size() > 1) return std::nullopt;
  return merged[0].strides[side];
}

// The two sizes of a matrix with the distances of neighbours, the rows first, and the same of its batch.
struct Lines {
  int64_t rows, row_stride, columns, column_stride, batch, batch_stride;
};

std::optional<Lines> LinesOf(DotSide side, const DotSpace& space, DotRole rows, DotRole columns) {
  const std::optional<int64_t> row = StrideOf(side, space.roles[rows]);
  const std::optional<int64_t> column = StrideOf(side, space.roles[columns]);
  const std::optional<int64_t> batch = StrideOf(side, space.roles[kBatch]);
  if (!row.has_value() || !column.has_value() || !batch.has_value()) return std::nullopt;
  return Lines{space.Size(rows), *row, space.Size(columns), *column, space.Size(kBatch), *batch};
}

// Returns the matrix by columns; nothing if its rows are not neighbours.
std::optional<BatchedMatrix> ByColumns(const Lines& lines) {
  if (lines.rows > 1 && lines.row_stride != 1) return std::nullopt;
  const int64_t leading = lines.columns > 1 ? lines.column_stride : lines.rows;
  if (leading < lines.rows) return std::nullopt;
  return BatchedMatrix{lines.rows, lines.columns, leading, lines.batch > 1 ? lines.batch_stride : 0};
}

Lines TurnedLines(Lines lines) {
  std::swap(lines.rows, lines.columns);
  std::swap(lines.row_stride, lines.column_stride);
  return lines;
}

int64_t LeastStride(DotSide side, const DotAxisList& axes) {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const DotAxis& axis : axes) {
    if (axis.size > 1) least = std::min(least, axis.strides[side]);
  }
  return least;
}

// The axes of roles, one after the other, with their strides on a side.
StridedCopy DotCopyOf(DotSide side, const DotSpace& space, std::initializer_list<DotRole> roles) {
  StridedCopy copy;
  for (const DotRole role : roles) {
    for (const DotAxis& axis : space.roles[role]) copy.axes.push_back({axis.size, axis.strides[side]});
  }
  return copy;
}

// Plans a factor whose rows and columns have these roles.
DotFactor FactorOf(DotSide side, const DotSpace& space, DotRole rows, DotRole columns, const DotTypes& types,
                   bool conjugates) {
  const bool is_conjugated = conjugates && IsComplexNumber(types.operand);
  DotFactor factor{.side = side, .is_conjugated = is_conjugated};
  if (types.operand == types.factor) {
    if (const std::optional<Lines> lines = LinesOf(side, space, rows, columns); lines.has_value()) {
      std::optional<BatchedMatrix> matrix = is_conjugated ? std::nullopt : ByColumns(*lines);
      if (!matrix.has_value()) {
        matrix = ByColumns(TurnedLines(*lines));
        factor.is_transposed = matrix.has_value();
      }
      if (matrix.has_value()) {
        factor.matrix = *matrix;
        return factor;
      }
    }
  }
  // A copy reads and writes in order where it keeps the fastest axis.
  factor.is_transposed =
      is_conjugated || LeastStride(side, space.roles[columns]) < LeastStride(side, space.roles[rows]);
  const DotRole inner = factor.is_transposed ? columns : rows, outer = factor.is_transposed ? rows : columns;
  factor.pack = DotCopyOf(side, space, {inner, outer, kBatch});
  factor.pack->from = types.operand;
  factor.pack->to = types.factor;
  const int64_t inner_size = space.Size(inner), outer_size = space.Size(outer);
  factor.matrix = {inner_size, outer_size, inner_size, space.Size(kBatch) > 1 ? inner_size * outer_size : 0};
  return factor;
}

int64_t PackedElements(const DotPlan& plan) {
  int64_t elements = 0;
  for (const DotFactor* factor : {&plan.left, &plan.right}) {
    if (factor->pack.has_value()) elements += factor->pack->num_elements();
  }
  return plan.unpack.has_value() ? elements + plan.unpack->num_elements() : elements;
}

DotPlan PlanInOrder(const DotSpace& space, const DotTypes& types, bool conjugates_lhs, bool conjugates_rhs) {
  const std::optional<Lines> result = LinesOf(kDotResult, space, kRows, kColumns);
  std::optional<BatchedMatrix> matrix = result.has_value() ? ByColumns(*result) : std::nullopt;
  bool swaps = false;
  if (!matrix.has_value() && result.has_value()) {
    matrix = ByColumns(TurnedLines(*result));
    swaps = matrix.has_value();
  }
  const DotRole rows = swaps ? kColumns : kRows, columns = swaps ? kRows : kColumns;
  DotPlan plan{.m = space.Size(rows), .n = space.Size(columns), .k = space.Size(kSummed), .batch = space.Size(kBatch)};
  const DotSide left = swaps ? kRhs : kLhs, right = swaps ? kLhs : kRhs;
  plan.left = FactorOf(left, space, rows, kSummed, types, swaps ? conjugates_rhs : conjugates_lhs);
  plan.right = FactorOf(right, space, kSummed, columns, types, swaps ? conjugates_lhs : conjugates_rhs);
  if (matrix.has_value()) {
    plan.result = *matrix;
    return plan;
  }
  plan.result = {plan.m, plan.n, plan.m, plan.batch > 1 ? plan.m * plan.n : 0};
  plan.unpack = DotCopyOf(kDotResult, space, {rows, columns, kBatch});
  plan.unpack->gathers = false;
  plan.unpack->from = plan.unpack->to = types.result;
  return plan;
}

}  // namespace

std::optional<DotTypes> DotTypesOf(DType operand, DType result) {
  const bool is_half = operand == DType::kF16 || operand == DType::kBF16;
  const bool is_real = is_half || operand == DType::kF32 || operand == DType::kF64;
  if (!is_real && !IsComplexNumber(operand)) return std::nullopt;
  if (operand == result || (is_half && result == DType::kF32)) return DotTypes{operand, operand, result};
  return DotTypes{operand, result, result};
}

DotPlan PlanDot(DotSpace space, const DotTypes& types, bool conjugates_lhs, bool conjugates_rhs) {
  space.roles[kSummed] = SortedBy(kLhs, space.roles[kSummed]);
  DotPlan by_lhs = PlanInOrder(space, types, conjugates_lhs, conjugates_rhs);
  space.roles[kSummed] = SortedBy(kRhs, space.roles[kSummed]);
  DotPlan by_rhs = PlanInOrder(space, types, conjugates_lhs, conjugates_rhs);
  return PackedElements(by_rhs) < PackedElements(by_lhs) ? by_rhs : by_lhs;
}

}  // namespace tensord::cuda
