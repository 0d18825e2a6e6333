#include "engine/tensor/literal.h"

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"

namespace tensord {
namespace {

absl::StatusOr<int64_t> BytesOf(const ConcreteType& type) {
  const std::optional<int64_t> bytes = NumBytes(type.dtype, type.shape);
  if (!bytes.has_value()) {
    return Refuse(Refusal::kShapeOverflow,
                  absl::StrCat("a tensor's size is negative or above 2^56 bytes: ", ToString(type)));
  }
  return *bytes;
}

}  // namespace

absl::StatusOr<Literal> Literal::Create(ConcreteType type) {
  ASSIGN_OR_RETURN(const int64_t bytes, BytesOf(type));
  Literal literal;
  literal.type_ = std::move(type);
  literal.bytes_.resize(static_cast<size_t>(bytes));
  return literal;
}

absl::StatusOr<Literal> Literal::FromBytes(ConcreteType type, absl::string_view bytes) {
  ASSIGN_OR_RETURN(const int64_t expected, BytesOf(type));
  if (static_cast<uint64_t>(expected) != bytes.size()) {
    return Refuse(Refusal::kDataLengthMismatch, absl::StrCat("a tensor's data has ", bytes.size(), " bytes where ",
                                                             ToString(type), " has ", expected));
  }
  Literal literal;
  literal.type_ = std::move(type);
  literal.bytes_.assign(bytes.data(), bytes.size());
  return literal;
}

Literal Literal::WithShape(Shape shape) const {
  Literal literal = *this;
  literal.type_.shape = std::move(shape);
  return literal;
}

}  // namespace tensord
