#ifndef TENSORD_ENGINE_IR_OP_DEF_H_
#define TENSORD_ENGINE_IR_OP_DEF_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/ir/attribute.h"
#include "engine/ir/inference.h"
#include "engine/ir/refusal_rule.h"
#include "engine/ir/value_id.h"
#include "engine/tensor/literal.h"

namespace tensord {

// A rule of an op, or the written reason why it has none. There is no default: an op that forgets a facet does not
// compile.
template <typename Rule>
class Facet {
 public:
  constexpr Facet(Rule* rule) : rule_(rule), has_(true) {}  // NOLINT: a rule is a facet
  static constexpr Facet None(absl::string_view reason) {
    Facet facet(nullptr);
    facet.has_ = false;
    facet.reason_ = reason;
    return facet;
  }
  constexpr bool has() const { return has_; }
  constexpr Rule* get() const { return rule_; }
  constexpr absl::string_view reason() const { return reason_; }

 private:
  Rule* rule_;
  bool has_;  // not derived from rule_: under UBSan g++ cannot compare an address with null in a constant expression
  absl::string_view reason_;
};

// The types of an op's results, or why the operands and attributes are refused.
using InferRule = absl::StatusOr<ResultTypes>(InferContext&);

// The op's meaning on host tensors, slow and obvious. `results` come zeroed and with their types.
struct ReferenceCall {
  const Attributes& attrs;
  absl::Span<const Literal* const> operands;
  absl::Span<Literal> results;
};
using ReferenceRule = absl::Status(const ReferenceCall&);

// operand.shape[i] == stored.shape[permutation[i]]: how an operand's axes lie in the tensor that holds it.
using AxisOrder = absl::InlinedVector<int64_t, 6>;

// An op rewritten to work on stored tensors: reads operand i stored in operand_orders[i], and gives its result stored
// in result_order. operand_index reorders the operands (a dot may swap its sides); empty: as they stand.
struct PermutedCall {
  Attributes attrs;
  std::vector<AxisOrder> operand_orders;
  AxisOrder result_order;
  std::vector<int> operand_index;
};
struct PermuteContext {
  const Attributes& attrs;
  absl::Span<const TensorType* const> operands;  // types as the graph has them
  const TensorType& result;
  absl::Span<const AxisOrder> orders;  // how the operands are stored
  bool reversed_is_natural;            // results should be stored with their axes reversed where nothing else decides
};
using PermuteRule = PermutedCall(const PermuteContext&);

// The call that expands an op to simpler ones: it returns the values that take the place of the op's results, of the
// types of its type rule if sizes are known. The type rule alone states requirements on sizes: those of the simpler ops
// are taken to follow from them.
class GraphBuilder;  // graph_builder.h
struct ExpandCall {
  const Attributes& attrs;
  absl::Span<const ValueId> operands;
  GraphBuilder& graph;
};
using ExpandedResults = absl::InlinedVector<ValueId, 4>;
using ExpandRule = absl::StatusOr<ExpandedResults>(const ExpandCall&);

// The input of a WorkRule, which returns about how many operations on numbers one application takes; sizes are those of
// dense tensors in any order of axes.
struct WorkCall {
  const Attributes& attrs;
  absl::Span<const ConcreteType> operands;
  absl::Span<const ConcreteType> results;
};
using WorkRule = double(const WorkCall&);

// The derivative of an op. A jvp rule writes the tangents of the results; a linear_transpose rule, of an op that is
// linear in some operands, writes their cotangents. Both write only ops that have rules (engine/ir/derivative.h).
struct JvpCall;
struct TransposeCall;
using JvpRule = void(JvpCall&);
using TransposeRule = void(TransposeCall&);

enum class OpClass : uint8_t {
  kUnary,      // a value of tensord.v1.UnaryOp
  kBinary,     // a value of tensord.v1.BinaryOp
  kPlain,      // a field of tensord.v1.Node, with a message of its own
  kExtension,  // a message of a family, in tensord.v1.Extension; the op's name is the message's full name
};

enum OpTraits : uint32_t {
  kNoTraits = 0,
  kElementwise = 1u << 0,   // operands have the result's shape or rank 0; element i of the result needs only elements i
  kCommutative = 1u << 1,   // f(a, b) == f(b, a)
  kShapeSources = 1u << 2,  // takes further operands, of which only the sizes are used
  kHasNoOperand = 1u << 3,
  kJoinsSessions = 1u << 4,  // of an extension: runs in one session of the backend with its neighbours
  // Has an expand rule whose result for more than two operands depends on their sizes: best expanded anew for each set.
  kPlannedBySize = 1u << 5,
  kSumsProducts = 1u << 6,  // of an extension: sums of products alone, so a graph in any algebra may have it
};

inline constexpr int kVariadic = std::numeric_limits<int>::max();

// The one declaration of an op. Everything else that depends on the op is a facet here, is derived from one, or is a
// kernel table of a backend, checked against the family's table.
struct OpDef {
  absl::string_view family;  // "core"
  uint16_t index;            // dense in the family
  absl::string_view name;    // of the text form and of the wire: a field of Node, or an enumerator without its prefix
  absl::string_view summary;
  OpClass op_class;
  int min_operands;
  int max_operands;  // kVariadic: no bound. Without shape sources.
  absl::Span<const AttrDef> attrs;
  uint32_t traits;
  DTypeSet dtypes;  // of the first operand that is computed with (or of the result, where there is none)
  Facet<InferRule> infer;
  RefusalTable refusals;  // of the type rule
  Facet<ReferenceRule> reference;
  Facet<PermuteRule> permute;
  Facet<JvpRule> jvp;
  Facet<TransposeRule> linear_transpose;
  // An op that has this rule never reaches a backend.
  Facet<ExpandRule> expand = Facet<ExpandRule>::None("a backend's kernels compute it");
  int num_results = 1;
  WorkRule* work = nullptr;  // null: one operation for each element that is read or written

  bool has(OpTraits trait) const { return (traits & trait) != 0; }
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_IR_OP_DEF_H_
