#include "engine/families/linalg/matrix_compositions.h"

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/families/linalg/singular_cutoff.h"
#include "engine/ir/graph_builder.h"
#include "engine/ops/core_ops.h"

namespace tensord {
namespace {

using Ints = std::vector<int64_t>;

// 2, 3, …: the batch axes of an operand of a rank.
Ints BatchAxes(int64_t rank) {
  Ints axes;
  for (int64_t axis = 2; axis < rank; ++axis) axes.push_back(axis);
  return axes;
}

absl::StatusOr<ValueId> Call(const ExpandCall& call, CoreOp op, absl::Span<const ValueId> operands) {
  return call.graph.Add(Def(op), operands);
}

absl::StatusOr<ValueId> Reduce(const ExpandCall& call, ReduceKind kind, int64_t axis, ValueId operand) {
  Attributes attrs(Def(CoreOp::kReduce).attrs);
  attrs.Set("kind", static_cast<int64_t>(kind)).Set("dimensions", Ints{axis});
  return call.graph.Add(Def(CoreOp::kReduce), std::move(attrs), {operand});
}

absl::StatusOr<ValueId> Convert(const ExpandCall& call, DType dtype, ValueId operand) {
  if (call.graph.type(operand).dtype == dtype) return operand;
  Attributes attrs(Def(CoreOp::kConvert).attrs);
  attrs.Set("dtype", dtype);
  return call.graph.Add(Def(CoreOp::kConvert), std::move(attrs), {operand});
}

absl::StatusOr<ValueId> Scalar(const ExpandCall& call, DType dtype, double value) {
  Literal literal = VisitDType(dtype, [&]<typename T>(TypeTag<T>) {
    if constexpr (RealElement<T>) {
      return Literal::Scalar<T>(static_cast<T>(value));
    } else if constexpr (ComplexElement<T>) {
      return Literal::Scalar<T>(T(static_cast<typename T::value_type>(value)));
    } else {
      return Literal();
    }
  });
  Attributes attrs(Def(CoreOp::kConstant).attrs);
  attrs.Set("value", std::make_shared<const Literal>(std::move(literal)));
  return call.graph.Add(Def(CoreOp::kConstant), std::move(attrs), {});
}

// The operand's axes become these axes of a value of the shape of `like`, without the axis `dropped`.
absl::StatusOr<ValueId> Broadcast(const ExpandCall& call, ValueId operand, Ints axes, ValueId like,
                                  std::optional<int64_t> dropped = std::nullopt) {
  std::vector<DimExpr> shape;
  for (int64_t axis = 0; axis < call.graph.type(like).rank(); ++axis) {
    if (axis != dropped) shape.push_back(DimExpr::OperandAxis(1, axis));
  }
  Attributes attrs(Def(CoreOp::kBroadcastInDim).attrs);
  attrs.Set("shape", std::move(shape)).Set("broadcast_dimensions", std::move(axes));
  return call.graph.Add(Def(CoreOp::kBroadcastInDim), std::move(attrs), {operand, like});
}

// Returns the product of two batches of matrices, summed over one axis of each.
absl::StatusOr<ValueId> MatrixProduct(const ExpandCall& call, ValueId a, int64_t a_axis, ValueId b, int64_t b_axis) {
  const Ints batch = BatchAxes(call.graph.type(a).rank());
  Attributes attrs(Def(CoreOp::kDotGeneral).attrs);
  attrs.Set("lhs_contracting_dimensions", Ints{a_axis})
      .Set("rhs_contracting_dimensions", Ints{b_axis})
      .Set("lhs_batching_dimensions", batch)
      .Set("rhs_batching_dimensions", batch);
  return call.graph.Add(Def(CoreOp::kDotGeneral), std::move(attrs), {a, b});
}

// Row i of a batch of matrices times element i of a batch of real vectors.
absl::StatusOr<ValueId> ScaleRows(const ExpandCall& call, ValueId matrices, ValueId factors) {
  ASSIGN_OR_RETURN(const ValueId numbers, Convert(call, call.graph.type(matrices).dtype, factors));
  Ints axes = {0};
  for (int64_t axis : BatchAxes(call.graph.type(matrices).rank())) axes.push_back(axis);
  ASSIGN_OR_RETURN(const ValueId spread, Broadcast(call, numbers, std::move(axes), matrices));
  return Call(call, CoreOp::kMultiply, {matrices, spread});
}

// Returns the size of an axis, as a number of a real dtype.
absl::StatusOr<ValueId> SizeOfAxis(const ExpandCall& call, ValueId value, int64_t axis, DType dtype) {
  const Dim& dim = call.graph.type(value).shape[static_cast<size_t>(axis)];
  if (dim.is_static()) return Scalar(call, dtype, static_cast<double>(dim.size.constant()));
  Attributes attrs(Def(CoreOp::kShapeOf).attrs);
  attrs.Set("dimension", axis);
  ASSIGN_OR_RETURN(const ValueId size, call.graph.Add(Def(CoreOp::kShapeOf), std::move(attrs), {value}));
  return Convert(call, dtype, size);
}

// Returns the cutoff, as a part of the largest singular value.
absl::StatusOr<ValueId> RelativeCutoff(const ExpandCall& call, DType dtype) {
  const std::optional<double> given = call.attrs.MaybeReal("relative_cutoff");
  if (given.has_value()) return Scalar(call, dtype, *given);
  ASSIGN_OR_RETURN(const ValueId rows, SizeOfAxis(call, call.operands[0], 0, dtype));
  ASSIGN_OR_RETURN(const ValueId columns, SizeOfAxis(call, call.operands[0], 1, dtype));
  ASSIGN_OR_RETURN(const ValueId larger, Call(call, CoreOp::kMaximum, {rows, columns}));
  ASSIGN_OR_RETURN(const ValueId epsilon, Scalar(call, dtype, EpsilonOf(dtype)));
  return Call(call, CoreOp::kMultiply, {larger, epsilon});
}

// Compares the singular values with the cutoff: BOOL, of their shape.
absl::StatusOr<ValueId> AboveCutoff(const ExpandCall& call, ValueId values) {
  const TensorType type = call.graph.type(values);
  ASSIGN_OR_RETURN(const ValueId largest, Reduce(call, ReduceKind::kMax, 0, values));
  ASSIGN_OR_RETURN(const ValueId cutoff, RelativeCutoff(call, type.dtype));
  ASSIGN_OR_RETURN(const ValueId cutoffs, Broadcast(call, cutoff, {}, largest));
  ASSIGN_OR_RETURN(const ValueId limit, Call(call, CoreOp::kMultiply, {largest, cutoffs}));
  Ints axes;
  for (int64_t axis = 1; axis < type.rank(); ++axis) axes.push_back(axis);
  ASSIGN_OR_RETURN(const ValueId limits, Broadcast(call, limit, std::move(axes), values));
  Attributes attrs(Def(CoreOp::kCompare).attrs);
  attrs.Set("direction", static_cast<int64_t>(CompareDirection::kGt));
  return call.graph.Add(Def(CoreOp::kCompare), std::move(attrs), {values, limits});
}

// The inverses of the singular values above the cutoff, and 0 for the others; U and Vh conjugated, so that products
// over either axis are products with their adjoints. A matrix that is not finite has vectors of NaN.
struct Inverted {
  ValueId conj_u;
  ValueId conj_vh;
  ValueId inverses;
};

absl::StatusOr<Inverted> InvertSingularValues(const ExpandCall& call) {
  ASSIGN_OR_RETURN(const ExpandedResults svd,
                   call.graph.AddAll(Def(LinalgOp::kSvd), Attributes(Def(LinalgOp::kSvd).attrs), {call.operands[0]}));
  const ValueId values = svd[1];
  const DType dtype = call.graph.type(values).dtype;
  ASSIGN_OR_RETURN(const ValueId above, AboveCutoff(call, values));
  ASSIGN_OR_RETURN(const ValueId one, Scalar(call, dtype, 1));
  ASSIGN_OR_RETURN(const ValueId zero, Scalar(call, dtype, 0));
  ASSIGN_OR_RETURN(const ValueId ones, Broadcast(call, one, {}, values));
  ASSIGN_OR_RETURN(const ValueId zeros, Broadcast(call, zero, {}, values));
  ASSIGN_OR_RETURN(const ValueId inverses, Call(call, CoreOp::kDivide, {ones, values}));
  ASSIGN_OR_RETURN(const ValueId kept, Call(call, CoreOp::kSelect, {above, inverses, zeros}));
  ASSIGN_OR_RETURN(const ValueId conj_u, Call(call, CoreOp::kConj, {svd[0]}));
  ASSIGN_OR_RETURN(const ValueId conj_vh, Call(call, CoreOp::kConj, {svd[2]}));
  return Inverted{.conj_u = conj_u, .conj_vh = conj_vh, .inverses = kept};
}

struct Determined {
  ValueId determinant;
  ValueId sign;
  ValueId log;
};

// Returns the values with the sign of their parity: exact, for infinities too.
absl::StatusOr<ValueId> WithParity(const ExpandCall& call, ValueId parity, ValueId values) {
  ASSIGN_OR_RETURN(const ValueId real, Call(call, CoreOp::kReal, {parity}));
  ASSIGN_OR_RETURN(const ValueId zero, Scalar(call, call.graph.type(real).dtype, 0));
  ASSIGN_OR_RETURN(const ValueId zeros, Broadcast(call, zero, {}, real));
  Attributes attrs(Def(CoreOp::kCompare).attrs);
  attrs.Set("direction", static_cast<int64_t>(CompareDirection::kLt));
  ASSIGN_OR_RETURN(const ValueId is_odd, call.graph.Add(Def(CoreOp::kCompare), std::move(attrs), {real, zeros}));
  ASSIGN_OR_RETURN(const ValueId negated, Call(call, CoreOp::kNegate, {values}));
  return Call(call, CoreOp::kSelect, {is_odd, negated, values});
}

absl::StatusOr<Determined> Determine(const ExpandCall& call) {
  ASSIGN_OR_RETURN(const ExpandedResults balanced,
                   call.graph.AddAll(Def(LinalgOp::kEquilibrate), Attributes(Def(LinalgOp::kEquilibrate).attrs),
                                     {call.operands[0]}));
  ASSIGN_OR_RETURN(const ExpandedResults lu,
                   call.graph.AddAll(Def(LinalgOp::kLu), Attributes(Def(LinalgOp::kLu).attrs), {balanced[0]}));
  ASSIGN_OR_RETURN(const ExpandedResults of_u,
                   call.graph.AddAll(Def(LinalgOp::kTriangularDeterminant),
                                     Attributes(Def(LinalgOp::kTriangularDeterminant).attrs), {lu[2], balanced[1]}));
  ASSIGN_OR_RETURN(const ValueId determinant, WithParity(call, lu[3], of_u[0]));
  ASSIGN_OR_RETURN(const ValueId sign, WithParity(call, lu[3], of_u[1]));
  return Determined{.determinant = determinant, .sign = sign, .log = of_u[2]};
}

absl::Status CheckCutoff(const Attributes& attrs) {
  const std::optional<double> cutoff = attrs.MaybeReal("relative_cutoff");
  if (!cutoff.has_value() || (std::isfinite(*cutoff) && *cutoff >= 0)) return absl::OkStatus();
  return Refuse(Refusal::kAttributeInvalid,
                absl::StrCat("relative_cutoff must be a finite number that is not negative, and is ", *cutoff));
}

}  // namespace

absl::StatusOr<ResultTypes> InferInverse(InferContext& context) {
  RETURN_IF_ERROR(RequireSquareMatrices(context, context.operand(0), "the operand"));
  return ResultTypes{context.operand(0)};
}

absl::StatusOr<ExpandedResults> ExpandInverse(const ExpandCall& call) {
  const ValueId a = call.operands[0];
  ASSIGN_OR_RETURN(const ValueId one, Scalar(call, call.graph.type(a).dtype, 1));
  ASSIGN_OR_RETURN(const ValueId ones, Broadcast(call, one, {}, a, /*dropped=*/1));
  Attributes attrs(Def(CoreOp::kEmbedDiag).attrs);
  attrs.Set("axis_a", int64_t{0}).Set("axis_b", int64_t{1});
  ASSIGN_OR_RETURN(const ValueId identity, call.graph.Add(Def(CoreOp::kEmbedDiag), std::move(attrs), {ones}));
  ASSIGN_OR_RETURN(const ValueId inverse, call.graph.Add(Def(LinalgOp::kSolve), {a, identity}));
  return ExpandedResults{inverse};
}

absl::StatusOr<ResultTypes> InferDeterminant(InferContext& context) {
  const TensorType& a = context.operand(0);
  RETURN_IF_ERROR(RequireSquareMatrices(context, a, "the operand"));
  return ResultTypes{ScalarsLike(a, a.dtype)};
}

absl::StatusOr<ExpandedResults> ExpandDeterminant(const ExpandCall& call) {
  ASSIGN_OR_RETURN(const Determined determined, Determine(call));
  return ExpandedResults{determined.determinant};
}

absl::StatusOr<ResultTypes> InferSignLogDeterminant(InferContext& context) {
  const TensorType& a = context.operand(0);
  RETURN_IF_ERROR(RequireSquareMatrices(context, a, "the operand"));
  return ResultTypes{ScalarsLike(a, a.dtype), ScalarsLike(a, RealPartOf(a.dtype))};
}

absl::StatusOr<ExpandedResults> ExpandSignLogDeterminant(const ExpandCall& call) {
  ASSIGN_OR_RETURN(const Determined determined, Determine(call));
  return ExpandedResults{determined.sign, determined.log};
}

absl::StatusOr<ResultTypes> InferPseudoInverse(InferContext& context) {
  const TensorType& a = context.operand(0);
  RETURN_IF_ERROR(CheckCutoff(context.attrs()));
  RETURN_IF_ERROR(RequireMatrices(a, "the operand"));
  return ResultTypes{MatricesLike(a, a.dtype, a.shape[1], a.shape[0])};
}

absl::StatusOr<ExpandedResults> ExpandPseudoInverse(const ExpandCall& call) {
  ASSIGN_OR_RETURN(const Inverted svd, InvertSingularValues(call));
  ASSIGN_OR_RETURN(const ValueId scaled, ScaleRows(call, svd.conj_vh, svd.inverses));
  ASSIGN_OR_RETURN(const ValueId inverse, MatrixProduct(call, scaled, 0, svd.conj_u, 1));
  return ExpandedResults{inverse};
}

absl::StatusOr<ResultTypes> InferLeastSquares(InferContext& context) {
  const TensorType &a = context.operand(0), &b = context.operand(1);
  RETURN_IF_ERROR(CheckCutoff(context.attrs()));
  RETURN_IF_ERROR(RequireMatrices(a, "A"));
  RETURN_IF_ERROR(RequireSameBatch(context, a, b, "A and B"));
  RETURN_IF_ERROR(context.RequireEqual(a.shape[0], b.shape[0], "A's and B's numbers of rows differ"));
  return ResultTypes{MatricesLike(b, b.dtype, a.shape[1], b.shape[1])};
}

absl::StatusOr<ExpandedResults> ExpandLeastSquares(const ExpandCall& call) {
  ASSIGN_OR_RETURN(const Inverted svd, InvertSingularValues(call));
  ASSIGN_OR_RETURN(const ValueId projected, MatrixProduct(call, svd.conj_u, 0, call.operands[1], 0));
  ASSIGN_OR_RETURN(const ValueId scaled, ScaleRows(call, projected, svd.inverses));
  ASSIGN_OR_RETURN(const ValueId solution, MatrixProduct(call, svd.conj_vh, 0, scaled, 0));
  return ExpandedResults{solution};
}

absl::StatusOr<ResultTypes> InferMatrixRank(InferContext& context) {
  const TensorType& a = context.operand(0);
  RETURN_IF_ERROR(CheckCutoff(context.attrs()));
  RETURN_IF_ERROR(RequireMatrices(a, "the operand"));
  return ResultTypes{ScalarsLike(a, DType::kI64)};
}

absl::StatusOr<ExpandedResults> ExpandMatrixRank(const ExpandCall& call) {
  ASSIGN_OR_RETURN(const ValueId values, call.graph.Add(Def(LinalgOp::kSvdValues), {call.operands[0]}));
  ASSIGN_OR_RETURN(const ValueId above, AboveCutoff(call, values));
  ASSIGN_OR_RETURN(const ValueId ones, Convert(call, DType::kI64, above));
  ASSIGN_OR_RETURN(const ValueId rank, Reduce(call, ReduceKind::kSum, 0, ones));
  return ExpandedResults{rank};
}

}  // namespace tensord
