#include "engine/passes/rewriting/graph_rewriter.h"

#include <memory>
#include <utility>

#include "engine/base/stop_signal.h"

namespace tensord {
namespace {

// The most times that a rule may rewrite its own result, for one node: more than any chain of rules is long.
constexpr int kMaxDepth = 32;

bool IsPlain(const Node& node) { return node.num_results == 1 && node.body == nullptr; }

}  // namespace

bool GraphRewriter::Run(Graph* graph, const Rule& rule, Counting counting) {
  GraphRewriter rewriter(graph, rule);
  if (counting == kCountUses) rewriter.CountUses();
  return rewriter.RunOverAll();
}

void GraphRewriter::CountUses() {
  old_uses_.resize(static_cast<size_t>(graph_.num_values()));
  for (const Node& node : graph_.nodes()) {
    for (ValueId operand : node.operands) ++old_uses_[static_cast<size_t>(operand.index)];
  }
  for (const GraphOutput& output : graph_.outputs()) ++old_uses_[static_cast<size_t>(output.value.index)];
  uses_ = old_uses_;
}

bool GraphRewriter::RunOverAll() {
  const size_t num_nodes = graph_.nodes().size();
  for (next_ = 0; next_ < num_nodes; ++next_) {
    // The vectors change hands when rebuilding starts; their elements stay where they are.
    const Node& node = rebuilding_ ? old_nodes_[next_] : graph_.nodes()[next_];
    const ValueId result = node.first_result;
    next_value_ = result.index;
    if (rebuilding_) {
      for (ValueId& operand : old_nodes_[next_].operands) operand = Mapped(operand);
    }
    std::optional<ValueId> instead;
    // If nobody wants the graph any more, the rest stays as it is.
    if (IsPlain(node) && !StopRequested()) {
      result_type_ = rebuilding_ ? &old_types_[static_cast<size_t>(result.index)] : &graph_.type(result);
      instead = rule_(node, *this);
    }
    if (instead.has_value()) {
      StartRebuilding();
      Mapped(result) = *instead;
      if (!uses_.empty()) uses_[static_cast<size_t>(instead->index)] += old_uses_[static_cast<size_t>(result.index)];
    } else if (rebuilding_) {
      Move(next_);
    }
  }
  if (!rebuilding_) return false;
  for (const GraphOutput& output : graph_.outputs()) new_.AddOutput(output.name, Mapped(output.value));
  graph_ = std::move(new_);
  return true;
}

void GraphRewriter::StartRebuilding() {
  if (rebuilding_) return;
  rebuilding_ = true;
  map_.resize(static_cast<size_t>(graph_.num_values()));
  new_ = Graph::EmptyLike(graph_);
  old_nodes_ = graph_.TakeNodes();
  old_types_ = graph_.TakeTypes();
  for (const GraphInput& input : graph_.inputs()) {
    const ValueId value = new_.AddInput(input.name, input.type);
    Mapped(value) = value;
  }
  for (size_t i = 0; i < next_; ++i) Move(i);
}

void GraphRewriter::Move(size_t i) {
  const ValueId old = old_nodes_[i].first_result;
  const int32_t num_results = old_nodes_[i].num_results;
  const ValueId value = new_.AddNode(std::move(old_nodes_[i]));
  for (int32_t r = 0; r < num_results; ++r) {
    new_.set_type({value.index + r}, std::move(old_types_[static_cast<size_t>(old.index + r)]));
    Mapped({old.index + r}) = {value.index + r};
    if (!uses_.empty()) SetUses({value.index + r}, old_uses_[static_cast<size_t>(old.index + r)]);
  }
}

void GraphRewriter::SetUses(ValueId value, int32_t uses) {
  if (uses_.size() <= static_cast<size_t>(value.index)) uses_.resize(static_cast<size_t>(value.index) + 1);
  uses_[static_cast<size_t>(value.index)] = uses;
}

ValueId GraphRewriter::Add(Node node, TensorType type) {
  if (depth_ < kMaxDepth) {
    const TensorType* const outer = std::exchange(result_type_, &type);
    ++depth_;
    const std::optional<ValueId> instead = rule_(node, *this);
    --depth_;
    result_type_ = outer;
    if (instead.has_value()) return *instead;
  }
  StartRebuilding();
  if (!uses_.empty()) {
    for (ValueId operand : node.operands) ++uses_[static_cast<size_t>(operand.index)];
  }
  const ValueId value = new_.AddNode(std::move(node));
  new_.set_type(value, std::move(type));
  if (!uses_.empty()) SetUses(value, 0);
  return value;
}

ValueId GraphRewriter::Add(CoreOp op, absl::string_view name, Attributes attrs, absl::Span<const ValueId> operands,
                           TensorType type) {
  return Add(Node{.name = std::string(name),
                  .op = &Def(op),
                  .attrs = std::move(attrs),
                  .operands = {operands.begin(), operands.end()},
                  .first_result = {},
                  .body = nullptr},
             std::move(type));
}

ValueId GraphRewriter::AddReshape(absl::string_view name, ValueId operand, TensorType type) {
  std::vector<DimExpr> shape;
  for (const Dim& dim : type.shape) shape.push_back(dim.size);
  Attributes attrs(Def(CoreOp::kReshape).attrs);
  attrs.Set("shape", std::move(shape));
  return Add(CoreOp::kReshape, name, std::move(attrs), {operand}, std::move(type));
}

ValueId GraphRewriter::AddConstant(absl::string_view name, Literal value) {
  TensorType type = ToTensorType(value.type());
  Attributes attrs(Def(CoreOp::kConstant).attrs);
  attrs.Set("value", std::make_shared<const Literal>(std::move(value)));
  return Add(CoreOp::kConstant, name, std::move(attrs), {}, std::move(type));
}

}  // namespace tensord
