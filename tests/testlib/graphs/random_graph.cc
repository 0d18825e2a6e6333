#include "tests/testlib/graphs/random_graph.h"

#include <limits>
#include <string>

#include "absl/strings/str_cat.h"

namespace tensord {
namespace {

class Generator {
 public:
  Generator(const OpRegistry& registry, std::mt19937_64* random) : registry_(registry), random_(*random) {}

  Graph Generate() {
    graph_.set_name(Pick({"", "g", "a \"quoted\" name"}));
    const int64_t inputs = Between(0, 4), nodes = Between(0, 20), outputs = Between(0, 4);
    for (int64_t i = 0; i < inputs; ++i) graph_.AddInput(Name(i), Type(/*operand_axes=*/false));
    for (int64_t i = 0; i < nodes; ++i) AddNode(inputs + i);
    if (graph_.num_values() == 0) return std::move(graph_);
    for (int64_t i = 0; i < outputs; ++i) graph_.AddOutput(Pick({"", "y", "z:1", "z:1"}), Value());
    return std::move(graph_);
  }

 private:
  int64_t Between(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }
  std::string Pick(std::initializer_list<const char*> of) {
    return of.begin()[Between(0, static_cast<int64_t>(of.size()) - 1)];
  }
  std::string Name(int64_t i) {
    return absl::StrCat(Pick({"x", "a-b.c", "two words", "\"", "back\\slash", "\xc3\xa9t\xc3\xa9", "%", "//", "}"}), i);
  }
  ValueId Value() { return {static_cast<int32_t>(Between(0, graph_.num_values() - 1))}; }
  DType AnyDType() { return kAllDTypes[static_cast<size_t>(Between(0, kNumDTypes - 1))]; }

  int64_t Int() {
    switch (Between(0, 3)) {
      case 0:
        return std::numeric_limits<int64_t>::min();
      case 1:
        return std::numeric_limits<int64_t>::max();
      default:
        return Between(-3, 3);
    }
  }

  TensorType Type(bool operand_axes) {
    TensorType type{.dtype = AnyDType()};
    const int64_t rank = Between(0, 4);
    for (int64_t i = 0; i < rank; ++i) type.shape.push_back(Dim(RandomDimExpr(&random_, operand_axes)));
    return type;
  }

  LiteralPtr AnyLiteral() {
    ConcreteType type{.dtype = AnyDType()};
    const int64_t rank = Between(0, 3);
    for (int64_t i = 0; i < rank; ++i) type.shape.push_back(Between(0, 5));
    Literal literal = *Literal::Create(std::move(type));
    for (size_t i = 0; i < literal.bytes().size(); ++i) {
      const int64_t byte = literal.dtype() == DType::kBool ? Between(0, 1) : Between(0, 255);
      literal.mutable_data()[i] = static_cast<char>(byte);
    }
    return std::make_shared<const Literal>(std::move(literal));
  }

  AttrValue Attribute(const AttrDef& def) {
    switch (def.kind) {
      case AttrKind::kInt:
        return Int();
      case AttrKind::kInts: {
        std::vector<int64_t> ints(static_cast<size_t>(Between(0, 4)));
        for (int64_t& i : ints) i = Int();
        return ints;
      }
      case AttrKind::kDims: {
        std::vector<DimExpr> dims(static_cast<size_t>(Between(0, 4)));
        for (DimExpr& d : dims) d = RandomDimExpr(&random_, /*operand_axes=*/true);
        return dims;
      }
      case AttrKind::kDType:
        return Between(0, 4) == 0 ? DType::kInvalid : AnyDType();
      case AttrKind::kEnum:
        return Between(0, static_cast<int64_t>(def.enumerators.size()) - 1);
      case AttrKind::kType:
        return Type(/*operand_axes=*/true);
      case AttrKind::kLiteral:
        return AnyLiteral();
      case AttrKind::kFlag:
        return Between(0, 1) == 1;
      case AttrKind::kText:
        return std::string(static_cast<size_t>(Between(0, 5)), '"');
      case AttrKind::kMaybeInt:
        return Between(0, 1) == 0 ? std::optional<int64_t>() : std::optional<int64_t>(Int());
      case AttrKind::kMaybeReal:
        return Between(0, 1) == 0 ? std::optional<double>() : std::optional<double>(static_cast<double>(Int()) / 3);
      case AttrKind::kIntLists: {
        // One at most: what a field that is not repeated can hold.
        std::vector<std::vector<int64_t>> lists(static_cast<size_t>(Between(0, 1)));
        for (auto& list : lists) list.resize(static_cast<size_t>(Between(0, 3)), Int());
        return lists;
      }
    }
    return int64_t{0};
  }

  void AddNode(int64_t number) {
    const std::vector<const OpDef*>& ops = registry_.all();
    const OpDef* const op = ops[static_cast<size_t>(Between(0, static_cast<int64_t>(ops.size()) - 1))];
    Node node{.name = Name(number), .op = op, .attrs = Attributes(op->attrs), .num_results = op->num_results};
    const int64_t operands = graph_.num_values() == 0 ? 0 : Between(0, 4);
    for (int64_t i = 0; i < operands; ++i) node.operands.push_back(Value());
    for (size_t i = 0; i < op->attrs.size(); ++i) {
      if (!op->attrs[i].engine_only) node.attrs.Set(i, Attribute(op->attrs[i]));
    }
    graph_.AddNode(std::move(node));
  }

  const OpRegistry& registry_;
  std::mt19937_64& random_;
  Graph graph_;
};

DimExpr Combined(std::mt19937_64* random, bool operand_axes, int depth) {
  const auto between = [random](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(*random);
  };
  const int64_t kind = between(0, depth == 0 ? 3 : 8);
  if (kind == 0) return DimExpr(between(0, 1000));
  if (kind == 1 && operand_axes) return DimExpr::OperandAxis(between(0, 2), between(0, 3));
  if (kind <= 2) return DimExpr::Symbol("n");
  if (kind == 3) return DimExpr::Symbol("m");
  const DimExpr a = Combined(random, operand_axes, depth - 1), b = Combined(random, operand_axes, depth - 1);
  const absl::StatusOr<DimExpr> result = kind == 4   ? DimExpr::Add(a, b)
                                         : kind == 5 ? DimExpr::Multiply(a, b)
                                         : kind == 6 ? DimExpr::FloorDivide(a, b)
                                         : kind == 7 ? DimExpr::Minimum(a, b)
                                                     : DimExpr::Maximum(a, b);
  return result.ok() ? *result : a;
}

}  // namespace

Graph RandomGraph(const OpRegistry& registry, std::mt19937_64* random) {
  return Generator(registry, random).Generate();
}

DimExpr RandomDimExpr(std::mt19937_64* random, bool operand_axes) { return Combined(random, operand_axes, 3); }

}  // namespace tensord
