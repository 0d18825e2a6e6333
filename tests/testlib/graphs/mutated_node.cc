#include "tests/testlib/graphs/mutated_node.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "tests/testlib/graphs/random_graph.h"
#include "tests/testlib/numbers/random_literal.h"

namespace tensord {
namespace {

class Mutator {
 public:
  Mutator(const NodeCase& node_case, std::mt19937_64* random)
      : op_(*node_case.op), attrs_(node_case.attrs), random_(*random) {
    for (const ConcreteType& type : node_case.operands) operands_.push_back(ToTensorType(type));
  }

  MutatedNode Mutate() {
    if (Chance(2)) NameSizes();
    const int64_t changes = Between(1, 3);
    for (int64_t i = 0; i < changes; ++i) {
      if (!op_.attrs.empty() && Chance(2)) {
        ChangeAttribute(static_cast<size_t>(Between(0, static_cast<int64_t>(op_.attrs.size()) - 1)));
      } else {
        ChangeOperands();
      }
    }
    if (Chance(4) && !sizes_.empty()) PickFrom(&sizes_)->second = Between(0, 6);
    return Build();
  }

 private:
  int64_t Between(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }
  bool Chance(int64_t one_in) { return Between(1, one_in) == 1; }
  template <typename Container>
  typename Container::iterator PickFrom(Container* of) {
    return std::next(of->begin(), Between(0, static_cast<int64_t>(of->size()) - 1));
  }
  DType AnyDType() { return kAllDTypes[static_cast<size_t>(Between(0, kNumDTypes - 1))]; }

  int64_t Int() {
    switch (Between(0, 9)) {
      case 0:
        return std::numeric_limits<int64_t>::min();
      case 1:
        return std::numeric_limits<int64_t>::max();
      default:
        return Between(-2, 6);
    }
  }

  Dim AnyDim() {
    if (sizes_.empty() || Chance(2)) return Dim(Between(0, 5));
    return Dim(DimExpr::Symbol(PickFrom(&sizes_)->first));
  }

  // Equal sizes get one symbol or stay numbers, so that what was valid mostly stays so, by a guard.
  void NameSizes() {
    for (TensorType& operand : operands_) {
      for (Dim& dim : operand.shape) {
        if (Chance(3)) continue;
        const int64_t size = dim.size.constant();
        const std::string symbol = absl::StrCat("s", size);
        sizes_[symbol] = size;
        dim = Dim(DimExpr::Symbol(symbol));
      }
    }
  }

  void ChangeOperands() {
    const int64_t kind = Between(0, 6);
    if (operands_.empty() || kind == 0) {
      operands_.push_back(operands_.empty() || Chance(2) ? TensorType{.dtype = AnyDType()} : *PickFrom(&operands_));
      return;
    }
    TensorType& operand = *PickFrom(&operands_);
    switch (kind) {
      case 1:
        operands_.pop_back();
        break;
      case 2:
        std::swap(operand, *PickFrom(&operands_));
        break;
      case 3:
        operand.dtype = AnyDType();
        break;
      case 4:
        operand.shape.push_back(AnyDim());
        break;
      default:
        if (!operand.shape.empty() && kind == 5) operand.shape.pop_back();
        if (!operand.shape.empty() && kind == 6) *PickFrom(&operand.shape) = AnyDim();
        break;
    }
  }

  void ChangeAttribute(size_t index) {
    const AttrDef& def = op_.attrs[index];
    if (def.engine_only) return;
    AttrValue value = attrs_.at(index);
    switch (def.kind) {
      case AttrKind::kInt:
        value = Int();
        break;
      case AttrKind::kEnum:
        value = Between(0, static_cast<int64_t>(def.enumerators.size()) - 1);
        break;
      case AttrKind::kDType:
        value = Chance(8) ? DType::kInvalid : AnyDType();
        break;
      case AttrKind::kInts:
        ChangeList(&std::get<std::vector<int64_t>>(value), [this] { return Int(); });
        break;
      case AttrKind::kDims:
        ChangeList(&std::get<std::vector<DimExpr>>(value), [this] { return AnySize(); });
        break;
      case AttrKind::kType: {
        TensorType& type = std::get<SharedType>(value).Mutable();
        if (Chance(3)) type.dtype = AnyDType();
        std::vector<DimExpr> sizes;
        for (const Dim& dim : type.shape) sizes.push_back(dim.size);
        ChangeList(&sizes, [this] { return AnySize(); });
        type.shape.assign(sizes.begin(), sizes.end());
        break;
      }
      case AttrKind::kLiteral:
        if (Chance(4)) value = LiteralPtr();
        break;
      case AttrKind::kFlag:
        value = Chance(2);
        break;
      case AttrKind::kText: {
        std::string& text = std::get<std::string>(value);
        const std::string any = ",->.()ijk\xff";
        const auto at = static_cast<size_t>(Between(0, static_cast<int64_t>(text.size())));
        if (Chance(2) && at < text.size())
          text.erase(at, 1);
        else
          text.insert(at, 1, any[static_cast<size_t>(Between(0, static_cast<int64_t>(any.size()) - 1))]);
        break;
      }
      case AttrKind::kMaybeInt:
        value = Chance(2) ? std::optional<int64_t>() : std::optional<int64_t>(Int());
        break;
      case AttrKind::kMaybeReal:
        value = Chance(2) ? std::optional<double>() : std::optional<double>(static_cast<double>(Int()) / 8);
        break;
      case AttrKind::kIntLists: {
        auto& lists = std::get<std::vector<std::vector<int64_t>>>(value);
        if (lists.empty() || Chance(3)) {
          lists.emplace_back();
        } else if (Chance(3)) {
          lists.pop_back();
        }
        if (!lists.empty()) ChangeList(&*PickFrom(&lists), [this] { return Int(); });
        break;
      }
    }
    attrs_.Set(index, std::move(value));
  }

  DimExpr AnySize() {
    if (Chance(3)) return DimExpr::OperandAxis(Between(0, 2), Between(0, 3));
    if (Chance(4)) return RandomDimExpr(&random_, /*operand_axes=*/true);
    return Chance(6) ? DimExpr(Int()) : AnyDim().size;
  }

  template <typename T, typename Make>
  void ChangeList(std::vector<T>* list, Make make) {
    switch (Between(0, 3)) {
      case 0:
        list->push_back(make());
        break;
      case 1:
        if (!list->empty()) list->pop_back();
        break;
      case 2:
        if (!list->empty()) std::swap(list->front(), *PickFrom(list));
        break;
      default:
        if (!list->empty()) *PickFrom(list) = make();
        break;
    }
  }

  MutatedNode Build() {
    MutatedNode mutated{.sizes = std::move(sizes_)};
    for (size_t i = 0; i < operands_.size(); ++i) Plan(i, &mutated.graph);
    Node node{.name = "n", .op = &op_, .attrs = std::move(attrs_)};
    for (size_t i = 0; i < operands_.size(); ++i) {
      node.operands.push_back(sources_[i].is_previous ? node.operands.back() : Place(i, &mutated.graph));
    }
    mutated.graph.AddOutput("y", mutated.graph.AddNode(std::move(node)));
    return mutated;
  }

  // The source of an operand: an input, an input through a transpose, or a constant, which the passes look for. Now and
  // then one serves twice.
  struct Source {
    ValueId input;
    std::vector<int64_t> permutation;  // empty: the input itself
    LiteralPtr constant;
    bool is_previous = false;
  };

  void Plan(size_t i, Graph* graph) {
    TensorType type = operands_[i];
    Source& source = sources_.emplace_back();
    if (i > 0 && type == operands_[i - 1] && Chance(3)) {
      source.is_previous = true;
    } else if (type.is_static() && Chance(6)) {
      source.constant = std::make_shared<const Literal>(RandomLiteral(ToConcreteType(type), Values::kModest, &random_));
    } else {
      if (type.rank() > 1 && Chance(2)) {
        source.permutation.resize(type.shape.size());
        std::iota(source.permutation.begin(), source.permutation.end(), 0);
        std::shuffle(source.permutation.begin(), source.permutation.end(), random_);
        for (size_t axis = 0; axis < type.shape.size(); ++axis) {
          type.shape[static_cast<size_t>(source.permutation[axis])] = operands_[i].shape[axis];
        }
      }
      source.input = graph->AddInput(absl::StrCat("x", i), std::move(type));
    }
  }

  ValueId Place(size_t i, Graph* graph) {
    const Source& source = sources_[i];
    const auto add = [&](absl::string_view prefix, CoreOp op, AttrValue attribute) {
      Node node{.name = absl::StrCat(prefix, i), .op = &Def(op), .attrs = Attributes(Def(op).attrs)};
      node.attrs.Set(0, std::move(attribute));
      if (op == CoreOp::kTranspose) node.operands = {source.input};
      return graph->AddNode(std::move(node));
    };
    if (source.constant != nullptr) return add("c", CoreOp::kConstant, source.constant);
    if (!source.permutation.empty()) return add("t", CoreOp::kTranspose, source.permutation);
    return source.input;
  }

  const OpDef& op_;
  Attributes attrs_;
  std::vector<TensorType> operands_;
  std::vector<Source> sources_;
  absl::flat_hash_map<std::string, int64_t> sizes_;
  std::mt19937_64& random_;
};

}  // namespace

MutatedNode MutateNode(const NodeCase& node_case, std::mt19937_64* random) {
  return Mutator(node_case, random).Mutate();
}

std::vector<ConcreteType> ArgumentTypes(const MutatedNode& node) {
  std::vector<ConcreteType> types;
  for (const GraphInput& input : node.graph.inputs()) {
    ConcreteType type{.dtype = input.type.dtype};
    for (const Dim& dim : input.type.shape) {
      const auto symbol = dim.size.as_symbol();
      type.shape.push_back(symbol.has_value() ? node.sizes.at(std::string(*symbol)) : dim.size.constant());
    }
    types.push_back(std::move(type));
  }
  return types;
}

}  // namespace tensord
