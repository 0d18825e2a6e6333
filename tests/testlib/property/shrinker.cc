#include "tests/testlib/property/shrinker.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/ir/literal_text.h"
#include "engine/ir/printer.h"
#include "engine/ir/size_binding.h"
#include "engine/ir/verifier.h"
#include "engine/ops/core_ops.h"
#include "engine/ops/index_walk.h"
#include "engine/ops/scalar/scalar_math.h"
#include "engine/reference/evaluator.h"

namespace tensord::property {
namespace {

// The uses of `value` become uses of the earlier value `by`, or of a new input that holds `literal`.
struct Replacement {
  int32_t value = -1;
  int32_t by = -1;
  std::optional<Literal> literal;
};

// A name that no input or node has.
std::string FreshName(const Graph& graph) {
  std::set<std::string> taken;
  for (const GraphInput& input : graph.inputs()) taken.insert(input.name);
  for (const Node& node : graph.nodes()) taken.insert(node.name);
  size_t i = 0;
  while (taken.contains(absl::StrCat("v", i))) ++i;
  return absl::StrCat("v", i);
}

// The outputs of a graph, and the results of nodes that `node` reads.
std::vector<GraphOutput> OutputsWithOperands(const Graph& graph, const Node& node) {
  std::vector<GraphOutput> outputs = graph.outputs();
  std::set<std::string> taken;
  for (const GraphOutput& output : outputs) taken.insert(output.name);
  size_t i = 0;
  for (ValueId operand : node.operands) {
    if (graph.is_input(operand)) continue;
    while (!taken.insert(absl::StrCat("kept", i)).second) ++i;
    outputs.push_back({absl::StrCat("kept", i), operand});
  }
  return outputs;
}

// The case with one value replaced and the outputs given, without the nodes and inputs that nobody needs.
FailingCase Rebuilt(const FailingCase& from, const std::vector<GraphOutput>& outputs, const Replacement& change) {
  const Graph& graph = from.graph;
  const auto final_of = [&](ValueId v) { return v.index == change.value && change.by >= 0 ? ValueId{change.by} : v; };
  const bool new_input = change.literal.has_value();
  std::vector<bool> live(static_cast<size_t>(graph.num_values()));
  for (const GraphOutput& output : outputs) live[static_cast<size_t>(final_of(output.value).index)] = true;
  for (size_t i = graph.nodes().size(); i-- > 0;) {
    const Node& node = graph.nodes()[i];
    const bool replaced = node.first_result.index == change.value;
    if (!live[static_cast<size_t>(node.first_result.index)] || (replaced && new_input)) continue;
    for (ValueId v : node.operands) live[static_cast<size_t>(final_of(v).index)] = true;
  }
  FailingCase to;
  to.graph.set_name(graph.name());
  to.graph.set_algebra(graph.algebra());
  std::vector<ValueId> now(static_cast<size_t>(graph.num_values()));
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    if (!live[i]) continue;
    now[i] = to.graph.AddInput(graph.inputs()[i].name, graph.inputs()[i].type);
    to.arguments.push_back(from.arguments[i]);
  }
  if (new_input && live[static_cast<size_t>(change.value)]) {
    now[static_cast<size_t>(change.value)] = to.graph.AddInput(FreshName(graph), ToTensorType(change.literal->type()));
    to.arguments.push_back(*change.literal);
  }
  for (const Node& node : graph.nodes()) {
    const size_t result = static_cast<size_t>(node.first_result.index);
    if (!live[result] || (new_input && node.first_result.index == change.value)) continue;
    Node copy = node;
    for (ValueId& v : copy.operands) v = now[static_cast<size_t>(final_of(v).index)];
    now[result] = to.graph.AddNode(std::move(copy));
  }
  for (const GraphOutput& output : outputs) {
    to.graph.AddOutput(output.name, now[static_cast<size_t>(final_of(output.value).index)]);
  }
  return to;
}

// The case with every size, of inputs and in attributes, replaced by a function of it.
FailingCase WithSizes(const FailingCase& from, const std::function<Dim(const DimExpr&)>& size) {
  FailingCase to;
  to.graph.set_name(from.graph.name());
  to.graph.set_algebra(from.graph.algebra());
  const auto resized = [&](TensorType type) {
    for (Dim& dim : type.shape) dim = size(dim.size);
    return type;
  };
  for (const GraphInput& input : from.graph.inputs()) to.graph.AddInput(input.name, resized(input.type));
  for (const Node& node : from.graph.nodes()) {
    Node copy = node;
    for (size_t i = 0; i < node.op->attrs.size(); ++i) {
      if (node.op->attrs[i].kind == AttrKind::kDims) {
        auto dims = std::get<std::vector<DimExpr>>(node.attrs.at(i));
        for (DimExpr& dim : dims) dim = size(dim).size;
        copy.attrs.Set(i, std::move(dims));
      } else if (node.op->attrs[i].kind == AttrKind::kType) {
        copy.attrs.Set(i, resized(*std::get<SharedType>(node.attrs.at(i))));
      }
    }
    to.graph.AddNode(std::move(copy));
  }
  for (const GraphOutput& output : from.graph.outputs()) to.graph.AddOutput(output.name, output.value);
  return to;
}

// The first entries of a literal along every axis.
Literal Cropped(const Literal& from, const Shape& shape) {
  Literal to = Literal::Create({from.dtype(), shape}).value();
  const Shape strides = ColumnMajorStrides(from.shape());
  const int64_t size = SizeOf(from.dtype());
  for (IndexWalk i(shape); !i.done(); i.Next()) {
    int64_t at = 0;
    for (size_t k = 0; k < shape.size(); ++k) at += i[k] * strides[k];
    std::memcpy(to.mutable_data() + i.linear() * size, from.bytes().data() + at * size, static_cast<size_t>(size));
  }
  return to;
}

class Shrinker {
 public:
  Shrinker(FailingCase failing, const StillFails& still_fails, absl::Time deadline)
      : best_(std::move(failing)), still_fails_(still_fails), deadline_(deadline) {}

  FailingCase Run() {
    Take(Rebuilt(best_, best_.graph.outputs(), {}));
    bool changed = true;
    while (changed && InTime()) {
      changed = FewerOutputs();
      changed |= Numbers();
      changed |= FewerNodes();
      changed |= SmallerSizes();
      changed |= FewerAxes();
      changed |= PlainerValues();
    }
    return best_;
  }

 private:
  bool InTime() const { return absl::Now() < deadline_; }

  // Keeps a candidate that is valid and still fails.
  bool Take(FailingCase candidate) {
    if (!InTime()) return false;
    const auto guards = InferTypes(&candidate.graph);
    if (!guards.ok() || !EvaluateReference(candidate.graph, *guards, candidate.arguments).ok()) return false;
    if (!still_fails_(candidate)) return false;
    best_ = std::move(candidate);
    return true;
  }

  bool FewerOutputs() {
    bool changed = false;
    for (size_t i = 0; best_.graph.outputs().size() > 1 && i < best_.graph.outputs().size(); ++i) {
      if (Take(Rebuilt(best_, {best_.graph.outputs()[i]}, {}))) return true;
    }
    for (size_t i = 0; best_.graph.outputs().size() > 1 && i < best_.graph.outputs().size(); ++i) {
      std::vector<GraphOutput> outputs = best_.graph.outputs();
      outputs.erase(outputs.begin() + static_cast<int64_t>(i));
      changed |= Take(Rebuilt(best_, outputs, {}));
    }
    return changed;
  }

  // Symbols become the numbers that the arguments give them.
  bool Numbers() {
    bool symbolic = false;
    std::vector<const TensorType*> types;
    std::vector<ConcreteType> arguments;
    for (const GraphInput& input : best_.graph.inputs()) {
      types.push_back(&input.type);
      symbolic = symbolic || !input.type.is_static();
    }
    for (const Literal& argument : best_.arguments) arguments.push_back(argument.type());
    const auto binding = SizeBinding::Create(types, arguments);
    if (!symbolic || !binding.ok()) return false;
    FailingCase candidate = WithSizes(best_, [&](const DimExpr& size) -> Dim {
      const auto number = size.Substitute([&](const DimAtom& atom) -> absl::StatusOr<DimExpr> {
        if (atom.kind == DimAtom::Kind::kOperandAxis) return DimExpr::OperandAxis(atom.operand, atom.axis);
        const auto value = binding->Evaluate(DimExpr::Symbol(atom.symbol));
        if (!value.ok()) return value.status();
        return DimExpr(*value);
      });
      return Dim(number.value_or(size));
    });
    candidate.arguments = best_.arguments;
    return Take(std::move(candidate));
  }

  // The values of all nodes, by value; empty if they cannot be had.
  std::vector<Literal> AllValues() const {
    Graph all = best_.graph;
    const auto guards = InferTypes(&all);
    if (!guards.ok()) return {};
    const size_t outputs = all.outputs().size();
    for (int32_t i = 0; i < all.num_values(); ++i) all.AddOutput("", {i});
    auto values = EvaluateReference(all, *guards, best_.arguments);
    if (!values.ok()) return {};
    values->erase(values->begin(), values->begin() + static_cast<int64_t>(outputs));
    return *std::move(values);
  }

  bool FewerNodes() {
    bool changed = false;
    std::vector<Literal> values = AllValues();
    const auto replace_in = [&](const std::vector<GraphOutput>& outputs, int32_t value, Replacement change) {
      change.value = value;
      if (!Take(Rebuilt(best_, outputs, change))) return false;
      values = AllValues();
      return changed = true;
    };
    const auto replace = [&](int32_t value, Replacement change) {
      return replace_in(best_.graph.outputs(), value, std::move(change));
    };
    // From the inputs on: what is far from the failure goes in large pieces, when its reader becomes an input.
    for (int32_t v = best_.graph.num_values() - 1; v >= 0; --v) {
      if (v >= best_.graph.num_values() || best_.graph.is_input({v}) || values.empty()) continue;
      if (replace(v, {.literal = values[static_cast<size_t>(v)]})) continue;
      const Node& node = best_.graph.nodes()[static_cast<size_t>(best_.graph.producer({v}))];
      const auto operands = node.operands;
      // Tries operands of another type too: a reader may take both, and an output does.
      const bool replaced = std::any_of(operands.begin(), operands.end(),
                                        [&](ValueId operand) { return replace(v, {.by = operand.index}); });
      if (replaced) continue;
      // What the node reads may matter, and what reads it, but not that one reads the other.
      const std::vector<GraphOutput> apart = OutputsWithOperands(best_.graph, node);
      if (apart.size() > best_.graph.outputs().size()) {
        replace_in(apart, v, {.literal = values[static_cast<size_t>(v)]});
      }
    }
    // One input for several of a type.
    for (int32_t v = static_cast<int32_t>(best_.graph.inputs().size()) - 1; v > 0; --v) {
      for (int32_t earlier = 0; earlier < v && v < static_cast<int32_t>(best_.graph.inputs().size()); ++earlier) {
        if (best_.arguments[static_cast<size_t>(v)].type() != best_.arguments[static_cast<size_t>(earlier)].type()) {
          continue;
        }
        if (replace(v, {.by = earlier})) break;
      }
    }
    return changed;
  }

  // One size after the other, wherever it stands.
  bool SmallerSizes() {
    std::set<int64_t> sizes;
    for (const GraphInput& input : best_.graph.inputs()) {
      for (const Dim& dim : input.type.shape) {
        if (dim.is_static()) sizes.insert(dim.size.constant());
      }
    }
    bool changed = false;
    for (int64_t size : sizes) {
      for (int64_t smaller : {int64_t{0}, int64_t{1}, size / 2, size - 1}) {
        if (smaller >= size || smaller < 0) continue;
        FailingCase candidate =
            WithSizes(best_, [&](const DimExpr& dim) -> Dim { return Dim(dim.is(size) ? DimExpr(smaller) : dim); });
        for (const Literal& argument : best_.arguments) {
          Shape shape = argument.shape();
          for (int64_t& s : shape) s = s == size ? smaller : s;
          candidate.arguments.push_back(Cropped(argument, shape));
        }
        if (Take(std::move(candidate))) {
          changed = true;
          break;
        }
      }
    }
    return changed;
  }

  // The last axis of an input, and of those that have its shape.
  bool FewerAxes() {
    bool changed = false;
    for (size_t i = 0; i < best_.graph.inputs().size(); ++i) {
      const SymbolicShape shape = best_.graph.inputs()[i].type.shape;
      if (shape.empty() || !best_.graph.inputs()[i].type.is_static() || shape.back().size.is(0)) continue;
      FailingCase candidate;
      for (size_t k = 0; k < best_.graph.inputs().size(); ++k) {
        TensorType type = best_.graph.inputs()[k].type;
        Literal argument = best_.arguments[k];
        if (type.shape == shape) {
          type.shape.pop_back();
          Shape one = argument.shape();
          one.back() = 1;
          argument = Cropped(argument, one);
          one.pop_back();
          argument = argument.WithShape(one);
        }
        candidate.graph.AddInput(best_.graph.inputs()[k].name, type);
        candidate.arguments.push_back(std::move(argument));
      }
      for (const Node& node : best_.graph.nodes()) candidate.graph.AddNode(node);
      for (const GraphOutput& output : best_.graph.outputs()) candidate.graph.AddOutput(output.name, output.value);
      changed |= Take(std::move(candidate));
    }
    return changed;
  }

  bool PlainerValues() {
    bool changed = false;
    const auto zero = [](Literal literal, size_t first, size_t count) {
      const size_t size = static_cast<size_t>(SizeOf(literal.dtype()));
      if (count > 0) std::memset(literal.mutable_data() + first * size, 0, count * size);
      return literal;
    };
    for (size_t a = 0; a < best_.arguments.size(); ++a) {
      const size_t elements = static_cast<size_t>(best_.arguments[a].num_elements());
      // Halves, quarters, … of the elements.
      for (size_t count = elements; count > 0; count /= 2) {
        for (size_t first = 0; first + count <= elements && InTime(); first += count) {
          FailingCase candidate = best_;
          candidate.arguments[a] = zero(best_.arguments[a], first, count);
          if (candidate.arguments[a] == best_.arguments[a]) continue;
          changed |= Take(std::move(candidate));
        }
      }
    }
    return changed;
  }

  FailingCase best_;
  const StillFails& still_fails_;
  const absl::Time deadline_;
};

}  // namespace

FailingCase Shrink(FailingCase failing, const StillFails& still_fails, absl::Time deadline) {
  return Shrinker(std::move(failing), still_fails, deadline).Run();
}

std::string ToString(const FailingCase& failing) {
  std::string text = PrintGraph(failing.graph);
  for (size_t i = 0; i < failing.arguments.size(); ++i) {
    absl::StrAppend(&text, "%", failing.graph.inputs()[i].name, " = ", LiteralText(failing.arguments[i]), "\n");
  }
  return text;
}

}  // namespace tensord::property
