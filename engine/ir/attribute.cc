#include "engine/ir/attribute.h"

#include <cstdio>
#include <cstdlib>

namespace tensord {
namespace {

const AttrValue& Unset(AttrKind kind) {
  static const AttrValue* const kNumber = new AttrValue(int64_t{0});
  static const AttrValue* const kNumbers = new AttrValue(std::vector<int64_t>());
  static const AttrValue* const kSizes = new AttrValue(std::vector<DimExpr>());
  static const AttrValue* const kNoDType = new AttrValue(DType::kInvalid);
  static const AttrValue* const kNoType = new AttrValue(SharedType());
  static const AttrValue* const kNoLiteral = new AttrValue(LiteralPtr());
  static const AttrValue* const kFalse = new AttrValue(false);
  static const AttrValue* const kNoText = new AttrValue(std::string());
  static const AttrValue* const kNoInt = new AttrValue(std::optional<int64_t>());
  static const AttrValue* const kNoReal = new AttrValue(std::optional<double>());
  static const AttrValue* const kNoLists = new AttrValue(std::vector<std::vector<int64_t>>());
  switch (kind) {
    case AttrKind::kInt:
    case AttrKind::kEnum:
      return *kNumber;
    case AttrKind::kInts:
      return *kNumbers;
    case AttrKind::kDims:
      return *kSizes;
    case AttrKind::kDType:
      return *kNoDType;
    case AttrKind::kType:
      return *kNoType;
    case AttrKind::kLiteral:
      return *kNoLiteral;
    case AttrKind::kFlag:
      return *kFalse;
    case AttrKind::kText:
      return *kNoText;
    case AttrKind::kMaybeInt:
      return *kNoInt;
    case AttrKind::kMaybeReal:
      return *kNoReal;
    case AttrKind::kIntLists:
      break;
  }
  return *kNoLists;
}

}  // namespace

bool IsUnset(AttrKind kind, const AttrValue& value) { return value == Unset(kind); }

const AttrValue& Attributes::UnsetAt(size_t index) const { return Unset(schema_[index].kind); }

Attributes::Values& Attributes::Mutable() {
  Values& values = values_.Mutable();
  for (size_t i = values.size(); i < schema_.size(); ++i) values.push_back(UnsetAt(i));
  return values;
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
