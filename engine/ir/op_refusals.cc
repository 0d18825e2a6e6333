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

void AppendAttribute(const AttrDef& attr, std::vector<OpRefusal>* refusals) {
  const auto add = [&](Refusal reason, absl::string_view when) {
    refusals->push_back({reason, absl::StrCat(attr.name, " ", when)});
  };
  switch (attr.kind) {
    case AttrKind::kInt:
    case AttrKind::kInts:
    case AttrKind::kFlag:
    case AttrKind::kText:
    case AttrKind::kMaybeInt:
    case AttrKind::kMaybeReal:
    case AttrKind::kIntLists:
      break;  // what a value may be is the rule's matter
    case AttrKind::kDType:
    case AttrKind::kEnum:
      if (!attr.may_be_unset) add(Refusal::kAttributeInvalid, "is unset");
      add(Refusal::kAttributeInvalid, "has a number that stands for nothing");
      break;
    case AttrKind::kDims:
      add(Refusal::kDimExprInvalid, "holds a malformed size");
      add(Refusal::kDimExprInvalid, "names an operand or an axis that is not there");
      add(Refusal::kSymbolUnbound, "uses a symbol that no input binds");
      add(Refusal::kLimitExceeded, "is beyond a limit of shapes");
      break;
    case AttrKind::kType:
      add(Refusal::kAttributeInvalid, "is unset");
      add(Refusal::kDimExprInvalid, "holds a malformed size");
      add(Refusal::kDimExprInvalid, "names an operand in a size");
      add(Refusal::kSymbolUnbound, "uses a symbol that no input binds");
      add(Refusal::kLimitExceeded, "is beyond a limit of shapes");
      break;
    case AttrKind::kLiteral:
      add(Refusal::kAttributeInvalid, "is unset");
      add(Refusal::kDtypeUnsupported, "has no dtype");
      add(Refusal::kShapeOverflow, "has a negative size, or more than 2^56 bytes");
      add(Refusal::kLimitExceeded, "is beyond a limit of tensors");
      add(Refusal::kDataLengthMismatch, "does not hold product(shape) elements");
      add(Refusal::kDataInvalid, "is BOOL and holds a byte other than 0 and 1");
      break;
  }
}

}  // namespace

std::vector<OpRefusal> CommonRefusals() {
  return {
      {Refusal::kDimExprInvalid, "a size of the result is too long an expression"},
      {Refusal::kDimExprOverflow, "a size expression overflows 64 bits or divides by zero, or is negative in a run"},
      {Refusal::kLimitExceeded, absl::StrCat("the sizes of the graph have more than ", kMaxExpressionParts, " parts")},
      {Refusal::kLimitExceeded, absl::StrCat("the rank of the result is above ", kMaxRank)},
      {Refusal::kShapeOverflow, "a size of the result is negative, or its bytes are more than 2^56"},
  };
}

std::vector<OpRefusal> DeclaredRefusals(const OpDef& op) {
  std::vector<OpRefusal> refusals = {{Refusal::kOperandCount, CountRule(op)}};
  for (const AttrDef& attr : op.attrs) {
    if (!attr.engine_only) AppendAttribute(attr, &refusals);
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
