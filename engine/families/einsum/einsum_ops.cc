#include "engine/families/einsum/einsum_ops.h"

#include <algorithm>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/families/einsum/einsum_derivative.h"
#include "engine/families/einsum/einsum_lowering.h"
#include "engine/families/einsum/einsum_terms.h"
#include "engine/ops/axis_checks.h"
#include "engine/ops/index_walk.h"
#include "engine/ops/scalar/dot_arithmetic.h"
#include "engine/ops/scalar/scalar_math.h"
#include "engine/ops/semiring.h"

namespace tensord {
namespace {

absl::StatusOr<ResultTypes> InferEinsum(InferContext& context) {
  std::vector<const TensorType*> operands;
  for (size_t i = 0; i < context.num_operands(); ++i) operands.push_back(&context.operand(i));
  for (size_t i = 1; i < operands.size(); ++i) {
    if (operands[i]->dtype == operands[0]->dtype) continue;
    RETURN_IF_ERROR(CheckSameDType(*operands[0], *operands[i], absl::StrCat("operands 0 and ", i)));
  }
  RETURN_IF_ERROR(CheckElements(AlgebraOf(context.attrs()), operands[0]->dtype));
  const std::optional<int64_t> bound = context.attrs().MaybeInt("largest_intermediate");
  if (bound.has_value() && *bound < 1) {
    return Refuse(Refusal::kAttributeInvalid, absl::StrCat("largest_intermediate is below 1: ", *bound));
  }
  ASSIGN_OR_RETURN(const EinsumTerms terms, TermsOf(context.attrs(), operands));
  for (size_t i = 0; i < operands.size(); ++i) {
    for (size_t axis = 0; axis < terms.operands[i].size(); ++axis) {
      const int label = terms.operands[i][axis];
      if (label == kUnitAxis) continue;
      const Dim &size = operands[i]->shape[axis], &size_of_label = terms.sizes[static_cast<size_t>(label)];
      if (size == size_of_label) continue;
      RETURN_IF_ERROR(terms.of_ellipsis[static_cast<size_t>(label)]
                          ? context.RequireEqualOrOne(size, size_of_label,
                                                      absl::StrCat("axis ", axis, " of operand ", i,
                                                                   " is neither 1 nor the size of the ellipses' axis"))
                          : context.RequireEqual(size, size_of_label,
                                                 absl::StrCat("axis ", axis, " of operand ", i,
                                                              " and another axis of its label differ in size")));
    }
  }
  TensorType result{.dtype = operands[0]->dtype};
  for (int label : terms.output) result.shape.push_back(terms.sizes[static_cast<size_t>(label)]);
  return ResultTypes{std::move(result)};
}

// Loops over all labels, those of the result outside.
absl::Status ReferenceEinsum(const ReferenceCall& call) {
  std::vector<TensorType> types;
  for (const Literal* literal : call.operands) types.push_back(ToTensorType(literal->type()));
  std::vector<const TensorType*> type_pointers;
  for (const TensorType& type : types) type_pointers.push_back(&type);
  ASSIGN_OR_RETURN(const EinsumTerms terms, TermsOf(call.attrs, type_pointers));

  // Labels in loops: those of the output, then the others; and by tensor its stride along each of them.
  std::vector<int> kept, summed;
  for (int label : terms.output) {
    if (std::find(kept.begin(), kept.end(), label) == kept.end()) kept.push_back(label);
  }
  for (int label = 0; label < static_cast<int>(terms.sizes.size()); ++label) {
    if (std::find(kept.begin(), kept.end(), label) == kept.end()) summed.push_back(label);
  }
  const auto sizes_of = [&](const std::vector<int>& labels) {
    Shape sizes;
    for (int label : labels) sizes.push_back(terms.sizes[static_cast<size_t>(label)].size.constant());
    return sizes;
  };
  const auto strides_of = [&](const std::vector<int>& term, const Shape& shape) {
    const Shape strides = ColumnMajorStrides(shape);
    std::vector<int64_t> by_label(terms.sizes.size());
    for (size_t axis = 0; axis < term.size(); ++axis) {
      if (term[axis] != kUnitAxis) by_label[static_cast<size_t>(term[axis])] += strides[axis];
    }
    return by_label;
  };
  std::vector<std::vector<int64_t>> strides;
  for (size_t i = 0; i < call.operands.size(); ++i) {
    strides.push_back(strides_of(terms.operands[i], call.operands[i]->shape()));
  }
  const std::vector<int64_t> result_strides = strides_of(terms.output, call.results[0].shape());
  const auto offset = [](const std::vector<int64_t>& by_label, const std::vector<int>& labels, const IndexWalk& index) {
    int64_t at = 0;
    for (size_t i = 0; i < labels.size(); ++i) at += index[i] * by_label[static_cast<size_t>(labels[i])];
    return at;
  };
  const Algebra algebra = AlgebraOf(call.attrs);
  const Shape kept_sizes = sizes_of(kept), summed_sizes = sizes_of(summed);
  VisitDType(call.results[0].dtype(), [&]<typename T>(TypeTag<T>) {
    using Accumulator = typename DotAccumulator<T>::type;
    const auto results = call.results[0].mutable_values<T>();
    const auto element = [&](size_t o, const IndexWalk& i, const IndexWalk& k) {
      const int64_t at = offset(strides[o], kept, i) + offset(strides[o], summed, k);
      return call.operands[o]->values<T>()[static_cast<size_t>(at)];
    };
    if (algebra != Algebra::kStandard) {
      std::fill(results.begin(), results.end(), SemiringZero<T>(algebra));
      for (IndexWalk i(kept_sizes); !i.done(); i.Next()) {
        T sum = SemiringZero<T>(algebra);
        for (IndexWalk k(summed_sizes); !k.done(); k.Next()) {
          T product = element(0, i, k);
          for (size_t o = 1; o < strides.size(); ++o) product = SemiringMultiply(algebra, product, element(o, i, k));
          sum = SemiringAdd(algebra, sum, product);
        }
        results[static_cast<size_t>(offset(result_strides, kept, i))] = sum;
      }
      return;
    }
    for (IndexWalk i(kept_sizes); !i.done(); i.Next()) {
      Accumulator sum = scalar::ConvertElement<Accumulator>(int32_t{0});
      for (IndexWalk k(summed_sizes); !k.done(); k.Next()) {
        Accumulator product = scalar::ConvertElement<Accumulator>(int32_t{1});
        for (size_t o = 0; o < strides.size(); ++o) {
          product = scalar::Apply(scalar::Multiply{}, product, scalar::ConvertElement<Accumulator>(element(o, i, k)));
        }
        sum = scalar::Apply(scalar::Add{}, sum, product);
      }
      results[static_cast<size_t>(offset(result_strides, kept, i))] = RoundedSum<T>(sum);
    }
  });
  return absl::OkStatus();
}

constexpr absl::string_view kOptimizers[] = {"auto", "greedy", "optimal", "left_to_right"};
constexpr AttrDef kEinsumAttrs[] = {
    {.name = "equation", .kind = AttrKind::kText},
    {.name = "operands", .kind = AttrKind::kIntLists},
    {.name = "output", .kind = AttrKind::kIntLists},
    {.name = "optimizer", .kind = AttrKind::kEnum, .enumerators = kOptimizers, .may_be_unset = true},
    {.name = "path", .kind = AttrKind::kIntLists},
    {.name = "largest_intermediate", .kind = AttrKind::kMaybeInt},
    {.name = "algebra", .kind = AttrKind::kEnum, .enumerators = kAlgebraNames, .may_be_unset = true}};
constexpr RefusalRule kEinsumRefusals[] = {
    {Refusal::kDtypeMismatch, "the operands have several dtypes"},
    {Refusal::kDtypeUnsupported, "the operands are no elements of the algebra"},
    {Refusal::kAttributeInvalid, "equation is set, and so are operands or output"},
    {Refusal::kAttributeInvalid, "neither equation nor operands is set"},
    {Refusal::kAttributeInvalid, "output is not one list of labels"},
    {Refusal::kAttributeInvalid, "a label number is negative"},
    {Refusal::kAttributeInvalid, "equation does not have one arrow"},
    {Refusal::kAttributeInvalid, "equation has a character that is no label"},
    {Refusal::kAttributeInvalid, "equation has a dot outside of an ellipsis"},
    {Refusal::kAttributeInvalid, "equation has two ellipses in a term"},
    {Refusal::kAttributeInvalid, "equation has several outputs"},
    {Refusal::kAttributeInvalid, "equation has a parenthesis in the output"},
    {Refusal::kAttributeInvalid, "equation closes a parenthesis that is not open"},
    {Refusal::kAttributeInvalid, "equation leaves a parenthesis open"},
    {Refusal::kAttributeInvalid, "equation opens a parenthesis within a term"},
    {Refusal::kAttributeInvalid, "equation has labels behind a closing parenthesis"},
    {Refusal::kAttributeInvalid, "the number of terms is not that of the operands"},
    {Refusal::kRankMismatch, "a term does not name the axes of its operand"},
    {Refusal::kAttributeInvalid, "the output has a label that no operand has"},
    {Refusal::kAttributeInvalid, "an ellipsis stands for axes, and the output has none"},
    {Refusal::kShapeMismatch, "axes of one label differ in size"},
    {Refusal::kAttributeInvalid, "path is set, and the equation has parentheses"},
    {Refusal::kAttributeInvalid, "path has a step without operands"},
    {Refusal::kAttributeInvalid, "path names a position that is not there"},
    {Refusal::kAttributeInvalid, "path names a position twice in a step"},
    {Refusal::kAttributeInvalid, "path leaves several operands"},
    {Refusal::kAttributeInvalid, "largest_intermediate is below 1"}};

constexpr OpDef kEinsumTable[] = {
    {.family = "einsum",
     .index = 0,
     .name = "tensord.einsum.v1.Einsum",
     .summary = "Sum of products over the labels that the output lacks. Planned, and written as core ops.",
     .op_class = OpClass::kExtension,
     .min_operands = 1,
     .max_operands = kVariadic,
     .attrs = kEinsumAttrs,
     .traits = kPlannedBySize | kSumsProducts,
     .dtypes = kAnyDType,
     .infer = &InferEinsum,
     .refusals = kEinsumRefusals,
     .reference = &ReferenceEinsum,
     .permute = Facet<PermuteRule>::None("it is expanded before any pass"),
     .jvp = &JvpEinsum,
     .linear_transpose = &TransposeEinsum,
     .expand = &ExpandEinsum},
};

}  // namespace

absl::Span<const OpDef> EinsumOps() { return kEinsumTable; }

}  // namespace tensord
