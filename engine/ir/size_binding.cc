#include "engine/ir/size_binding.h"

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"

namespace tensord {
namespace {

absl::Status Mismatch(size_t argument, const TensorType& type, const ConcreteType& given, absl::string_view what) {
  return Refuse(Refusal::kArgumentMismatch,
                absl::StrCat("argument ", argument, " has another ", what, " than its input: ", ToString(given),
                             " where ", ToString(type), " is wanted"));
}

}  // namespace

absl::StatusOr<SizeBinding> SizeBinding::Create(absl::Span<const TensorType* const> inputs,
                                                absl::Span<const ConcreteType> arguments) {
  if (inputs.size() != arguments.size()) {
    return Refuse(Refusal::kArgumentCount,
                  absl::StrCat("the program has ", inputs.size(), " inputs, and got ", arguments.size(), " arguments"));
  }
  SizeBinding binding;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorType& type = *inputs[i];
    const ConcreteType& given = arguments[i];
    if (type.dtype != given.dtype) return Mismatch(i, type, given, "dtype");
    if (type.rank() != given.rank()) return Mismatch(i, type, given, "rank");
    for (size_t axis = 0; axis < given.shape.size(); ++axis) {
      const auto symbol = type.shape[axis].size.as_symbol();
      if (!symbol.has_value()) continue;
      const auto [it, inserted] = binding.sizes_.try_emplace(std::string(*symbol), given.shape[axis]);
      if (!inserted && it->second != given.shape[axis]) {
        return Refuse(Refusal::kSymbolConflict,
                      absl::StrCat("axis ", axis, " of argument ", i, " gives the symbol \"", *symbol, "\" the size ",
                                   given.shape[axis], ", an earlier axis gave it ", it->second));
      }
    }
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (size_t axis = 0; axis < arguments[i].shape.size(); ++axis) {
      ASSIGN_OR_RETURN(const int64_t size, binding.Evaluate(inputs[i]->shape[axis].size));
      if (size != arguments[i].shape[axis]) {
        return Mismatch(i, *inputs[i], arguments[i], absl::StrCat("size of axis ", axis));
      }
    }
  }
  return binding;
}

absl::StatusOr<int64_t> SizeBinding::Evaluate(const DimExpr& size) const {
  return size.Evaluate([this](const DimAtom& atom) -> absl::StatusOr<int64_t> {
    const auto it = sizes_.find(atom.symbol);
    if (atom.kind != DimAtom::Kind::kSymbol || it == sizes_.end()) {
      return Refuse(Refusal::kSymbolUnbound, absl::StrCat("no argument gives the symbol \"", atom.symbol, "\" a size"));
    }
    return it->second;
  });
}

absl::StatusOr<ConcreteType> SizeBinding::Resolve(const TensorType& type) const {
  ConcreteType concrete{.dtype = type.dtype};
  for (const Dim& dim : type.shape) {
    if (dim.size.is_constant()) {
      concrete.shape.push_back(dim.size.constant());
      continue;
    }
    ASSIGN_OR_RETURN(const int64_t size, Evaluate(dim.size));
    concrete.shape.push_back(size);
  }
  if (!NumBytes(concrete.dtype, concrete.shape).has_value()) {
    return Refuse(Refusal::kShapeOverflow,
                  absl::StrCat("the bytes of ", ToString(concrete), " are more than 2^56, or a size is negative"));
  }
  return concrete;
}

namespace {

// Returns a size of a guard with the value that the run gives it.
std::string Shown(const DimExpr& size, int64_t value) {
  return size.is_constant() ? absl::StrCat(value) : absl::StrCat(size.ToString(), " = ", value);
}

}  // namespace

absl::Status SizeBinding::Check(const ShapeGuard& guard) const {
  ASSIGN_OR_RETURN(const int64_t lhs, Evaluate(guard.lhs));
  ASSIGN_OR_RETURN(const int64_t rhs, Evaluate(guard.rhs));
  bool holds = false;
  switch (guard.kind) {
    case ShapeGuard::Kind::kEqual:
      holds = lhs == rhs;
      break;
    case ShapeGuard::Kind::kEqualOrOne:
      holds = lhs == rhs || lhs == 1;
      break;
    case ShapeGuard::Kind::kAtMost:
      holds = lhs <= rhs;
      break;
  }
  if (holds) return absl::OkStatus();
  if (guard.kind == ShapeGuard::Kind::kAtMost && guard.lhs.is_constant()) {
    return Refuse(Refusal::kShapeMismatch,
                  absl::StrCat(guard.what, ": ", Shown(guard.rhs, rhs), ", and the least is ", lhs));
  }
  return Refuse(Refusal::kShapeMismatch,
                absl::StrCat(guard.what, ": ", Shown(guard.lhs, lhs), " and ", Shown(guard.rhs, rhs)));
}

}  // namespace tensord
