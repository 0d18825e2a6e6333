#ifndef TENSORD_ENGINE_IR_GRAPH_H_
#define TENSORD_ENGINE_IR_GRAPH_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "engine/ir/attribute.h"
#include "engine/ir/op_def.h"
#include "engine/ir/value_id.h"
#include "engine/tensor/tensor_type.h"

namespace tensord {

// The algebra in which Add, Multiply, DotGeneral and Reduce{SUM} are read; the values are those of tensord.v1.Algebra.
enum class Algebra : uint8_t { kStandard = 0, kMaxPlus = 1, kMinPlus = 2, kMaxTimes = 3, kOrAnd = 4 };

struct GraphInput {
  std::string name;
  TensorType type;
};

class Graph;

// One application of an op. Its results are the values first_result, first_result + 1, ….
struct Node {
  std::string name;  // the client's; a pass keeps the name of the node that it rewrites
  const OpDef* op = nullptr;
  Attributes attrs;
  absl::InlinedVector<ValueId, 3> operands;
  ValueId first_result;
  int32_t num_results = 1;
  // The computation of a node that a pass made of several nodes, typed, from its operands to its results. Null for all
  // other nodes.
  std::shared_ptr<const Graph> body;
};

struct GraphOutput {
  std::string name;
  ValueId value;
};

// A dataflow graph in topological order. Values, nodes and outputs are only ever appended, so an operand always
// stands before its reader. A value type; thread-compatible. Types of results are unset until InferTypes (verifier.h).
class Graph {
 public:
  // Returns a graph without inputs, nodes and outputs, to build the successor of `graph`: with its name and algebra,
  // and room for as much as it has. `graph` may then be taken apart.
  static Graph EmptyLike(const Graph& graph);

  const std::string& name() const { return name_; }
  void set_name(absl::string_view name) { name_ = std::string(name); }
  Algebra algebra() const { return algebra_; }
  void set_algebra(Algebra algebra) { algebra_ = algebra; }

  const std::vector<GraphInput>& inputs() const { return inputs_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<GraphOutput>& outputs() const { return outputs_; }
  int32_t num_values() const { return static_cast<int32_t>(types_.size()); }

  // Inputs precede nodes.
  ValueId AddInput(absl::string_view name, TensorType type);
  // The first result. Operands must be values of this graph.
  ValueId AddNode(Node node);
  void AddOutput(absl::string_view name, ValueId value);

  // Gives the nodes away to the builder of the next graph, and leaves a graph without nodes and types.
  std::vector<Node> TakeNodes() { return std::exchange(nodes_, {}); }
  std::vector<TensorType> TakeTypes() { return std::exchange(types_, {}); }
  // Give parts away likewise one by one: the node has no attributes afterwards, the value no type.
  Attributes TakeAttrs(int32_t node) { return std::exchange(nodes_[static_cast<size_t>(node)].attrs, {}); }
  TensorType TakeType(ValueId v) { return std::exchange(types_[static_cast<size_t>(v.index)], {}); }

  const TensorType& type(ValueId v) const { return types_[static_cast<size_t>(v.index)]; }
  void set_type(ValueId v, TensorType type) { types_[static_cast<size_t>(v.index)] = std::move(type); }
  bool is_input(ValueId v) const { return v.index < static_cast<int32_t>(inputs_.size()); }
  // Returns the index of the node that computes v; v must not be an input.
  int32_t producer(ValueId v) const { return producers_[static_cast<size_t>(v.index)]; }
  // "x", or "x:1" for a further result.
  std::string NameOf(ValueId v) const;

 private:
  std::string name_;
  Algebra algebra_ = Algebra::kStandard;
  std::vector<GraphInput> inputs_;
  std::vector<Node> nodes_;
  std::vector<GraphOutput> outputs_;
  std::vector<TensorType> types_;   // by value
  std::vector<int32_t> producers_;  // by value; -1 for an input
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_IR_GRAPH_H_
