#include "engine/ir/op_refusals.h"

#include "absl/strings/str_cat.h"

namespace tensord {
namespace {

std::string CountRule(const OpDef& op) {
  if (op.max_operands == kVariadic || op.has(kShapeSources)) {
    return absl::StrCat("the number of operands is below ", op.min_operands);
  }
  if (op.min_operands == op.max_operands) return absl::StrCat("the number of operands is not ", op.min_operands);
  return absl::StrCat("the number of operands is not in [", op.min_operands, ", ", op.max_operands, "]");
}

}  // namespace

std::vector<OpRefusal> CommonRefusals() {
  return {
      {Refusal::kDimExprInvalid, "a size of the result is too long an expression"},
      {Refusal::kDimExprOverflow, "a size expression overflows 64 bits or divides by zero, or is negative in a run"},
      {Refusal::kLimitExceeded, absl::StrCat("the sizes of the graph have more than ", kMaxExpressionParts, " parts")},
      {Refusal::kLimitExceeded, absl::StrCat("the rank of the result is above ", kMaxRank)},
      {Refusal::kShapeOverflow, "a size of the result is negative, or its bytes overflow 64 bits"},
  };
}

std::vector<OpRefusal> DeclaredRefusals(const OpDef& op) {
  std::vector<OpRefusal> refusals = {{Refusal::kOperandCount, CountRule(op)}};
  for (const AttrDef& attr : op.attrs) {
    if (attr.engine_only) continue;
    const bool has_unset =
        attr.kind == AttrKind::kEnum || attr.kind == AttrKind::kDType || attr.kind == AttrKind::kLiteral;
    if (has_unset && !attr.may_be_unset) {
      refusals.push_back({Refusal::kAttributeInvalid, absl::StrCat(attr.name, " is unset")});
    }
    if (attr.kind == AttrKind::kDims) {
      refusals.push_back(
          {Refusal::kDimExprInvalid, absl::StrCat(attr.name, " names an operand or an axis that is not there")});
    }
    if (attr.kind == AttrKind::kType) {
      refusals.push_back({Refusal::kDimExprInvalid, absl::StrCat(attr.name, " names an operand in a size")});
    }
    if (attr.kind == AttrKind::kDims || attr.kind == AttrKind::kType) {
      refusals.push_back({Refusal::kSymbolUnbound, absl::StrCat(attr.name, " uses a symbol that no input binds")});
    }
  }
  if (!(op.dtypes == kAnyDType)) refusals.push_back({Refusal::kDtypeUnsupported, "the op does not take the dtype"});
  return refusals;
}

std::vector<OpRefusal> RefusalsOf(const OpDef& op) {
  std::vector<OpRefusal> refusals = DeclaredRefusals(op);
  for (const RefusalRule& rule : op.refusals.rules()) refusals.push_back({rule.reason, std::string(rule.when)});
  return refusals;
}

}  // namespace tensord
