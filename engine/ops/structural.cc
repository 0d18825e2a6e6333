#include "engine/ops/structural.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/checked_math.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/ops/axis_checks.h"
#include "engine/ops/axis_order.h"
#include "engine/ops/index_walk.h"

namespace tensord {
namespace {

// Gathers `out` element by element: element i of out is the one at `source(i)` of `in`.
template <typename Source>
void Rearrange(const Literal& in, Literal* out, const Source& source) {
  const size_t size = static_cast<size_t>(SizeOf(in.dtype()));
  for (IndexWalk i(out->shape()); !i.done(); i.Next()) {
    std::memcpy(out->mutable_data() + static_cast<size_t>(i.linear()) * size,
                in.bytes().data() + static_cast<size_t>(source(i.index())) * size, size);
  }
}

void Transpose(const Literal& in, absl::Span<const int64_t> permutation, Literal* out) {
  const Shape strides = ColumnMajorStrides(in.shape());
  Rearrange(in, out, [&](const Shape& index) {
    int64_t at = 0;
    for (size_t k = 0; k < index.size(); ++k) at += index[k] * strides[static_cast<size_t>(permutation[k])];
    return at;
  });
}

// Returns the shape attribute with the operands' sizes put in.
absl::StatusOr<SymbolicShape> ResolveShape(InferContext& context) {
  SymbolicShape shape;
  for (const DimExpr& size : context.attrs().Dims("shape")) {
    ASSIGN_OR_RETURN(DimExpr resolved, context.Resolve(size));
    if (resolved.is_constant() && resolved.constant() < 0) {
      return Refuse(Refusal::kShapeMismatch, absl::StrCat("shape has a negative size: ", resolved.constant()));
    }
    shape.push_back(Dim(std::move(resolved)));
  }
  return shape;
}

absl::StatusOr<Dim> ElementsOf(const SymbolicShape& shape) {
  DimExpr product(1);
  for (const Dim& dim : shape) {
    if (product.is_constant() && dim.size.is_constant()) {
      if (const auto next = CheckedMul(product.constant(), dim.size.constant()); next.has_value()) {
        product = *next;
        continue;
      }
    }
    absl::StatusOr<DimExpr> next = DimExpr::Multiply(product, dim.size);
    if (!next.ok()) {
      const bool is_number = product.is_constant() && dim.size.is_constant();
      return is_number ? Refuse(Refusal::kShapeOverflow, "the number of elements overflows 64 bits") : next.status();
    }
    product = *std::move(next);
  }
  return Dim(std::move(product));
}

}  // namespace

Literal TransposeLiteral(const Literal& literal, absl::Span<const int64_t> permutation) {
  Shape shape;
  for (int64_t axis : permutation) shape.push_back(literal.shape()[static_cast<size_t>(axis)]);
  Literal result = literal.WithShape(std::move(shape));
  Transpose(literal, permutation, &result);
  return result;
}

absl::StatusOr<ResultTypes> InferTranspose(InferContext& context) {
  const TensorType& operand = context.operand(0);
  const std::vector<int64_t>& permutation = context.attrs().Ints("permutation");
  RETURN_IF_ERROR(CheckLength(permutation.size(), operand.rank(), "permutation"));
  RETURN_IF_ERROR(CheckAxes(permutation, operand.rank(), "permutation"));
  TensorType result{.dtype = operand.dtype};
  for (int64_t axis : permutation) result.shape.push_back(operand.shape[static_cast<size_t>(axis)]);
  return ResultTypes{std::move(result)};
}

absl::Status ReferenceTranspose(const ReferenceCall& call) {
  Transpose(*call.operands[0], call.attrs.Ints("permutation"), &call.results[0]);
  return absl::OkStatus();
}

absl::StatusOr<ResultTypes> InferReshape(InferContext& context) {
  const TensorType& operand = context.operand(0);
  ASSIGN_OR_RETURN(SymbolicShape shape, ResolveShape(context));
  ASSIGN_OR_RETURN(const Dim from, ElementsOf(operand.shape));
  ASSIGN_OR_RETURN(const Dim to, ElementsOf(shape));
  RETURN_IF_ERROR(context.RequireEqual(from, to, "a reshape must keep the number of elements, which are"));
  return ResultTypes{{.dtype = operand.dtype, .shape = std::move(shape)}};
}

absl::Status ReferenceReshape(const ReferenceCall& call) {
  const Literal& in = *call.operands[0];
  Literal& out = call.results[0];
  if (static_cast<Order>(call.attrs.Int("order")) != Order::kRowMajor) {
    std::memcpy(out.mutable_data(), in.bytes().data(), in.bytes().size());
    return absl::OkStatus();
  }
  const Shape strides = ColumnMajorStrides(in.shape());
  Rearrange(in, &out, [&](const Shape& index) {
    int64_t row_major = 0;
    for (size_t k = 0; k < index.size(); ++k) row_major = row_major * out.shape()[k] + index[k];
    int64_t at = 0;
    for (size_t k = in.shape().size(); k-- > 0;) {
      at += row_major % in.shape()[k] * strides[k];
      row_major /= in.shape()[k];
    }
    return at;
  });
  return absl::OkStatus();
}

PermutedCall PermuteReshape(const PermuteContext& context) {
  const bool row_major = static_cast<Order>(context.attrs.Int("order")) == Order::kRowMajor;
  PermutedCall call{.attrs = context.attrs, .result_order = NaturalOrder(context.result.rank(), row_major)};
  for (const TensorType* operand : context.operands) {
    call.operand_orders.push_back(NaturalOrder(operand->rank(), row_major));
  }
  // Shape sources may stay as they are stored: their sizes are read through their order.
  for (size_t i = 1; i < context.operands.size(); ++i) call.operand_orders[i] = context.orders[i];
  if (row_major) {
    const std::vector<DimExpr>& shape = context.attrs.Dims("shape");
    call.attrs.Set("shape", std::vector<DimExpr>(shape.rbegin(), shape.rend()));
    call.attrs.Set("order", static_cast<int64_t>(Order::kColumnMajor));
  }
  return call;
}

absl::StatusOr<ResultTypes> InferBroadcastInDim(InferContext& context) {
  const TensorType& operand = context.operand(0);
  const std::vector<int64_t>& dimensions = context.attrs().Ints("broadcast_dimensions");
  ASSIGN_OR_RETURN(SymbolicShape shape, ResolveShape(context));
  RETURN_IF_ERROR(CheckLength(dimensions.size(), operand.rank(), "broadcast_dimensions"));
  RETURN_IF_ERROR(CheckAxes(dimensions, static_cast<int64_t>(shape.size()), "broadcast_dimensions"));
  for (size_t i = 0; i < dimensions.size(); ++i) {
    const Dim& wanted = shape[static_cast<size_t>(dimensions[i])];
    if (operand.shape[i] == wanted) continue;  // before the text, which costs more
    RETURN_IF_ERROR(context.RequireEqualOrOne(
        operand.shape[i], wanted,
        absl::StrCat("operand axis ", i, " is neither 1 nor the size of result axis ", dimensions[i])));
  }
  return ResultTypes{{.dtype = operand.dtype, .shape = std::move(shape)}};
}

absl::Status ReferenceBroadcastInDim(const ReferenceCall& call) {
  const Literal& in = *call.operands[0];
  const std::vector<int64_t>& dimensions = call.attrs.Ints("broadcast_dimensions");
  const Shape strides = ColumnMajorStrides(in.shape());
  Rearrange(in, &call.results[0], [&](const Shape& index) {
    int64_t at = 0;
    for (size_t k = 0; k < dimensions.size(); ++k) {
      if (in.shape()[k] != 1) at += index[static_cast<size_t>(dimensions[k])] * strides[k];
    }
    return at;
  });
  return absl::OkStatus();
}

PermutedCall PermuteBroadcastInDim(const PermuteContext& context) {
  const AxisOrder order = NaturalOrder(context.result.rank(), context.reversed_is_natural);
  PermutedCall call{.attrs = context.attrs, .result_order = order};
  call.operand_orders.assign(context.orders.begin(), context.orders.end());
  call.attrs.Set("shape", ToStored(context.attrs.Dims("shape"), order));
  const std::vector<int64_t> dimensions = MapAxes(context.attrs.Ints("broadcast_dimensions"), order);
  call.attrs.Set("broadcast_dimensions", ToStored(dimensions, context.orders[0]));
  return call;
}

absl::StatusOr<ResultTypes> InferOptimizationBarrier(InferContext& context) { return ResultTypes{context.operand(0)}; }

absl::Status ReferenceOptimizationBarrier(const ReferenceCall& call) {
  const absl::string_view in = call.operands[0]->bytes();
  if (!in.empty()) std::memcpy(call.results[0].mutable_data(), in.data(), in.size());
  return absl::OkStatus();
}

PermutedCall PermuteOptimizationBarrier(const PermuteContext& context) {
  PermutedCall call{.attrs = context.attrs, .result_order = context.orders[0]};
  call.operand_orders.assign(context.orders.begin(), context.orders.end());
  return call;
}

}  // namespace tensord
