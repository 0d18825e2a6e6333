#ifndef TENSORD_ENGINE_IR_DERIVATIVE_BUILDER_H_
#define TENSORD_ENGINE_IR_DERIVATIVE_BUILDER_H_

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/ir/graph.h"
#include "engine/tensor/run_time_size.h"

namespace tensord {

// The most that a graph may grow to while derivatives are appended to it: the bounds of graphs from outside, since no
// larger one can be compiled.
struct DerivativeBounds {
  int64_t nodes = std::numeric_limits<int64_t>::max();
  int64_t edges = std::numeric_limits<int64_t>::max();
};

// Appends the typed nodes of derivatives to a graph. Each is named after the node that it differentiates, and no two
// nodes or inputs have one name. Ops are not expanded: the graph stays in the vocabulary of clients.
//
// The first failure is kept in status() and ends the work: from then on every value is unset, and rules need not look.
// LIMIT_EXCEEDED past the bounds, and what the thread's StopSignal says, are such failures.
// Borrows the graph; confined to one thread.
class DerivativeBuilder {
 public:
  using Values = absl::InlinedVector<ValueId, 4>;

  // Names of the graph's inputs and nodes, and those in `taken`, are not given again.
  DerivativeBuilder(Graph* graph, absl::Span<const absl::string_view> taken, const DerivativeBounds& bounds = {});

  // Names the node, and its op, that nodes are written for from now on: "y.jvp", "y.jvp2", … for the node y and the
  // suffix "jvp". Refusals name them.
  void SetNode(absl::string_view node, absl::string_view op, absl::string_view suffix);

  // Appends a node, and returns its results. Relations between sizes that only a run can decide are taken to hold.
  Values AddAll(const OpDef& op, Attributes attrs, absl::Span<const ValueId> operands);
  // Appends a node of an op with one result.
  ValueId Add(const OpDef& op, Attributes attrs, absl::Span<const ValueId> operands);
  ValueId Add(const OpDef& op, absl::Span<const ValueId> operands) { return Add(op, Attributes(op.attrs), operands); }
  // Appends a node of an op with shape sources, whose sizes in the attribute `sizes` are those of `shape`. Sizes that
  // the run decides are read from values that have them.
  ValueId AddSized(const OpDef& op, Attributes attrs, absl::string_view sizes, const SymbolicShape& shape,
                   absl::Span<const ValueId> operands);
  // Appends a copy of another graph's node, of the same name, with types and operands of this graph. Callers that copy
  // in a loop look at status().
  ValueId Copy(const Node& node, absl::Span<const ValueId> operands, absl::Span<const TensorType* const> types);

  // Returns a name like `name` that no input or node has, and takes it.
  std::string TakeName(absl::string_view name);

  // Remembers the value for the sizes of its axes that the run decides.
  void OfferSizes(ValueId value);

  const TensorType& type(ValueId value) const;
  const absl::Status& status() const { return status_; }
  bool ok() const { return status_.ok(); }
  // Keeps the failure, with the node, unless there is one already.
  void Fail(absl::Status status);

 private:
  // Returns a size that the run decides as an expression over axes of values that have it, or the symbols in it. Those
  // are appended to the operands.
  absl::StatusOr<DimExpr> ReadFromOperands(const DimExpr& size, Values* operands) const;
  // Counts a node that is about to be appended. False if the work has ended.
  bool Admit(size_t operands);

  Graph& graph_;
  const DerivativeBounds most_;
  int64_t edges_ = 0;
  int64_t expression_parts_ = 0;
  std::string node_, op_, suffix_;
  absl::Status status_;
  absl::flat_hash_set<std::string> names_;
  absl::flat_hash_map<std::string, int64_t> numbers_;  // by name: the last number that was behind it
  absl::flat_hash_map<std::string, std::pair<ValueId, int64_t>> sizes_;
  RunTimeBounds bounds_;
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_IR_DERIVATIVE_BUILDER_H_
