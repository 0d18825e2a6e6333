#include "engine/ir/attribute.h"

#include <cstdio>
#include <cstdlib>

namespace tensord {
namespace {

AttrValue Unset(AttrKind kind) {
  switch (kind) {
    case AttrKind::kInt:
    case AttrKind::kEnum:
      return int64_t{0};
    case AttrKind::kInts:
      return std::vector<int64_t>();
    case AttrKind::kDims:
      return std::vector<DimExpr>();
    case AttrKind::kDType:
      return DType::kInvalid;
    case AttrKind::kType:
      return TensorType();
    case AttrKind::kLiteral:
      break;
  }
  return LiteralPtr();
}

}  // namespace

bool IsUnset(AttrKind kind, const AttrValue& value) { return value == Unset(kind); }

Attributes::Attributes(absl::Span<const AttrDef> schema) : schema_(schema) {
  values_.reserve(schema.size());
  for (const AttrDef& def : schema) values_.push_back(Unset(def.kind));
}

bool Attributes::Has(absl::string_view name) const {
  for (const AttrDef& def : schema_) {
    if (def.name == name) return true;
  }
  return false;
}

size_t Attributes::IndexOf(absl::string_view name) const {
  for (size_t i = 0; i < schema_.size(); ++i) {
    if (schema_[i].name == name) return i;
  }
  std::fprintf(stderr, "tensord: no attribute \"%.*s\" in the op's schema\n", static_cast<int>(name.size()),
               name.data());
  std::abort();
}

}  // namespace tensord
