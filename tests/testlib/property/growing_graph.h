#ifndef TENSORD_TESTS_TESTLIB_PROPERTY_GROWING_GRAPH_H_
#define TENSORD_TESTS_TESTLIB_PROPERTY_GROWING_GRAPH_H_

#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "engine/ir/graph.h"
#include "engine/ir/size_binding.h"
#include "engine/ops/core_ops.h"
#include "tests/testlib/numbers/random_literal.h"

namespace tensord::property {

struct GrowthOptions {
  int max_nodes = 60;
  int max_elements = 512;  // of one value, under every choice of sizes
  int size_choices = 3;    // how many sets of arguments the graph is made for, at least 1
  int max_size = 20;       // of an axis, where it is a number
  // Sizes of axes and of symbols, of which a graph uses three; empty: small ones of any kind.
  std::vector<int64_t> sizes = {};
  int64_t max_products = int64_t{1} << 40;  // multiplications of one contraction, under every choice of sizes
  DTypeSet dtypes = kAnyDType;              // of inputs
  bool connected = false;                   // operands are mostly large ones of the newest values
};

using Ints = std::vector<int64_t>;

// A typed graph that grows node by node. It comes with a few sets of arguments ("choices", whose sizes differ if the
// inputs have symbols). A node is taken only if InferNode accepts it and its guards hold for all of them: the grown
// graph is valid, and runs on every choice.
//
// Every value is known to be exact (without a rounded operation: any correct program has the same bits) or not. The
// growth rules feed inexact values only into operations that change little when their operands do, so that an error
// bound for the results stays small (reference_bounds.h).
class GrowingGraph {
 public:
  // With inputs, and no node yet.
  GrowingGraph(const GrowthOptions& options, std::mt19937_64* random);

  // Ends the growth: outputs are added.
  Graph Finish();
  // Returns the arguments by choice.
  const std::vector<std::vector<Literal>>& arguments() const { return arguments_; }

  const Graph& graph() const { return graph_; }
  const TensorType& Type(ValueId v) const { return graph_.type(v); }
  int64_t rank(ValueId v) const { return Type(v).rank(); }
  bool exact(ValueId v) const { return exact_[static_cast<size_t>(v.index)]; }

  // Draws.
  int64_t Below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  int64_t Between(int64_t low, int64_t high) { return low + Below(high - low + 1); }
  bool OneIn(int64_t n) { return Below(n) == 0; }
  Ints Permutation(int64_t n);
  // Some of the axes, in any order.
  Ints SomeAxes(int64_t rank, int64_t one_in);
  DType AnyOf(DTypeSet dtypes);
  // A size expression over the graph's symbols and numbers, mostly a bare one.
  DimExpr Size();
  LiteralPtr Constant(const ConcreteType& type);
  std::mt19937_64* random() { return &random_; }

  // Values. Where there is none of the dtype, one is made by a Convert or a Constant.
  ValueId Any();
  ValueId Any(DType dtype, bool exact);
  // Returns another value of the very type of v; v itself if there is none.
  ValueId Alike(ValueId v, bool exact);
  // A value of that dtype and shape: one that is there, or one made of others.
  std::optional<ValueId> WithShape(DType dtype, SymbolicShape shape, bool exact);
  // A scalar constant.
  ValueId Scalar(DType dtype);

  // The least and the greatest size over all choices.
  int64_t LeastSize(const Dim& dim) const;
  int64_t GreatestSize(const Dim& dim) const;

  // Appends a node unless it is invalid for some choice, or too large, or its operands are not exact where the op needs
  // it. The value is the new node's result.
  std::optional<ValueId> Append(CoreOp op, Attributes attrs, const std::vector<ValueId>& operands);
  // The same for an op of one result that is exact where its operands are, such as one of a family on integers.
  std::optional<ValueId> AppendExact(const OpDef& op, Attributes attrs, const std::vector<ValueId>& operands);

 private:
  TensorType InputType();
  int64_t GreatestElements(ValueId v) const;
  // Picks among some values in their order, if the graph is to be connected.
  ValueId LargeAndNew(const std::vector<ValueId>& values);
  // A value and its axis of that size.
  std::optional<std::pair<ValueId, int64_t>> FindAxis(const Dim& dim) const;
  // Binds the size that a DynamicTruncate decides, in every choice; false if the reference cannot compute it.
  bool BindTruncation(const Node& node);
  bool HoldsForAllChoices(const std::vector<ShapeGuard>& guards, const TensorType& type) const;
  // The node, typed, unless it is invalid for some choice or too large, or `exactness`, given the result's type, says
  // that its operands do not do. Else that says whether the result is exact.
  std::optional<ValueId> AppendChecked(const OpDef& op, Attributes attrs, const std::vector<ValueId>& operands,
                                       absl::FunctionRef<std::optional<bool>(const Node&, DType)> exactness);
  bool IsAffordable(const Node& node, const TensorType& result) const;

  const GrowthOptions options_;
  std::mt19937_64& random_;
  Graph graph_;
  Values constants_ = Values::kIntegers;
  std::vector<std::string> symbols_;
  std::vector<int64_t> sizes_;                   // where the options give sizes: those of this graph
  std::vector<std::vector<Literal>> arguments_;  // by choice
  std::vector<SizeBinding> bindings_;            // by choice
  RunTimeBounds run_time_bounds_;
  std::vector<bool> exact_;  // by value
};

inline Attributes AttrsOf(CoreOp op) { return Attributes(Def(op).attrs); }

}  // namespace tensord::property

#endif  // TENSORD_TESTS_TESTLIB_PROPERTY_GROWING_GRAPH_H_
