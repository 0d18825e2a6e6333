#ifndef TENSORD_ENGINE_IR_ATTRIBUTE_H_
#define TENSORD_ENGINE_IR_ATTRIBUTE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/base/copy_on_write.h"
#include "engine/tensor/literal.h"
#include "engine/tensor/tensor_type.h"

namespace tensord {

enum class AttrKind : uint8_t {
  kInt,        // int64_t
  kInts,       // std::vector<int64_t>
  kDims,       // std::vector<DimExpr>
  kDType,      // DType; kInvalid where unset
  kEnum,       // int64_t, an index into AttrDef::enumerators; 0 is "unspecified"
  kType,       // SharedType
  kLiteral,    // LiteralPtr, never null
  kFlag,       // bool
  kText,       // std::string
  kMaybeInt,   // std::optional<int64_t>
  kMaybeReal,  // std::optional<double>
  kIntLists,   // std::vector<std::vector<int64_t>>; at most one list where the wire's message is not repeated
};

// One static parameter of an op: its name, as in the wire message's field, and its kind.
struct AttrDef {
  absl::string_view name;
  AttrKind kind;
  absl::Span<const absl::string_view> enumerators = {};  // kEnum: by wire number
  bool may_be_unset = false;                             // kEnum and kDType: 0 has a meaning of its own
  // Set by passes, never by clients: it has no field on the wire, and unset it shows nowhere, not even in the
  // fingerprint. Unset it changes nothing in the meaning of the wire's attributes.
  bool engine_only = false;
};

// A type is shared, so that it does not make every other value as large as it is.
using SharedType = CopyOnWrite<TensorType>;
using AttrValue =
    std::variant<int64_t, std::vector<int64_t>, std::vector<DimExpr>, DType, SharedType, LiteralPtr, bool, std::string,
                 std::optional<int64_t>, std::optional<double>, std::vector<std::vector<int64_t>>>;

// Tells whether a value is the initial value of Attributes(schema): 0, false, empty, kInvalid.
bool IsUnset(AttrKind kind, const AttrValue& value);

// The attribute values of one node, in the order of its op's schema. A value; copies share their attributes until one
// changes. Asking for an attribute that the schema lacks, or as another kind, is a bug of the caller and ends the
// process.
class Attributes {
 public:
  Attributes() = default;
  // Every attribute unset: 0, empty, kInvalid.
  explicit Attributes(absl::Span<const AttrDef> schema) : schema_(schema) {}

  absl::Span<const AttrDef> schema() const { return schema_; }
  const AttrValue& at(size_t index) const { return values_.is_set() ? (*values_)[index] : UnsetAt(index); }
  void Set(size_t index, AttrValue value) { Mutable()[index] = std::move(value); }

  Attributes& Set(absl::string_view name, AttrValue value) {
    Set(IndexOf(name), std::move(value));
    return *this;
  }
  int64_t Int(absl::string_view name) const { return std::get<int64_t>(at(IndexOf(name))); }
  const std::vector<int64_t>& Ints(absl::string_view name) const {
    return std::get<std::vector<int64_t>>(at(IndexOf(name)));
  }
  const std::vector<DimExpr>& Dims(absl::string_view name) const {
    return std::get<std::vector<DimExpr>>(at(IndexOf(name)));
  }
  DType GetDType(absl::string_view name) const { return std::get<DType>(at(IndexOf(name))); }
  const TensorType& Type(absl::string_view name) const { return *std::get<SharedType>(at(IndexOf(name))); }
  const LiteralPtr& GetLiteral(absl::string_view name) const { return std::get<LiteralPtr>(at(IndexOf(name))); }
  bool Flag(absl::string_view name) const { return std::get<bool>(at(IndexOf(name))); }
  const std::string& Text(absl::string_view name) const { return std::get<std::string>(at(IndexOf(name))); }
  std::optional<int64_t> MaybeInt(absl::string_view name) const {
    return std::get<std::optional<int64_t>>(at(IndexOf(name)));
  }
  std::optional<double> MaybeReal(absl::string_view name) const {
    return std::get<std::optional<double>>(at(IndexOf(name)));
  }
  const std::vector<std::vector<int64_t>>& IntLists(absl::string_view name) const {
    return std::get<std::vector<std::vector<int64_t>>>(at(IndexOf(name)));
  }

  bool Has(absl::string_view name) const;
  // Tells whether both have one schema and share their values: equal at a glance. Equal ones need not share them.
  bool IsSameAs(const Attributes& other) const {
    return schema_.data() == other.schema_.data() && values_.IsSameAs(other.values_);
  }

 private:
  using Values = absl::InlinedVector<AttrValue, 2>;

  size_t IndexOf(absl::string_view name) const;
  const AttrValue& UnsetAt(size_t index) const;
  Values& Mutable();

  absl::Span<const AttrDef> schema_;
  CopyOnWrite<Values> values_;  // set where any attribute was
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_IR_ATTRIBUTE_H_
