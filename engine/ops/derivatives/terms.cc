#include "engine/ops/derivatives/terms.h"

#include <memory>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/ops/scalar/scalar_math.h"
#include "engine/tensor/run_time_size.h"

namespace tensord {

std::vector<int64_t> AllAxes(size_t rank) {
  std::vector<int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), int64_t{0});
  return axes;
}

ValueId Terms::Conj(ValueId x) { return kComplexes.Contains(graph_.type(x).dtype) ? Unary(CoreOp::kConj, x) : x; }

ValueId Terms::Sum(ValueId a, ValueId b) {
  if (!a.is_set()) return b;
  return b.is_set() ? Add(a, b) : a;
}

ValueId Terms::Compare(CompareDirection direction, ValueId a, ValueId b) {
  Attributes attrs(Def(CoreOp::kCompare).attrs);
  attrs.Set("direction", static_cast<int64_t>(direction));
  return graph_.Add(Def(CoreOp::kCompare), std::move(attrs), {a, b});
}

ValueId Terms::Convert(ValueId x, DType dtype) {
  if (graph_.type(x).dtype == dtype) return x;
  Attributes attrs(Def(CoreOp::kConvert).attrs);
  attrs.Set("dtype", dtype);
  return graph_.Add(Def(CoreOp::kConvert), std::move(attrs), {x});
}

ValueId Terms::Scalar(double value, DType dtype) {
  const auto literal = VisitDType(dtype, [value]<typename T>(TypeTag<T>) {
    return std::make_shared<const Literal>(Literal::Scalar(scalar::ConvertElement<T>(value)));
  });
  Attributes attrs(Def(CoreOp::kConstant).attrs);
  attrs.Set("value", LiteralPtr(literal));
  return graph_.Add(Def(CoreOp::kConstant), std::move(attrs), {});
}

ValueId Terms::Integers(absl::Span<const int64_t> values, DType dtype) {
  absl::StatusOr<Literal> literal = Literal::Create({.dtype = dtype, .shape = {static_cast<int64_t>(values.size())}});
  if (!literal.ok()) {
    graph_.Fail(literal.status());
    return {};
  }
  VisitDType(dtype, [&]<typename T>(TypeTag<T>) {
    const absl::Span<T> to = literal->mutable_values<T>();
    for (size_t i = 0; i < values.size(); ++i) to[i] = scalar::ConvertElement<T>(values[i]);
  });
  Attributes attrs(Def(CoreOp::kConstant).attrs);
  attrs.Set("value", LiteralPtr(std::make_shared<const Literal>(*std::move(literal))));
  return graph_.Add(Def(CoreOp::kConstant), std::move(attrs), {});
}

ValueId Terms::Full(double value, const TensorType& type) {
  const TensorType wanted = type;  // the type may be a value's, and move when nodes are added
  const ValueId number = Scalar(value, wanted.dtype);
  return wanted.rank() == 0 ? number : Broadcast(number, wanted.shape, {});
}

ValueId Terms::SizeOf(const DimExpr& size) {
  if (size.is_constant()) return Scalar(static_cast<double>(size.constant()), DType::kI64);
  const ValueId sized = Broadcast(Scalar(0, DType::kBool), {Dim(size)}, {});
  Attributes attrs(Def(CoreOp::kShapeOf).attrs);
  attrs.Set("dimension", int64_t{0});
  return graph_.Add(Def(CoreOp::kShapeOf), std::move(attrs), {sized});
}

ValueId Terms::Counting(const Dim& size) {
  // An iota's type cannot be what the run decides: it counts up to the bound, and the head is taken.
  const bool is_cut = DependsOnRun(size.size);
  if (is_cut && size.extent != Extent::kUpperBound) {
    graph_.Fail(Refuse(Refusal::kUnsupportedRequest, absl::StrCat("there is no derivative where an axis has the size ",
                                                                  ToString(size), ", of which no bound is known")));
    return {};
  }
  Attributes attrs(Def(CoreOp::kIota).attrs);
  attrs.Set("type", SharedType(TensorType{.dtype = DType::kI64, .shape = {is_cut ? Dim(*size.bound) : size}}));
  const ValueId counted = graph_.Add(Def(CoreOp::kIota), std::move(attrs), {});
  return is_cut ? Head(counted, {size}) : counted;
}

ValueId Terms::Broadcast(ValueId x, const SymbolicShape& shape, std::vector<int64_t> dimensions) {
  Attributes attrs(Def(CoreOp::kBroadcastInDim).attrs);
  attrs.Set("broadcast_dimensions", std::move(dimensions));
  return graph_.AddSized(Def(CoreOp::kBroadcastInDim), std::move(attrs), "shape", shape, {x});
}

ValueId Terms::Reduce(ReduceKind kind, ValueId x, std::vector<int64_t> dimensions) {
  Attributes attrs(Def(CoreOp::kReduce).attrs);
  attrs.Set("kind", static_cast<int64_t>(kind));
  attrs.Set("dimensions", std::move(dimensions));
  return graph_.Add(Def(CoreOp::kReduce), std::move(attrs), {x});
}

ValueId Terms::Transpose(ValueId x, std::vector<int64_t> permutation) {
  if (permutation == AllAxes(permutation.size())) return x;
  Attributes attrs(Def(CoreOp::kTranspose).attrs);
  attrs.Set("permutation", std::move(permutation));
  return graph_.Add(Def(CoreOp::kTranspose), std::move(attrs), {x});
}

ValueId Terms::Reshape(ValueId x, const SymbolicShape& shape, Order order) {
  if (x.is_set() && graph_.type(x).shape == shape) return x;
  Attributes attrs(Def(CoreOp::kReshape).attrs);
  attrs.Set("order", static_cast<int64_t>(order));
  return graph_.AddSized(Def(CoreOp::kReshape), std::move(attrs), "shape", shape, {x});
}

ValueId Terms::Slice(ValueId x, std::vector<int64_t> starts, std::vector<int64_t> limits,
                     std::vector<int64_t> strides) {
  Attributes attrs(Def(CoreOp::kSlice).attrs);
  attrs.Set("start_indices", std::move(starts));
  attrs.Set("limit_indices", std::move(limits));
  attrs.Set("strides", std::move(strides));
  return graph_.Add(Def(CoreOp::kSlice), std::move(attrs), {x});
}

ValueId Terms::PaddedTo(ValueId x, size_t axis, const Dim& size) {
  SymbolicShape shape(axis, Dim(1));
  shape.push_back(size);
  Attributes attrs(Def(CoreOp::kPadToMatch).attrs);
  attrs.Set("dimension", static_cast<int64_t>(axis));
  const ValueId reference = Zeros({.dtype = DType::kBool, .shape = std::move(shape)});
  return graph_.Add(Def(CoreOp::kPadToMatch), std::move(attrs), {x, reference});
}

ValueId Terms::Head(ValueId x, const SymbolicShape& shape) {
  std::vector<int64_t> zeros(shape.size(), 0), limits;
  for (const Dim& dim : shape) {
    if (!dim.is_static()) return Window(x, Integers(zeros, DType::kI64), shape);
    limits.push_back(dim.size.constant());
  }
  return Slice(x, std::move(zeros), std::move(limits), {});
}

ValueId Terms::Resized(ValueId x, SymbolicShape shape, size_t axis, const Dim& size) {
  const Dim from = shape[axis];
  if (from == size) return x;
  shape[axis] = size;
  const bool is_known = from.is_static() && size.is_static();
  if (!is_known || from.size.constant() < size.size.constant()) x = PaddedTo(x, axis, size);
  if (!is_known || from.size.constant() > size.size.constant()) x = Head(x, shape);
  return x;
}

ValueId Terms::Window(ValueId x, ValueId starts, const SymbolicShape& shape) {
  Attributes attrs(Def(CoreOp::kGatherDynamicSliceSizes).attrs);
  attrs.Set("offset_dims", AllAxes(shape.size()));
  attrs.Set("start_index_map", AllAxes(shape.size()));
  attrs.Set("index_vector_dim", int64_t{0});
  return graph_.AddSized(Def(CoreOp::kGatherDynamicSliceSizes), std::move(attrs), "slice_sizes", shape, {x, starts});
}

DType CountingType(DType dtype) { return dtype == DType::kF64 || dtype == DType::kC128 ? DType::kF64 : DType::kF32; }

DType SummingType(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16 ? DType::kF32 : dtype; }

}  // namespace tensord
