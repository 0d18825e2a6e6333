#include "tests/testlib/property/growing_graph.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "engine/ir/verifier.h"
#include "engine/ops/dynamic_truncate.h"
#include "engine/reference/evaluator.h"
#include "tests/testlib/property/rounding.h"

namespace tensord::property {
namespace {

absl::StatusOr<int64_t> Evaluate(const DimExpr& size, const absl::flat_hash_map<std::string, int64_t>& sizes) {
  return size.Evaluate([&sizes](const DimAtom& atom) -> absl::StatusOr<int64_t> { return sizes.at(atom.symbol); });
}

int64_t Elements(const Shape& shape) {
  int64_t n = 1;
  for (int64_t d : shape) n *= std::max<int64_t>(d, 1);
  return n;
}

}  // namespace

GrowingGraph::GrowingGraph(const GrowthOptions& options, std::mt19937_64* random)
    : options_(options), random_(*random) {
  constexpr Values kFlavours[] = {Values::kIntegers, Values::kIntegers, Values::kModest, Values::kEdges};
  constants_ = kFlavours[Below(std::size(kFlavours))];
  const Values flavour = kFlavours[Below(std::size(kFlavours))];
  if (!OneIn(3)) {
    for (const char* symbol : {"n", "m", "k"}) {
      if (symbols_.empty() || OneIn(2)) symbols_.push_back(symbol);
    }
  }
  const int choices = symbols_.empty() ? 1 : options_.size_choices;
  std::vector<absl::flat_hash_map<std::string, int64_t>> sizes(static_cast<size_t>(choices));
  const auto any_size = [this] {
    return options_.sizes[static_cast<size_t>(Below(static_cast<int64_t>(options_.sizes.size())))];
  };
  if (!options_.sizes.empty()) sizes_ = {any_size(), any_size(), any_size()};
  const bool one_size = OneIn(4);  // then guards between symbols hold
  for (auto& choice : sizes) {
    const int64_t size = sizes_.empty() ? Below(7) : any_size();
    for (const std::string& symbol : symbols_) {
      choice[symbol] = one_size ? size : !sizes_.empty() ? any_size() : Below(OneIn(6) ? 14 : 7);
    }
  }

  std::vector<std::vector<ConcreteType>> argument_types(sizes.size());
  const auto add_input = [&](const TensorType& type) {
    std::vector<ConcreteType> concrete;
    for (const auto& choice : sizes) {
      ConcreteType resolved{.dtype = type.dtype};
      for (const Dim& dim : type.shape) {
        const auto size = Evaluate(dim.size, choice);
        if (!size.ok()) return false;
        resolved.shape.push_back(*size);
      }
      if (Elements(resolved.shape) > options_.max_elements) return false;
      concrete.push_back(std::move(resolved));
    }
    for (size_t i = 0; i < concrete.size(); ++i) argument_types[i].push_back(concrete[i]);
    graph_.AddInput(absl::StrCat("x", graph_.inputs().size()), type);
    exact_.push_back(true);
    return true;
  };
  for (int64_t i = Between(1, 5); i > 0; --i) add_input(InputType());
  for (const std::string& symbol : symbols_) {
    TensorType type{.dtype = AnyOf(options_.dtypes), .shape = {Dim(DimExpr::Symbol(symbol))}};
    TensorType wide = type;
    wide.shape.push_back(Dim(sizes_.empty() ? DimExpr(Between(1, 3)) : Size()));
    if (!OneIn(2) || !add_input(wide)) add_input(type);
  }
  if (graph_.inputs().empty()) add_input({.dtype = AnyOf(kAnyDType)});
  std::vector<const TensorType*> types;
  for (const GraphInput& input : graph_.inputs()) types.push_back(&input.type);
  for (const std::vector<ConcreteType>& choice : argument_types) {
    bindings_.push_back(SizeBinding::Create(types, choice).value());
    arguments_.emplace_back();
    for (const ConcreteType& type : choice) {
      arguments_.back().push_back(RandomLiteral(type, OneIn(4) ? Values::kIntegers : flavour, &random_));
    }
  }
}

TensorType GrowingGraph::InputType() {
  TensorType type{.dtype = AnyOf(options_.dtypes)};
  const int64_t rank = !sizes_.empty() ? Between(OneIn(4) ? 1 : 2, 4) : OneIn(25) ? 8 : std::min(Below(6), Below(7));
  for (int64_t i = 0; i < rank; ++i) type.shape.push_back(rank == 8 && i % 2 == 0 ? Dim(1) : Dim(Size()));
  return type;
}

Ints GrowingGraph::Permutation(int64_t n) {
  Ints p(static_cast<size_t>(n));
  for (size_t i = 0; i < p.size(); ++i) p[i] = static_cast<int64_t>(i);
  std::shuffle(p.begin(), p.end(), random_);
  return p;
}

Ints GrowingGraph::SomeAxes(int64_t rank, int64_t one_in) {
  Ints axes;
  for (int64_t axis : Permutation(rank)) {
    if (OneIn(one_in)) axes.push_back(axis);
  }
  return axes;
}

DType GrowingGraph::AnyOf(DTypeSet dtypes) {
  for (;;) {
    const DType dtype = kAllDTypes[static_cast<size_t>(Below(kNumDTypes))];
    if (dtypes.Contains(dtype)) return dtype;
  }
}

DimExpr GrowingGraph::Size() {
  if (!symbols_.empty() && OneIn(2)) {
    const auto symbol = [this] {
      return DimExpr::Symbol(symbols_[static_cast<size_t>(Below(static_cast<int64_t>(symbols_.size())))]);
    };
    if (!OneIn(4)) return symbol();
    switch (Below(6)) {
      case 0:
        return DimExpr::Add(symbol(), DimExpr(Between(1, 3))).value();
      case 1:
        return DimExpr::Multiply(symbol(), DimExpr(2)).value();
      case 2:
        return DimExpr::Add(symbol(), symbol()).value();
      case 3:
        return DimExpr::FloorDivide(symbol(), DimExpr(Between(2, 3))).value();
      case 4:
        return DimExpr::Minimum(symbol(), DimExpr(Between(1, 4))).value();
      default:
        return DimExpr::Maximum(symbol(), symbol()).value();
    }
  }
  if (!sizes_.empty()) return sizes_[static_cast<size_t>(Below(static_cast<int64_t>(sizes_.size())))];
  if (OneIn(16)) return 0;
  return OneIn(12) ? Between(6, options_.max_size) : Between(1, 5);
}

LiteralPtr GrowingGraph::Constant(const ConcreteType& type) {
  return std::make_shared<const Literal>(RandomLiteral(type, constants_, &random_));
}

int64_t GrowingGraph::GreatestElements(ValueId v) const {
  int64_t elements = 1;
  for (const Dim& dim : Type(v).shape) elements *= GreatestSize(dim);
  return elements;
}

ValueId GrowingGraph::LargeAndNew(const std::vector<ValueId>& values) {
  if (OneIn(3)) return values.back();
  const auto first = values.end() - std::min<std::ptrdiff_t>(4, std::ssize(values));
  return *std::max_element(first, values.end(),
                           [this](ValueId a, ValueId b) { return GreatestElements(a) < GreatestElements(b); });
}

ValueId GrowingGraph::Any() {
  const int32_t n = graph_.num_values();
  if (options_.connected && !OneIn(4)) {
    std::vector<ValueId> values;
    for (int32_t i = 0; i < n; ++i) values.push_back({i});
    return LargeAndNew(values);
  }
  // Half of the time one of the last: graphs grow deep, not only wide.
  if (OneIn(2)) return {n - 1 - static_cast<int32_t>(Below(std::min(n, 6)))};
  return {static_cast<int32_t>(Below(n))};
}

ValueId GrowingGraph::Any(DType dtype, bool exact) {
  std::vector<ValueId> found;
  for (int32_t i = 0; i < graph_.num_values(); ++i) {
    const ValueId v{i};
    if (Type(v).dtype == dtype && (!exact || this->exact(v))) found.push_back(v);
  }
  if (options_.connected && !found.empty() && !OneIn(4)) return LargeAndNew(found);
  if (!found.empty() && !OneIn(8)) return found[static_cast<size_t>(Below(static_cast<int64_t>(found.size())))];
  for (int tries = 0; tries < 3; ++tries) {
    const ValueId x = Any();
    if (exact && !this->exact(x)) continue;
    if (const auto y = Append(CoreOp::kConvert, AttrsOf(CoreOp::kConvert).Set("dtype", dtype), {x})) return *y;
  }
  return Scalar(dtype);
}

ValueId GrowingGraph::Alike(ValueId v, bool exact) {
  std::vector<ValueId> alike = {v};
  for (int32_t i = 0; i < graph_.num_values(); ++i) {
    const ValueId other{i};
    if (Type(other) == Type(v) && (!exact || this->exact(other))) alike.push_back(other);
  }
  if (alike.size() <= 2) {
    if (const auto made = WithShape(Type(v).dtype, Type(v).shape, exact)) return *made;
  }
  return alike[static_cast<size_t>(Below(static_cast<int64_t>(alike.size())))];
}

std::optional<ValueId> GrowingGraph::WithShape(DType dtype, SymbolicShape shape, bool exact) {
  std::vector<ValueId> same, other;
  for (int32_t i = 0; i < graph_.num_values(); ++i) {
    const ValueId v{i};
    if (!(Type(v).shape == shape) || (exact && !this->exact(v))) continue;
    (Type(v).dtype == dtype ? same : other).push_back(v);
  }
  if (!same.empty() && !OneIn(4)) return same[static_cast<size_t>(Below(static_cast<int64_t>(same.size())))];
  if (!other.empty() && !OneIn(4)) {
    const ValueId x = other[static_cast<size_t>(Below(static_cast<int64_t>(other.size())))];
    if (const auto y = Append(CoreOp::kConvert, AttrsOf(CoreOp::kConvert).Set("dtype", dtype), {x})) return y;
  }
  const bool vector = !shape.empty() && shape.back().is_static() && !OneIn(3);
  ConcreteType type{.dtype = dtype};
  Ints axes;
  if (vector) {
    type.shape.push_back(shape.back().size.constant());
    axes.push_back(static_cast<int64_t>(shape.size()) - 1);
  }
  const auto constant = Append(CoreOp::kConstant, AttrsOf(CoreOp::kConstant).Set("value", Constant(type)), {});
  if (!constant.has_value()) return std::nullopt;
  std::vector<ValueId> operands = {*constant};
  std::vector<DimExpr> sizes;
  for (const Dim& dim : shape) {
    // A size that the run decides has no name: it is that of an axis of some value.
    if (dim.extent == Extent::kExact) {
      sizes.push_back(dim.size);
    } else if (const auto axis = FindAxis(dim); axis.has_value()) {
      sizes.push_back(DimExpr::OperandAxis(static_cast<int64_t>(operands.size()), axis->second));
      operands.push_back(axis->first);
    } else {
      return std::nullopt;
    }
  }
  return Append(CoreOp::kBroadcastInDim,
                AttrsOf(CoreOp::kBroadcastInDim).Set("shape", sizes).Set("broadcast_dimensions", axes), operands);
}

std::optional<std::pair<ValueId, int64_t>> GrowingGraph::FindAxis(const Dim& dim) const {
  for (int32_t i = 0; i < graph_.num_values(); ++i) {
    const SymbolicShape& shape = graph_.type({i}).shape;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (shape[axis] == dim) return std::pair<ValueId, int64_t>(ValueId{i}, static_cast<int64_t>(axis));
    }
  }
  return std::nullopt;
}

ValueId GrowingGraph::Scalar(DType dtype) {
  return Append(CoreOp::kConstant, AttrsOf(CoreOp::kConstant).Set("value", Constant({.dtype = dtype})), {}).value();
}

int64_t GrowingGraph::LeastSize(const Dim& dim) const {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const SizeBinding& binding : bindings_) least = std::min(least, binding.Evaluate(dim.size).value_or(0));
  return least;
}

int64_t GrowingGraph::GreatestSize(const Dim& dim) const {
  int64_t greatest = 0;
  for (const SizeBinding& binding : bindings_) greatest = std::max(greatest, binding.Evaluate(dim.size).value_or(0));
  return greatest;
}

bool GrowingGraph::BindTruncation(const Node& node) {
  Graph until_here = graph_;
  until_here.AddOutput("size", node.operands[1]);
  const Dim& limit = Type(node.operands[0]).shape[static_cast<size_t>(node.attrs.Int("dimension"))];
  for (size_t i = 0; i < bindings_.size(); ++i) {
    const auto size = EvaluateReference(until_here, /*guards=*/{}, arguments_[i]);
    const auto extent = bindings_[i].Evaluate(limit.size);
    if (!size.ok() || !extent.ok()) return false;
    const Literal& literal = size->front();
    bindings_[i].Bind(RunTimeSymbol(node.name), TruncatedSize(literal.bytes().data(), literal.dtype(), *extent));
  }
  return true;
}

bool GrowingGraph::HoldsForAllChoices(const std::vector<ShapeGuard>& guards, const TensorType& type) const {
  for (const SizeBinding& binding : bindings_) {
    for (const ShapeGuard& guard : guards) {
      if (!binding.Check(guard).ok()) return false;
    }
    const auto resolved = binding.Resolve(type);
    if (!resolved.ok() || Elements(resolved->shape) > options_.max_elements) return false;
  }
  return true;
}

bool GrowingGraph::IsAffordable(const Node& node, const TensorType& result) const {
  if (!Is(*node.op, CoreOp::kDotGeneral)) return true;
  const SymbolicShape& lhs = Type(node.operands[0]).shape;
  return std::all_of(bindings_.begin(), bindings_.end(), [&](const SizeBinding& binding) {
    double products = 1;
    for (const Dim& dim : result.shape) products *= static_cast<double>(binding.Evaluate(dim.size).value_or(1));
    for (const int64_t axis : node.attrs.Ints("lhs_contracting_dimensions")) {
      products *= static_cast<double>(binding.Evaluate(lhs[static_cast<size_t>(axis)].size).value_or(1));
    }
    return products <= static_cast<double>(options_.max_products);
  });
}

std::optional<ValueId> GrowingGraph::AppendChecked(
    const OpDef& op, Attributes attrs, const std::vector<ValueId>& operands,
    absl::FunctionRef<std::optional<bool>(const Node&, DType)> exactness) {
  Node node{.name = absl::StrCat("n", graph_.nodes().size()), .op = &op, .attrs = std::move(attrs)};
  node.operands.assign(operands.begin(), operands.end());
  std::vector<ShapeGuard> guards;
  const auto types = InferNode(graph_, node, static_cast<int32_t>(graph_.nodes().size()), &guards, &run_time_bounds_);
  if (!types.ok() || (Is(op, CoreOp::kDynamicTruncate) && !BindTruncation(node)) ||
      !HoldsForAllChoices(guards, (*types)[0]) || !IsAffordable(node, (*types)[0])) {
    return std::nullopt;
  }
  const TensorType& type = (*types)[0];
  if (type.rank() > 10) return std::nullopt;
  const std::optional<bool> exact = exactness(node, type.dtype);
  if (!exact.has_value()) return std::nullopt;
  const ValueId result = graph_.AddNode(std::move(node));
  graph_.set_type(result, type);
  exact_.push_back(*exact);
  return result;
}

std::optional<ValueId> GrowingGraph::Append(CoreOp op, Attributes attrs, const std::vector<ValueId>& operands) {
  const auto exactness = [&](const Node& node, DType result) -> std::optional<bool> {
    bool exact = IsExactOp(op, node.attrs, operands.empty() ? result : Type(operands.back()).dtype, result);
    for (size_t i = 0; i < operands.size(); ++i) {
      if (this->exact(operands[i])) continue;
      if (NeedsExactOperand(op, i, Type(operands[i]).dtype, result)) return std::nullopt;
      exact = exact && !kInexact.Contains(result);
    }
    return exact;
  };
  return AppendChecked(Def(op), std::move(attrs), operands, exactness);
}

std::optional<ValueId> GrowingGraph::AppendExact(const OpDef& op, Attributes attrs,
                                                 const std::vector<ValueId>& operands) {
  const auto exactness = [&](const Node&, DType) -> std::optional<bool> {
    if (std::all_of(operands.begin(), operands.end(), [this](ValueId v) { return exact(v); })) return true;
    return std::nullopt;
  };
  return AppendChecked(op, std::move(attrs), operands, exactness);
}

Graph GrowingGraph::Finish() {
  std::vector<bool> read(static_cast<size_t>(graph_.num_values()));
  for (const Node& node : graph_.nodes()) {
    for (ValueId v : node.operands) read[static_cast<size_t>(v.index)] = true;
  }
  std::vector<ValueId> outputs;
  for (int32_t i = graph_.num_values() - 1; i >= static_cast<int32_t>(graph_.inputs().size()); --i) {
    // Unread values become outputs; some stay dead.
    if (!read[static_cast<size_t>(i)] && outputs.size() < 12 && !OneIn(8)) outputs.push_back({i});
  }
  if (OneIn(4)) outputs.push_back({static_cast<int32_t>(Below(graph_.num_values()))});
  if (OneIn(8)) outputs.push_back({static_cast<int32_t>(Below(static_cast<int64_t>(graph_.inputs().size())))});
  if (outputs.empty()) outputs.push_back({graph_.num_values() - 1});
  if (OneIn(6)) outputs.push_back(outputs[0]);
  std::shuffle(outputs.begin(), outputs.end(), random_);
  for (size_t i = 0; i < outputs.size(); ++i) graph_.AddOutput(absl::StrCat("y", i), outputs[i]);
  return graph_;
}

}  // namespace tensord::property
