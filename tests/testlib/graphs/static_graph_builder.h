#ifndef TENSORD_TESTS_TESTLIB_GRAPHS_STATIC_GRAPH_BUILDER_H_
#define TENSORD_TESTS_TESTLIB_GRAPHS_STATIC_GRAPH_BUILDER_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/ir/graph.h"
#include "engine/ops/core_ops.h"
#include "engine/tensor/shape.h"

namespace tensord {

// Writes graphs without symbols, a node a call. Types are inferred as it goes; what the inference refuses ends the
// process, for the caller is wrong. Binary repeats a right-hand side of rank 0.
class StaticGraphBuilder {
 public:
  using Axes = std::vector<int64_t>;

  explicit StaticGraphBuilder(absl::string_view name) { graph_.set_name(name); }

  ValueId Input(absl::string_view name, DType dtype, const Shape& shape);
  void Output(absl::string_view name, ValueId value) { graph_.AddOutput(name, value); }
  // With the inputs before the nodes, as a graph must be, whatever the order of the calls was. Ends the builder's use.
  Graph Take();

  Shape ShapeOf(ValueId v) const;
  DType DTypeOf(ValueId v) const { return graph_.type(v).dtype; }

  // Adds a constant of rank 0; the value is rounded to the dtype, which is a real one.
  ValueId Scalar(DType dtype, double value);
  ValueId Iota(DType dtype, const Shape& shape, int64_t axis);
  ValueId Unary(CoreOp op, ValueId x);
  ValueId Binary(CoreOp op, ValueId a, ValueId b);
  ValueId Binary(CoreOp op, ValueId a, double b) { return Binary(op, a, Scalar(DTypeOf(a), b)); }
  ValueId Compare(CompareDirection direction, ValueId a, ValueId b);
  ValueId Select(ValueId pred, ValueId on_true, ValueId on_false);
  ValueId Clamp(ValueId low, ValueId x, ValueId high);
  ValueId Convert(ValueId x, DType dtype);

  ValueId Broadcast(ValueId x, const Shape& shape, const Axes& axes);
  ValueId Transpose(ValueId x, const Axes& permutation);
  ValueId Reshape(ValueId x, const Shape& shape);
  ValueId Slice(ValueId x, const Axes& starts, const Axes& limits);
  ValueId Pad(ValueId x, double value, const Axes& low, const Axes& high);
  ValueId Concatenate(const std::vector<ValueId>& parts, int64_t axis);
  ValueId Reduce(ReduceKind kind, ValueId x, const Axes& axes);
  // A reduction repeated to the operand's shape.
  ValueId ReduceAndRepeat(ReduceKind kind, ValueId x, const Axes& axes);
  ValueId Dot(ValueId lhs, ValueId rhs, const Axes& lhs_contracted, const Axes& rhs_contracted,
              const Axes& lhs_batch = {}, const Axes& rhs_batch = {});
  ValueId DynamicUpdateSlice(ValueId x, ValueId update, ValueId starts);

  // Any op, with attributes made for it.
  ValueId Apply(CoreOp op, const std::vector<ValueId>& operands, Attributes attrs);
  static Attributes AttrsOf(CoreOp op) { return Attributes(Def(op).attrs); }
  // All results of an op of any family, by its name; with attributes made for it.
  std::vector<ValueId> ApplyNamed(absl::string_view op, const std::vector<ValueId>& operands, Attributes attrs);
  std::vector<ValueId> ApplyNamed(absl::string_view op, const std::vector<ValueId>& operands) {
    return ApplyNamed(op, operands, AttrsOf(op));
  }
  static Attributes AttrsOf(absl::string_view op);

 private:
  std::vector<ValueId> Apply(const OpDef& op, const std::vector<ValueId>& operands, Attributes attrs);

  Graph graph_;  // inputs and nodes mixed, which only Take() puts right
  std::vector<ValueId> inputs_;
};

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_GRAPHS_STATIC_GRAPH_BUILDER_H_
