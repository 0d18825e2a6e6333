#include "engine/families/linalg/matrix_terms.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/families/linalg/linalg_ops.h"
#include "engine/families/linalg/matrix_types.h"

namespace tensord {

bool IsAtMost(const Dim& size, const Dim& most) {
  return size == most || (size.is_static() && most.is_static() && size.size.constant() <= most.size.constant());
}

ValueId MatrixTerms::Dot(ValueId a, ValueId b) {
  std::vector<int64_t> batch = AllAxes(static_cast<size_t>(graph_.type(a).rank()));
  batch.erase(batch.begin(), batch.begin() + std::min<ptrdiff_t>(2, static_cast<ptrdiff_t>(batch.size())));
  Attributes attrs(Def(CoreOp::kDotGeneral).attrs);
  attrs.Set("lhs_contracting_dimensions", std::vector<int64_t>{1});
  attrs.Set("rhs_contracting_dimensions", std::vector<int64_t>{0});
  attrs.Set("lhs_batching_dimensions", batch);
  attrs.Set("rhs_batching_dimensions", batch);
  return graph_.Add(Def(CoreOp::kDotGeneral), std::move(attrs), {a, b});
}

ValueId MatrixTerms::Turned(ValueId a) {
  std::vector<int64_t> axes = AllAxes(static_cast<size_t>(graph_.type(a).rank()));
  if (axes.size() >= 2) std::swap(axes[0], axes[1]);
  return e.Transpose(a, std::move(axes));
}

ValueId MatrixTerms::Real(ValueId a) {
  return kComplexes.Contains(graph_.type(a).dtype) ? e.Unary(CoreOp::kReal, a) : a;
}

ValueId MatrixTerms::Triangle(CoreOp op, ValueId a, int64_t diagonal) {
  Attributes attrs(Def(op).attrs);
  attrs.Set("diagonal", diagonal);
  return graph_.Add(Def(op), std::move(attrs), {a});
}

ValueId MatrixTerms::Hermitian(ValueId a) {
  const ValueId half = LowerHalf(a);
  return e.Add(half, Adjoint(half));
}

ValueId MatrixTerms::AntiHermitian(ValueId a) {
  const ValueId half = LowerHalf(a);
  return e.Sub(half, Adjoint(half));
}

ValueId MatrixTerms::Diagonal(ValueId a) {
  Attributes attrs(Def(CoreOp::kExtractDiag).attrs);
  attrs.Set("axis_a", int64_t{0});
  attrs.Set("axis_b", int64_t{1});
  return graph_.Add(Def(CoreOp::kExtractDiag), std::move(attrs), {a});
}

ValueId MatrixTerms::Embedded(ValueId diagonal) {
  Attributes attrs(Def(CoreOp::kEmbedDiag).attrs);
  attrs.Set("axis_a", int64_t{0});
  attrs.Set("axis_b", int64_t{1});
  return graph_.Add(Def(CoreOp::kEmbedDiag), std::move(attrs), {diagonal});
}

ValueId MatrixTerms::Block(ValueId a, const TensorType& type, const Dim& rows, const Dim& columns) {
  const TensorType block = MatricesLike(type, type.dtype, rows, columns);
  return block.shape == type.shape ? a : e.Head(a, block.shape);
}

ValueId MatrixTerms::Window(ValueId a, const TensorType& type, std::pair<int64_t, int64_t> rows,
                            std::pair<int64_t, int64_t> columns) {
  std::vector<int64_t> starts(type.shape.size(), 0), limits;
  for (const Dim& dim : type.shape) limits.push_back(dim.size.constant());
  const std::vector<int64_t> whole = limits;
  std::tie(starts[0], limits[0]) = rows;
  std::tie(starts[1], limits[1]) = columns;
  if (limits == whole && rows.first == 0 && columns.first == 0) return a;
  return e.Slice(a, std::move(starts), std::move(limits), {});
}

ValueId MatrixTerms::Joined(int64_t axis, ValueId first, ValueId second) {
  const OpDef& op = Def(CoreOp::kConcatenate);
  Attributes attrs(op.attrs);
  attrs.Set("dimension", axis);
  return graph_.Add(op, std::move(attrs), {first, second});
}

ValueId MatrixTerms::Solve(ValueId a, ValueId b) { return graph_.Add(Def(LinalgOp::kSolve), {a, b}); }

ValueId MatrixTerms::TriangularSolve(ValueId a, ValueId b, bool left_side, bool lower, bool unit_diagonal,
                                     TransposeA transpose) {
  const OpDef& op = Def(LinalgOp::kTriangularSolve);
  Attributes attrs(op.attrs);
  attrs.Set("left_side", left_side);
  attrs.Set("lower", lower);
  attrs.Set("unit_diagonal", unit_diagonal);
  attrs.Set("transpose_a", static_cast<int64_t>(transpose));
  return graph_.Add(op, std::move(attrs), {a, b});
}

}  // namespace tensord
