#include "engine/ir/derivative_builder.h"

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/stop_signal.h"
#include "engine/ir/names.h"
#include "engine/ir/verifier.h"

namespace tensord {
namespace {

// The bytes of a client's name that a new name begins with: with a suffix it must keep the limit on names.
constexpr size_t kMostNameBytes = 128;

absl::string_view Shortened(absl::string_view name) {
  if (name.size() <= kMostNameBytes) return name;
  size_t end = kMostNameBytes;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) --end;  // within a UTF-8 character
  return name.substr(0, end);
}

}  // namespace

DerivativeBuilder::DerivativeBuilder(Graph* graph, absl::Span<const absl::string_view> taken,
                                     const DerivativeBounds& bounds)
    : graph_(*graph), most_(bounds) {
  for (absl::string_view name : taken) names_.insert(std::string(name));
  for (const GraphInput& input : graph_.inputs()) names_.insert(input.name);
  for (const Node& node : graph_.nodes()) names_.insert(node.name);
}

void DerivativeBuilder::SetNode(absl::string_view node, absl::string_view op, absl::string_view suffix) {
  node_ = std::string(node);
  op_ = std::string(op);
  suffix_ = std::string(suffix);
}

std::string DerivativeBuilder::TakeName(absl::string_view name) {
  std::string wanted(Shortened(name));
  if (names_.insert(wanted).second) return wanted;
  for (int64_t& number = numbers_.try_emplace(wanted, 1).first->second;;) {
    std::string numbered = absl::StrCat(wanted, ++number);
    if (names_.insert(numbered).second) return numbered;
  }
}

DerivativeBuilder::Values DerivativeBuilder::AddAll(const OpDef& op, Attributes attrs,
                                                    absl::Span<const ValueId> operands) {
  Values results(static_cast<size_t>(op.num_results));
  for (ValueId operand : operands) {
    if (ok() && !operand.is_set()) {
      Fail(Refuse(Refusal::kInternal, absl::StrCat("a rule gave ", op.name, " an operand that is not set")));
    }
  }
  if (!ok() || !Admit(operands.size())) return results;
  Node node{.name = TakeName(absl::StrCat(Shortened(node_), ".", suffix_)),
            .op = &op,
            .attrs = std::move(attrs),
            .operands = {operands.begin(), operands.end()},
            .num_results = op.num_results};
  std::vector<ShapeGuard> guards;
  absl::StatusOr<ResultTypes> types =
      InferNode(graph_, node, static_cast<int32_t>(graph_.nodes().size()), &guards, &bounds_, &expression_parts_);
  if (!types.ok()) {
    Fail(types.status());
    return results;
  }
  const ValueId first = graph_.AddNode(std::move(node));
  for (size_t i = 0; i < types->size(); ++i) {
    results[i] = {first.index + static_cast<int32_t>(i)};
    graph_.set_type(results[i], std::move((*types)[i]));
  }
  return results;
}

ValueId DerivativeBuilder::Add(const OpDef& op, Attributes attrs, absl::Span<const ValueId> operands) {
  return AddAll(op, std::move(attrs), operands)[0];
}

ValueId DerivativeBuilder::AddSized(const OpDef& op, Attributes attrs, absl::string_view sizes,
                                    const SymbolicShape& shape, absl::Span<const ValueId> operands) {
  if (!ok()) return {};
  std::vector<DimExpr> written;
  Values all(operands.begin(), operands.end());
  for (const Dim& dim : shape) {
    if (dim.size.is_constant() || !DependsOnRun(dim.size)) {
      written.push_back(dim.size);
      continue;
    }
    absl::StatusOr<DimExpr> read = ReadFromOperands(dim.size, &all);
    if (!read.ok()) {
      Fail(read.status());
      return {};
    }
    written.push_back(*std::move(read));
  }
  attrs.Set(sizes, std::move(written));
  return Add(op, std::move(attrs), all);
}

absl::StatusOr<DimExpr> DerivativeBuilder::ReadFromOperands(const DimExpr& size, Values* operands) const {
  const auto axis_of = [&](const std::string& known) -> absl::StatusOr<DimExpr> {
    const auto found = sizes_.find(known);
    if (found == sizes_.end()) {
      return Refuse(Refusal::kUnsupportedRequest,
                    absl::StrCat("no value of the graph has the size ", known, ", which the run decides"));
    }
    operands->push_back(found->second.first);
    return DimExpr::OperandAxis(static_cast<int64_t>(operands->size()) - 1, found->second.second);
  };
  if (sizes_.contains(size.ToString())) return axis_of(size.ToString());
  return size.Substitute([&](const DimAtom& atom) -> absl::StatusOr<DimExpr> {
    const DimExpr symbol = DimExpr::Symbol(atom.symbol);
    return DependsOnRun(symbol) ? axis_of(symbol.ToString()) : symbol;
  });
}

ValueId DerivativeBuilder::Copy(const Node& node, absl::Span<const ValueId> operands,
                                absl::Span<const TensorType* const> types) {
  if (ok()) Admit(operands.size());
  Node copy = node;
  copy.operands.assign(operands.begin(), operands.end());
  const ValueId first = graph_.AddNode(std::move(copy));
  for (size_t i = 0; i < types.size(); ++i) {
    const ValueId result{first.index + static_cast<int32_t>(i)};
    graph_.set_type(result, *types[i]);
    OfferSizes(result);
  }
  return first;
}

void DerivativeBuilder::OfferSizes(ValueId value) {
  const TensorType& type = graph_.type(value);
  for (size_t axis = 0; axis < type.shape.size(); ++axis) {
    const DimExpr& size = type.shape[axis].size;
    if (size.is_constant() || !DependsOnRun(size)) continue;
    sizes_.try_emplace(size.ToString(), value, static_cast<int64_t>(axis));
  }
}

bool DerivativeBuilder::Admit(size_t operands) {
  if (absl::Status stopped = CheckStopped(); !stopped.ok()) {
    status_ = std::move(stopped);
    return false;
  }
  edges_ += static_cast<int64_t>(operands);
  const int64_t nodes = static_cast<int64_t>(graph_.nodes().size()) + 1;
  if (nodes > most_.nodes) {
    Fail(RefuseLimit("graph_nodes", most_.nodes, nodes, "nodes of the derivative"));
  } else if (edges_ > most_.edges) {
    Fail(RefuseLimit("graph_edges", most_.edges, edges_, "operands of the derivative"));
  }
  return ok();
}

const TensorType& DerivativeBuilder::type(ValueId value) const {
  static const TensorType* const kNoType = new TensorType{.dtype = DType::kF32};
  return value.is_set() ? graph_.type(value) : *kNoType;
}

void DerivativeBuilder::Fail(absl::Status status) {
  if (ok()) status_ = WithNode(std::move(status), node_, op_);
}

}  // namespace tensord
