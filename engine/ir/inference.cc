#include "engine/ir/inference.h"

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/ir/names.h"

namespace tensord {
namespace {

bool Holds(ShapeGuard::Kind kind, int64_t a, int64_t b) {
  switch (kind) {
    case ShapeGuard::Kind::kEqual:
      return a == b;
    case ShapeGuard::Kind::kEqualOrOne:
      return a == b || a == 1;
    case ShapeGuard::Kind::kAtMost:
      return a <= b;
  }
  return false;
}

// Tells whether no size within the bounds satisfies the relation.
bool CannotHold(ShapeGuard::Kind kind, const Dim& a, const Dim& b) {
  const auto is_below = [](const Dim& bounded, const Dim& number) {
    return number.is_static() && bounded.extent == Extent::kUpperBound && bounded.bound->is_constant() &&
           bounded.bound->constant() < number.size.constant();
  };
  switch (kind) {
    case ShapeGuard::Kind::kEqual:
      return is_below(a, b) || is_below(b, a);
    case ShapeGuard::Kind::kEqualOrOne:
      return is_below(b, a);
    case ShapeGuard::Kind::kAtMost:
      return is_below(b, a);
  }
  return false;
}

}  // namespace

absl::Status InferContext::Require(ShapeGuard::Kind kind, const Dim& a, const Dim& b, absl::string_view what) {
  if (a.is_static() && b.is_static()) {
    if (Holds(kind, a.size.constant(), b.size.constant())) return absl::OkStatus();
    return Refuse(Refusal::kShapeMismatch, absl::StrCat(what, ": ", a.size.constant(), " and ", b.size.constant()));
  }
  if (a == b || (kind == ShapeGuard::Kind::kEqualOrOne && a.is_static() && a.size.is(1))) return absl::OkStatus();
  if (kind == ShapeGuard::Kind::kAtMost && a.is_static() && a.size.is(0)) return absl::OkStatus();
  if (CannotHold(kind, a, b)) {
    return Refuse(Refusal::kShapeMismatch, absl::StrCat(what, ": ", ToString(a), " and ", ToString(b)));
  }
  RETURN_IF_ERROR(CountParts(a.size.num_parts() + b.size.num_parts()));
  guards_->push_back({.kind = kind, .lhs = a.size, .rhs = b.size, .what = std::string(what), .node = node_});
  return absl::OkStatus();
}

absl::Status InferContext::CountParts(int64_t parts) {
  expression_parts_ += parts;
  return CheckExpressionParts(expression_parts_);
}

absl::Status InferContext::RequireEqual(const Dim& a, const Dim& b, absl::string_view what) {
  return Require(ShapeGuard::Kind::kEqual, a, b, what);
}

absl::Status InferContext::RequireEqualOrOne(const Dim& a, const Dim& b, absl::string_view what) {
  return Require(ShapeGuard::Kind::kEqualOrOne, a, b, what);
}

absl::Status InferContext::RequireAtMost(const Dim& a, const Dim& b, absl::string_view what) {
  return Require(ShapeGuard::Kind::kAtMost, a, b, what);
}

absl::Status InferContext::RequireSameShape(const TensorType& a, const TensorType& b, absl::string_view what) {
  if (a.rank() != b.rank()) {
    return Refuse(Refusal::kRankMismatch, absl::StrCat(what, " must have one shape, and have ranks ", a.rank(), " and ",
                                                       b.rank(), ": ", ToString(a), " and ", ToString(b)));
  }
  for (size_t i = 0; i < a.shape.size(); ++i) {
    if (a.shape[i] == b.shape[i]) continue;
    RETURN_IF_ERROR(RequireEqual(a.shape[i], b.shape[i], absl::StrCat("sizes of axis ", i, " of ", what, " differ")));
  }
  return absl::OkStatus();
}

absl::StatusOr<DimExpr> InferContext::Resolve(const DimExpr& expr) {
  bool has_axes = false;
  if (!expr.is_constant()) {
    expr.ForEachLeaf([&](const DimAtom& atom) { has_axes |= atom.kind == DimAtom::Kind::kOperandAxis; });
  }
  if (!has_axes) return expr;
  return expr.Substitute([this](const DimAtom& atom) -> absl::StatusOr<DimExpr> {
    if (atom.kind == DimAtom::Kind::kSymbol) return DimExpr::Symbol(atom.symbol);
    if (atom.operand < 0 || atom.operand >= static_cast<int64_t>(operands_.size())) {
      return Refuse(Refusal::kDimExprInvalid, absl::StrCat("a size names operand ", atom.operand, " of a node with ",
                                                           operands_.size(), " operands"));
    }
    const TensorType& type = *operands_[static_cast<size_t>(atom.operand)];
    if (atom.axis < 0 || atom.axis >= type.rank()) {
      return Refuse(Refusal::kDimExprInvalid, absl::StrCat("a size names axis ", atom.axis, " of operand ",
                                                           atom.operand, ", which has rank ", type.rank()));
    }
    const Dim& dim = type.shape[static_cast<size_t>(atom.axis)];
    RETURN_IF_ERROR(CountParts(dim.size.num_parts()));
    return dim.size;
  });
}

Dim InferContext::RunTimeSize(const Dim& limit) {
  const std::string symbol = RunTimeSymbol(SizeDeciderName(node_name_, run_time_sizes_++));
  std::optional<DimExpr> bound;
  if (limit.extent == Extent::kExact) bound = limit.size;
  if (limit.extent == Extent::kUpperBound) bound = *limit.bound;
  bounds_->insert_or_assign(symbol, std::move(bound));
  return WithExtent(DimExpr::Symbol(symbol), *bounds_);
}

absl::Status CheckExpressionParts(int64_t parts) {
  if (parts <= kMaxExpressionParts) return absl::OkStatus();
  return RefuseLimit("expression_parts", kMaxExpressionParts, parts, "parts of the graph's sizes");
}

}  // namespace tensord
