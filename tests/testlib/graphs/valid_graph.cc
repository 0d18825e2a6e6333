#include "tests/testlib/graphs/valid_graph.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/ir/verifier.h"
#include "engine/ops/core_ops.h"
#include "tests/testlib/numbers/random_literal.h"

namespace tensord {
namespace {

constexpr int64_t kMaxElements = 4000;

class ValidGraphGenerator {
 public:
  ValidGraphGenerator(const ValidGraphOptions& options, std::mt19937_64* random)
      : options_(options), random_(*random) {}

  Graph Generate() {
    const int64_t inputs = 1 + Below(3);
    for (int64_t i = 0; i < inputs; ++i) values_.push_back(graph_.AddInput(absl::StrCat("x", i), RandomType()));
    const size_t nodes = static_cast<size_t>(1 + Below(options_.max_nodes));
    for (size_t tries = 0; graph_.nodes().size() < nodes && tries < 20 * nodes; ++tries) AppendAny();
    const int64_t outputs = 1 + Below(3);
    for (int64_t i = 0; i < outputs; ++i) graph_.AddOutput(absl::StrCat("y", i), i == 0 ? values_.back() : Any());
    return std::move(graph_);
  }

 private:
  using Ints = std::vector<int64_t>;

  int64_t Below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  bool Coin() { return Below(2) == 0; }
  ValueId Any() { return values_[static_cast<size_t>(Below(static_cast<int64_t>(values_.size())))]; }
  const TensorType& Type(ValueId v) const { return graph_.type(v); }
  static Attributes Attrs(CoreOp op) { return Attributes(Def(op).attrs); }

  DType RandomDType() {
    if (options_.exact) return Coin() ? DType::kI32 : DType::kI64;
    constexpr DType kChoices[] = {DType::kF32, DType::kF64, DType::kI32, DType::kC64};
    return kChoices[Below(4)];
  }

  DimExpr RandomSize() {
    if (options_.symbols && Below(3) == 0) return DimExpr::Symbol(Coin() ? "n" : "m");
    return DimExpr(Below(12) == 0 ? 0 : 1 + Below(5));
  }

  TensorType RandomType() {
    TensorType type{.dtype = RandomDType()};
    for (int64_t rank = Below(5); rank > 0; --rank) type.shape.push_back(Dim(RandomSize()));
    return type;
  }

  Ints RandomPermutation(int64_t rank) {
    Ints p(static_cast<size_t>(rank));
    for (size_t i = 0; i < p.size(); ++i) p[i] = static_cast<int64_t>(i);
    std::shuffle(p.begin(), p.end(), random_);
    return p;
  }

  // A value of the same type as v; v itself where there is no other.
  ValueId Alike(ValueId v) {
    std::vector<ValueId> alike;
    for (ValueId other : values_) {
      if (Type(other) == Type(v)) alike.push_back(other);
    }
    return alike[static_cast<size_t>(Below(static_cast<int64_t>(alike.size())))];
  }

  // Every symbol counts as 7: the runs stay small.
  static int64_t Elements(const TensorType& type) {
    int64_t n = 1;
    for (const Dim& d : type.shape) n *= std::max<int64_t>(1, d.size.is_constant() ? d.size.constant() : 7);
    return n;
  }

  // Leaves the graph as it is where the node would be invalid, too large, or valid for some sizes only.
  bool Append(CoreOp op, Attributes attrs, const std::vector<ValueId>& operands) {
    Node node{.name = absl::StrCat("n", graph_.nodes().size()), .op = &Def(op), .attrs = std::move(attrs)};
    node.operands.assign(operands.begin(), operands.end());
    std::vector<ShapeGuard> guards;
    const auto types = InferNode(graph_, node, static_cast<int32_t>(graph_.nodes().size()), &guards, &bounds_);
    if (!types.ok() || !guards.empty() || Elements((*types)[0]) > kMaxElements) return false;
    for (const Dim& d : (*types)[0].shape) {
      bool bound = true;  // a symbol must be bound by an input
      d.size.ForEachLeaf([&](const DimAtom& atom) { bound = bound && IsBound(atom.symbol); });
      if (!bound) return false;
    }
    const ValueId result = graph_.AddNode(std::move(node));
    graph_.set_type(result, (*types)[0]);
    values_.push_back(result);
    return true;
  }

  bool IsBound(const std::string& symbol) const {
    for (const GraphInput& input : graph_.inputs()) {
      for (const Dim& d : input.type.shape) {
        if (d.size == DimExpr::Symbol(symbol)) return true;
      }
    }
    return false;
  }

  LiteralPtr RandomConstant(const ConcreteType& type) {
    return std::make_shared<const Literal>(RandomLiteral(type, Values::kIntegers, &random_));
  }

  void AppendAny() {
    const ValueId x = Any();
    const int64_t rank = Type(x).rank();
    switch (Below(20)) {
      case 0:
      case 1:
      case 2:
        Append(CoreOp::kTranspose, Attrs(CoreOp::kTranspose).Set("permutation", RandomPermutation(rank)), {x});
        break;
      case 3:
      case 4: {
        constexpr CoreOp kOps[] = {CoreOp::kAdd, CoreOp::kSubtract, CoreOp::kMultiply, CoreOp::kMaximum};
        Append(kOps[Below(4)], {}, {x, Alike(x)});
        break;
      }
      case 5:
        AppendSelect(x);
        break;
      case 6:
        Append(CoreOp::kConvert, Attrs(CoreOp::kConvert).Set("dtype", RandomDType()), {x});
        break;
      case 7:
        AppendReshape(x);
        break;
      case 8:
      case 9:
        AppendBroadcast(x);
        break;
      case 10:
        AppendReduce(x);
        break;
      case 11:
        AppendDot(x, Any());
        break;
      case 12:
        AppendSlice(x);
        break;
      case 13:
        AppendPad(x);
        break;
      case 14:
        if (rank == 0) break;
        if (Coin()) {
          Append(CoreOp::kReverse, Attrs(CoreOp::kReverse).Set("dimensions", Ints{Below(rank)}), {x});
        } else {
          Append(CoreOp::kConcatenate, Attrs(CoreOp::kConcatenate).Set("dimension", Below(rank)), {x, Alike(x), x});
        }
        break;
      case 15:
        AppendDiagonal(x);
        break;
      case 16:
        if (rank < 2) break;
        Append(Coin() ? CoreOp::kTril : CoreOp::kTriu, Attrs(CoreOp::kTril).Set("diagonal", Below(7) - 3), {x});
        break;
      case 17:
        AppendWindow(x);
        break;
      case 18:
        AppendExtent(x);
        break;
      default:
        AppendLeaf();
    }
  }

  void AppendSelect(ValueId x) {
    const ValueId y = Alike(x);
    if (!Append(CoreOp::kCompare, Attrs(CoreOp::kCompare).Set("direction", 1 + Below(2)), {x, y})) return;
    Append(CoreOp::kSelect, Attrs(CoreOp::kSelect), {values_.back(), x, y});
  }

  void AppendReshape(ValueId x) {
    std::vector<DimExpr> shape;
    for (const Dim& d : Type(x).shape) {
      if (Below(4) == 0) shape.push_back(1);
      if (d.size.is(4) && Coin()) {
        shape.push_back(2);
        shape.push_back(2);
      } else {
        shape.push_back(d.size);
      }
    }
    if (shape.size() >= 2 && Coin()) {  // merge two neighbours
      const size_t i = static_cast<size_t>(Below(static_cast<int64_t>(shape.size()) - 1));
      shape[i] = DimExpr::Multiply(shape[i], shape[i + 1]).value();
      shape.erase(shape.begin() + static_cast<int64_t>(i) + 1);
    }
    Append(CoreOp::kReshape, Attrs(CoreOp::kReshape).Set("shape", shape).Set("order", Below(3)), {x});
  }

  void AppendBroadcast(ValueId x) {
    const TensorType type = Type(x);
    const int64_t rank = type.rank() + Below(3);
    Ints axes = RandomPermutation(rank);
    axes.resize(static_cast<size_t>(type.rank()));
    std::vector<DimExpr> shape;
    for (int64_t i = 0; i < rank; ++i) shape.push_back(RandomSize());
    std::vector<ValueId> operands = {x};
    // A size may come from an operand that is there for its shape alone.
    const ValueId source = Any();
    if (rank > 0 && Type(source).rank() > 0 && Coin()) {
      operands.push_back(source);
      shape[static_cast<size_t>(Below(rank))] = DimExpr::OperandAxis(1, Below(Type(source).rank()));
    }
    for (size_t i = 0; i < axes.size(); ++i) {
      if (!type.shape[i].size.is(1)) shape[static_cast<size_t>(axes[i])] = type.shape[i].size;
    }
    Append(CoreOp::kBroadcastInDim,
           Attrs(CoreOp::kBroadcastInDim).Set("shape", shape).Set("broadcast_dimensions", axes), operands);
  }

  void AppendReduce(ValueId x) {
    Ints axes;
    for (int64_t a : RandomPermutation(Type(x).rank())) {
      if (Coin()) axes.push_back(a);
    }
    const int64_t kind = kComplexes.Contains(Type(x).dtype) || Coin() ? 1 : 3 + Below(2);
    Append(CoreOp::kReduce, Attrs(CoreOp::kReduce).Set("kind", kind).Set("dimensions", axes), {x});
  }

  void AppendDot(ValueId x, ValueId y) {
    if (Type(x).dtype != Type(y).dtype) return;
    Ints lc, rc, lb, rb;
    Ints right = RandomPermutation(Type(y).rank());
    for (int64_t a : RandomPermutation(Type(x).rank())) {
      for (auto b = right.begin(); b != right.end(); ++b) {
        if (!(Type(x).shape[static_cast<size_t>(a)] == Type(y).shape[static_cast<size_t>(*b)])) continue;
        const int64_t role = Below(3);
        if (role == 2) break;
        (role == 0 ? lc : lb).push_back(a);
        (role == 0 ? rc : rb).push_back(*b);
        right.erase(b);
        break;
      }
    }
    Append(CoreOp::kDotGeneral,
           Attrs(CoreOp::kDotGeneral)
               .Set("lhs_contracting_dimensions", lc)
               .Set("rhs_contracting_dimensions", rc)
               .Set("lhs_batching_dimensions", lb)
               .Set("rhs_batching_dimensions", rb),
           {x, y});
  }

  void AppendSlice(ValueId x) {
    Ints start, limit, stride;
    for (const Dim& d : Type(x).shape) {
      const int64_t size = d.size.is_constant() ? d.size.constant() : 0;
      limit.push_back(size == 0 ? 0 : 1 + Below(size));
      start.push_back(limit.back() == 0 ? 0 : Below(limit.back()));
      stride.push_back(1 + Below(2));
    }
    if (Below(3) == 0) stride.clear();
    Append(CoreOp::kSlice,
           Attrs(CoreOp::kSlice).Set("start_indices", start).Set("limit_indices", limit).Set("strides", stride), {x});
  }

  void AppendPad(ValueId x) {
    const ConcreteType scalar{.dtype = Type(x).dtype};
    if (!Append(CoreOp::kConstant, Attrs(CoreOp::kConstant).Set("value", RandomConstant(scalar)), {})) return;
    Ints low, high, interior;
    for (int64_t i = 0; i < Type(x).rank(); ++i) {
      low.push_back(Below(3) - (Below(4) == 0 ? 1 : 0));
      high.push_back(1 + Below(2));
      interior.push_back(Below(2));
    }
    Append(CoreOp::kPad,
           Attrs(CoreOp::kPad)
               .Set("edge_padding_low", low)
               .Set("edge_padding_high", high)
               .Set("interior_padding", interior),
           {x, values_.back()});
  }

  void AppendDiagonal(ValueId x) {
    const int64_t rank = Type(x).rank();
    if (rank == 0) return;
    const int64_t a = Below(rank), b = Below(rank + 1);
    if (Coin() && a != b && b < rank) {
      Append(CoreOp::kExtractDiag, Attrs(CoreOp::kExtractDiag).Set("axis_a", a).Set("axis_b", b), {x});
    } else {
      Append(CoreOp::kEmbedDiag, Attrs(CoreOp::kEmbedDiag).Set("axis_a", a).Set("axis_b", b), {x});
    }
  }

  // A window at a computed start, and one that replaces another.
  void AppendWindow(ValueId x) {
    const ConcreteType type{.dtype = Coin() ? DType::kI32 : DType::kI64, .shape = {Type(x).rank()}};
    if (!Append(CoreOp::kConstant, Attrs(CoreOp::kConstant).Set("value", RandomConstant(type)), {})) return;
    const ValueId starts = values_.back();
    Ints sizes;
    for (const Dim& d : Type(x).shape) sizes.push_back(d.size.is_constant() ? Below(d.size.constant() + 1) : 0);
    if (!Append(CoreOp::kDynamicSlice, Attrs(CoreOp::kDynamicSlice).Set("slice_sizes", sizes), {x, starts})) return;
    const ValueId update = Coin() ? Alike(values_.back()) : Alike(x);
    Append(CoreOp::kDynamicUpdateSlice, Attrs(CoreOp::kDynamicUpdateSlice), {x, update, starts});
  }

  void AppendExtent(ValueId x) {
    if (Below(6) == 0) {
      Append(CoreOp::kOptimizationBarrier, Attrs(CoreOp::kOptimizationBarrier), {x, Any(), Any()});
      return;
    }
    const ValueId reference = Any();
    const int64_t rank = std::min(Type(x).rank(), Type(reference).rank());
    if (rank == 0) return;
    if (Below(3) == 0) {
      Append(CoreOp::kShapeOf, Attrs(CoreOp::kShapeOf).Set("dimension", Below(rank)), {x});
    } else {
      Append(CoreOp::kPadToMatch, Attrs(CoreOp::kPadToMatch).Set("dimension", Below(rank)), {x, reference});
    }
  }

  void AppendLeaf() {
    TensorType type = RandomType();
    if (type.rank() > 0 && Coin()) {
      Append(CoreOp::kIota, Attrs(CoreOp::kIota).Set("type", type).Set("dimension", Below(type.rank())), {});
      return;
    }
    ConcreteType concrete{.dtype = type.dtype};
    for (const Dim& d : type.shape) concrete.shape.push_back(d.size.is_constant() ? d.size.constant() : 2);
    Append(CoreOp::kConstant, Attrs(CoreOp::kConstant).Set("value", RandomConstant(concrete)), {});
  }

  const ValidGraphOptions options_;
  std::mt19937_64& random_;
  Graph graph_;
  std::vector<ValueId> values_;
  RunTimeBounds bounds_;
};

}  // namespace

Graph RandomValidGraph(const ValidGraphOptions& options, std::mt19937_64* random) {
  return ValidGraphGenerator(options, random).Generate();
}

}  // namespace tensord
