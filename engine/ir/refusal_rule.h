#ifndef TENSORD_ENGINE_IR_REFUSAL_RULE_H_
#define TENSORD_ENGINE_IR_REFUSAL_RULE_H_

#include <cstddef>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/base/refusal.h"

namespace tensord {

// One way in which an op's type rule refuses a node.
struct RefusalRule {
  Refusal reason;
  // "dimensions names an axis twice"; stands in docs/use/errors.md and in titles of golden cases.
  absl::string_view when;
};

// All ways in which an op's own type rule refuses, or the written reason why it never does. Refusals that the
// declaration implies (operand counts, unset attributes, dtypes, sizes in attributes) are not repeated: RefusalsOf
// derives them.
class RefusalTable {
 public:
  template <size_t N>
  constexpr RefusalTable(const RefusalRule (&rules)[N]) : rules_(rules) {}  // NOLINT: rules are a table
  static constexpr RefusalTable None(absl::string_view reason) { return RefusalTable(reason); }

  constexpr absl::Span<const RefusalRule> rules() const { return rules_; }
  constexpr absl::string_view reason() const { return reason_; }

 private:
  explicit constexpr RefusalTable(absl::string_view reason) : reason_(reason) {}

  absl::Span<const RefusalRule> rules_;
  absl::string_view reason_;
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_IR_REFUSAL_RULE_H_
