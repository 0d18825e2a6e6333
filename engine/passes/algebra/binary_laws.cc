#include "engine/passes/algebra/binary_laws.h"

#include <cstring>
#include <limits>
#include <utility>

#include "engine/ops/scalar/scalar_math.h"
#include "engine/passes/rewriting/splat.h"

namespace tensord {
namespace {

using Result = std::optional<ValueId>;

constexpr DTypeSet kWhole = kIntegers | kBoolOnly;

template <typename T>
T NumberOf(double value) {
  return scalar::ConvertElement<T>(value);
}

// A binary node with the known facts of its operands.
struct Binary {
  const Node& node;
  GraphRewriter& graph;
  ValueId a, b;
  LiteralPtr a_number, b_number;  // where an operand is one number everywhere
  DType dtype;                    // of the operands

  bool is_whole() const { return kWhole.Contains(dtype); }
  bool is_integer() const { return kIntegers.Contains(dtype); }
  bool is_real() const { return kFloats.Contains(dtype); }
  Result Is(ValueId value) const { return graph.Same(value); }
};

Binary Describe(const Node& node, GraphRewriter& graph) {
  return {.node = node,
          .graph = graph,
          .a = node.operands[0],
          .b = node.operands[1],
          .a_number = SplatOf(graph, node.operands[0]),
          .b_number = SplatOf(graph, node.operands[1]),
          .dtype = graph.type(node.operands[0]).dtype};
}

// Returns the operand beside the number, if the other operand is the number.
std::optional<ValueId> BesideNumber(const Binary& x, double number) {
  if (IsNumber(x.b_number, number)) return x.a;
  if (IsNumber(x.a_number, number)) return x.b;
  return std::nullopt;
}

std::optional<ValueId> TheNumber(const Binary& x, double number) {
  if (IsNumber(x.b_number, number)) return x.b;
  if (IsNumber(x.a_number, number)) return x.a;
  return std::nullopt;
}

// `op` on two operands, in the place of the node.
Result Becomes(const Binary& x, CoreOp op, ValueId a, ValueId b) {
  if (!(x.graph.type(a) == x.graph.result_type())) return std::nullopt;
  return x.graph.Add(op, x.node.name, Attributes(Def(op).attrs), {a, b}, x.graph.result_type());
}

Result Add(const Binary& x) {
  if (x.is_whole()) {
    if (const Result other = BesideNumber(x, 0); other.has_value()) return x.Is(*other);
    if (x.dtype == DType::kBool) {
      if (const Result number = TheNumber(x, 1); number.has_value()) return x.Is(*number);
      if (x.a == x.b) return x.Is(x.a);
      return std::nullopt;
    }
  } else if (x.is_real()) {
    if (const Result other = BesideNumber(x, -0.0); other.has_value()) return x.Is(*other);
  }
  if (const Node* negated = x.graph.producer_if(x.b, CoreOp::kNegate); negated != nullptr) {
    return Becomes(x, CoreOp::kSubtract, x.a, negated->operands[0]);
  }
  if (const Node* negated = x.graph.producer_if(x.a, CoreOp::kNegate); negated != nullptr) {
    return Becomes(x, CoreOp::kSubtract, x.b, negated->operands[0]);
  }
  return std::nullopt;
}

Result Subtract(const Binary& x) {
  if (IsNumber(x.b_number, 0)) return x.Is(x.a);
  if (x.is_integer() && x.a == x.b) return AddNumber(x.node, 0, x.graph);
  if (const Node* negated = x.graph.producer_if(x.b, CoreOp::kNegate); negated != nullptr) {
    return Becomes(x, CoreOp::kAdd, x.a, negated->operands[0]);
  }
  return std::nullopt;
}

// |x| |x| of real numbers is x x.
Result Square(const Binary& x) {
  const Node* size = x.graph.producer_if(x.a, CoreOp::kAbs);
  if (size == nullptr || kComplexes.Contains(x.graph.type(size->operands[0]).dtype)) return std::nullopt;
  return Becomes(x, CoreOp::kMultiply, size->operands[0], size->operands[0]);
}

Result Multiply(const Binary& x) {
  if (x.is_whole() || x.is_real()) {
    if (const Result other = BesideNumber(x, 1); other.has_value()) return x.Is(*other);
  }
  if (x.is_whole()) {
    if (const Result number = TheNumber(x, 0); number.has_value()) return x.Is(*number);
  }
  if (x.dtype == DType::kBool && x.a == x.b) return x.Is(x.a);
  if (x.a == x.b) return Square(x);
  return std::nullopt;
}

Result Divide(const Binary& x) {
  if ((x.is_integer() || x.is_real()) && IsNumber(x.b_number, 1)) return x.Is(x.a);
  return std::nullopt;
}

Result Extreme(const Binary& x, bool greatest) {
  // If one part of a complex number is NaN, both parts become NaN.
  if (kComplexes.Contains(x.dtype)) return std::nullopt;
  if (x.a == x.b) return x.Is(x.a);
  const auto neutral = [&](const LiteralPtr& number) { return greatest ? IsLeast(number) : IsGreatest(number); };
  const auto absorbing = [&](const LiteralPtr& number) {
    // NaN wins over infinity.
    return x.is_whole() && (greatest ? IsGreatest(number) : IsLeast(number));
  };
  if (neutral(x.b_number)) return x.Is(x.a);
  if (neutral(x.a_number)) return x.Is(x.b);
  if (absorbing(x.b_number)) return x.Is(x.b);
  if (absorbing(x.a_number)) return x.Is(x.a);
  return std::nullopt;
}

Result Pow(const Binary& x) {
  if (!x.is_integer() && !x.is_real()) return std::nullopt;
  if (IsNumber(x.b_number, 1)) return x.Is(x.a);
  if (IsNumber(x.b_number, 2)) return Becomes(x, CoreOp::kMultiply, x.a, x.a);
  if (IsNumber(x.b_number, 0) || (x.is_real() && IsNumber(x.b_number, -0.0))) return AddNumber(x.node, 1, x.graph);
  return std::nullopt;
}

// And, or, xor; `neutral` and `absorbing` as whole numbers, of which BOOL takes whether they are 0.
Result Bitwise(const Binary& x, double neutral, std::optional<double> absorbing) {
  if (const Result other = BesideNumber(x, neutral); other.has_value()) return x.Is(*other);
  if (absorbing.has_value()) {
    if (const Result number = TheNumber(x, *absorbing); number.has_value()) return x.Is(*number);
    if (x.a == x.b) return x.Is(x.a);
  } else if (x.a == x.b) {
    return AddNumber(x.node, 0, x.graph);
  }
  return std::nullopt;
}

// complex(real(z), imag(z)) is z.
Result Complex(const Binary& x) {
  const Node* real = x.graph.producer_if(x.a, CoreOp::kReal);
  const Node* imag = x.graph.producer_if(x.b, CoreOp::kImag);
  if (real == nullptr || imag == nullptr || !(real->operands[0] == imag->operands[0])) return std::nullopt;
  return x.Is(real->operands[0]);
}

template <typename Test>
bool Satisfies(const LiteralPtr& number, const Test& test) {
  if (number == nullptr) return false;
  return VisitDType(number->dtype(), [&]<typename T>(TypeTag<T>) {
    if constexpr (ComplexElement<T>) {
      return false;
    } else {
      return test(number->values<T>()[0]);
    }
  });
}

template <typename T>
double AsDouble(T x) {
  if constexpr (HalfElement<T>) {
    return static_cast<float>(x);
  } else {
    return static_cast<double>(x);
  }
}

}  // namespace

bool IsNumber(const LiteralPtr& number, double value) {
  if (number == nullptr) return false;
  return VisitDType(number->dtype(), [&]<typename T>(TypeTag<T>) {
    const T wanted = NumberOf<T>(value);
    return std::memcmp(number->bytes().data(), &wanted, sizeof(T)) == 0;
  });
}

bool IsLeast(const LiteralPtr& number) {
  return Satisfies(number, []<typename T>(T x) {
    if constexpr (std::is_same_v<T, Bool>) {
      return !static_cast<bool>(x);
    } else if constexpr (IntegerElement<T>) {
      return x == std::numeric_limits<T>::min();
    } else {
      return AsDouble(x) == -std::numeric_limits<double>::infinity();
    }
  });
}

bool IsGreatest(const LiteralPtr& number) {
  return Satisfies(number, []<typename T>(T x) {
    if constexpr (std::is_same_v<T, Bool>) {
      return static_cast<bool>(x);
    } else if constexpr (IntegerElement<T>) {
      return x == std::numeric_limits<T>::max();
    } else {
      return AsDouble(x) == std::numeric_limits<double>::infinity();
    }
  });
}

std::optional<ValueId> AddNumber(const Node& node, double value, GraphRewriter& graph) {
  const TensorType type = graph.result_type();
  if (!IsExact(type)) return std::nullopt;
  Literal number =
      VisitDType(type.dtype, [&]<typename T>(TypeTag<T>) { return Literal::Scalar<T>(NumberOf<T>(value)); });
  return AddSplat(node.name, std::move(number), type, &graph);
}

std::optional<ValueId> ApplyBinaryLaw(const Node& node, GraphRewriter& graph) {
  const Binary x = Describe(node, graph);
  switch (static_cast<CoreOp>(node.op->index)) {
    case CoreOp::kAdd:
      return Add(x);
    case CoreOp::kSubtract:
      return Subtract(x);
    case CoreOp::kMultiply:
      return Multiply(x);
    case CoreOp::kDivide:
      return Divide(x);
    case CoreOp::kMaximum:
      return Extreme(x, /*greatest=*/true);
    case CoreOp::kMinimum:
      return Extreme(x, /*greatest=*/false);
    case CoreOp::kPow:
      return Pow(x);
    case CoreOp::kAnd:
      return Bitwise(x, -1, 0);
    case CoreOp::kOr:
      return Bitwise(x, 0, -1);
    case CoreOp::kXor:
      return Bitwise(x, 0, std::nullopt);
    case CoreOp::kComplex:
      return Complex(x);
    default:
      return std::nullopt;
  }
}

std::optional<ValueId> ApplyCompareLaw(const Node& node, GraphRewriter& graph) {
  const Binary x = Describe(node, graph);
  const auto direction = static_cast<CompareDirection>(node.attrs.Int("direction"));
  const bool is_eq = direction == CompareDirection::kEq, is_ne = direction == CompareDirection::kNe;
  if (x.is_whole() && x.a == x.b) {
    const bool holds = is_eq || direction == CompareDirection::kLe || direction == CompareDirection::kGe;
    return AddNumber(node, holds ? 1 : 0, graph);
  }
  if (x.dtype != DType::kBool || (!is_eq && !is_ne)) return std::nullopt;
  // A BOOL compared with a known one is itself or its opposite.
  for (const double number : {0.0, 1.0}) {
    const Result other = BesideNumber(x, number);
    if (!other.has_value() || !(graph.type(*other) == graph.result_type())) continue;
    if (is_eq == (number == 1)) return x.Is(*other);
    return graph.Add(CoreOp::kNot, node.name, Attributes(Def(CoreOp::kNot).attrs), {*other}, graph.result_type());
  }
  return std::nullopt;
}

}  // namespace tensord
