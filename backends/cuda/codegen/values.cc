#include "backends/cuda/codegen/values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/ops/scalar/scalar_math.h"

namespace tensord {
namespace {

// The functors' names, by CoreOp; empty for ops that are not elementwise functors.
constexpr absl::string_view kFunctors[] = {
#define TENSORD_UNARY(op, name, functor, summary) #functor,
#define TENSORD_BINARY(op, name, functor, traits, summary) #functor,
#define TENSORD_OP(op, definition) "",
#include "engine/ops/core_ops.def"
#undef TENSORD_UNARY
#undef TENSORD_BINARY
#undef TENSORD_OP
};

absl::string_view ClassOf(DType dtype) {
  if (dtype == DType::kBool) return "Bool";
  if (kIntegers.Contains(dtype)) return "Integer";
  return kComplexes.Contains(dtype) ? "Complex" : "Real";
}

std::string FunctionName(CoreOp op, DType dtype) {
  return absl::StrCat(kFunctors[static_cast<size_t>(op)], ClassOf(dtype));
}

std::string Function(CoreOp op, DType dtype, CudaPrelude* prelude) {
  std::string name = FunctionName(op, dtype);
  IsCudaArithmetic(op, dtype) ? prelude->Use(name) : prelude->Call(name);
  return name;
}

// Converts an element to its computed type: halves to F32.
std::string Widened(DType dtype, const std::string& x) {
  return kHalves.Contains(dtype) ? absl::StrCat("ToFloat(", x, ")") : x;
}

std::string Narrowed(DType dtype, const std::string& x, CudaPrelude* prelude) {
  if (!kHalves.Contains(dtype)) return x;
  UseCudaType(dtype, prelude);
  return absl::StrCat("To", CudaType(dtype), "(", x, ")");
}

std::string BinaryText(CoreOp op, DType of, const std::string& a, const std::string& b, CudaPrelude* prelude) {
  return absl::StrCat(Function(op, of, prelude), "(", Widened(of, a), ", ", Widened(of, b), ")");
}

std::string RealText(float x) {
  if (!std::isfinite(x)) return absl::StrFormat("__uint_as_float(0x%08xu)", std::bit_cast<uint32_t>(x));
  std::string text = absl::StrFormat("%.9g", x);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text + "f";
}

std::string RealText(double x) {
  if (!std::isfinite(x)) {
    return absl::StrFormat("__longlong_as_double((i64)0x%016xull)", std::bit_cast<uint64_t>(x));
  }
  std::string text = absl::StrFormat("%.17g", x);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

template <typename T>
std::string ElementText(T x) {
  if constexpr (std::is_same_v<T, Bool>) {
    return static_cast<bool>(x) ? "true" : "false";
  } else if constexpr (std::is_same_v<T, int32_t>) {
    return x == std::numeric_limits<T>::min() ? "(-2147483647 - 1)" : absl::StrCat(x);
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return x == std::numeric_limits<T>::min() ? "(-9223372036854775807ll - 1)" : absl::StrCat(x, "ll");
  } else if constexpr (HalfElement<T>) {
    return absl::StrFormat("%s{0x%04x}", CudaType(kDTypeOf<T>), x.bits);
  } else if constexpr (ComplexElement<T>) {
    return absl::StrCat(CudaType(kDTypeOf<T>), "{", RealText(x.real()), ", ", RealText(x.imag()), "}");
  } else {
    return RealText(x);
  }
}

std::string CompareText(CompareDirection direction, DType dtype, const std::string& a, const std::string& b,
                        CudaPrelude* prelude) {
  if (kComplexes.Contains(dtype)) {
    prelude->Use("EqualComplex");
    return absl::StrCat(direction == CompareDirection::kEq ? "" : "!", "EqualComplex(", a, ", ", b, ")");
  }
  static constexpr absl::string_view kOperators[] = {"", "==", "!=", "<", "<=", ">", ">="};
  return absl::StrCat(Widened(dtype, a), " ", kOperators[static_cast<size_t>(direction)], " ", Widened(dtype, b));
}

// `extreme` of two values, in the dtype itself.
std::string ExtremeText(CoreOp extreme, DType dtype, const std::string& a, const std::string& b, CudaPrelude* prelude) {
  return BinaryText(extreme, dtype, a, b, prelude);
}

CoreOp CombinerOf(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::kProduct:
    case ReduceKind::kAnd:
      return CoreOp::kMultiply;
    case ReduceKind::kMax:
      return CoreOp::kMaximum;
    case ReduceKind::kMin:
      return CoreOp::kMinimum;
    case ReduceKind::kSum:
    case ReduceKind::kOr:
    case ReduceKind::kUnspecified:
      break;
  }
  return CoreOp::kAdd;
}

// Returns the least (sign -1) or the greatest (+1) number.
template <typename T>
T Extreme(int sign) {
  if constexpr (std::is_same_v<T, Bool>) {
    return Bool(sign > 0);
  } else if constexpr (IntegerElement<T>) {
    return sign > 0 ? std::numeric_limits<T>::max() : std::numeric_limits<T>::min();
  } else if constexpr (ComplexElement<T>) {
    using R = typename T::value_type;
    return T(Extreme<R>(sign), Extreme<R>(sign));
  } else {
    using R = scalar::ComputeType<T>;
    return T(static_cast<R>(sign) * std::numeric_limits<R>::infinity());
  }
}

}  // namespace

bool IsCudaArithmetic(CoreOp op, DType dtype) {
  const bool is_extreme = op == CoreOp::kMaximum || op == CoreOp::kMinimum;
  if (kComplexes.Contains(dtype) && (is_extreme || op == CoreOp::kAbs)) return false;
  if (dtype == DType::kF64 && is_extreme) return false;
  static constexpr CoreOp kFew[] = {CoreOp::kNegate,   CoreOp::kConj,     CoreOp::kAbs,      CoreOp::kSign,
                                    CoreOp::kFloor,    CoreOp::kCeil,     CoreOp::kIsFinite, CoreOp::kNot,
                                    CoreOp::kReal,     CoreOp::kImag,     CoreOp::kMaximum,  CoreOp::kMinimum,
                                    CoreOp::kAdd,      CoreOp::kAnd,      CoreOp::kOr,       CoreOp::kXor,
                                    CoreOp::kSubtract, CoreOp::kMultiply, CoreOp::kComplex,  CoreOp::kRoundNearestEven};
  return std::find(std::begin(kFew), std::end(kFew), op) != std::end(kFew);
}

absl::string_view CudaType(DType dtype) {
  static constexpr absl::string_view kTypes[] = {"", "bool", "i32", "i64", "f32", "f64", "c64", "c128", "F16", "BF16"};
  return kTypes[static_cast<size_t>(dtype)];
}

absl::string_view CudaStorage(DType dtype) { return dtype == DType::kBool ? "u8" : CudaType(dtype); }

void UseCudaType(DType dtype, CudaPrelude* prelude) {
  prelude->Use(kComplexes.Contains(dtype) ? "Complex" : kHalves.Contains(dtype) ? CudaType(dtype) : "Types");
}

std::string CudaLoaded(DType dtype, const std::string& element) {
  return dtype == DType::kBool ? absl::StrCat(element, " != 0") : element;
}

std::string CudaStored(DType dtype, const std::string& value) {
  return dtype == DType::kBool ? absl::StrCat("(u8)", value) : value;
}

std::string CudaConstant(const Literal& constant, CudaPrelude* prelude) {
  UseCudaType(constant.dtype(), prelude);
  return VisitDType(constant.dtype(), [&]<typename T>(TypeTag<T>) { return ElementText(constant.values<T>()[0]); });
}

std::string CudaConvert(DType from, DType to, const std::string& x, CudaPrelude* prelude) {
  if (from == to) return x;
  UseCudaType(to, prelude);
  if (kHalves.Contains(from)) return CudaConvert(DType::kF32, to, Widened(from, x), prelude);
  if (kComplexes.Contains(from)) {
    if (!kComplexes.Contains(to)) return CudaConvert(RealPartOf(from), to, absl::StrCat(x, ".re"), prelude);
    const absl::string_view part = CudaType(RealPartOf(to));
    return absl::StrCat(CudaType(to), "{(", part, ")", x, ".re, (", part, ")", x, ".im}");
  }
  if (to == DType::kBool) return absl::StrCat("!(", x, " == 0)");
  if (from == DType::kBool) return CudaConvert(DType::kI32, to, absl::StrCat("(i32)", x), prelude);
  if (kComplexes.Contains(to)) {
    return absl::StrCat(CudaType(to), "{", CudaConvert(from, RealPartOf(to), x, prelude), ", 0}");
  }
  if (kHalves.Contains(to)) {
    if (from == DType::kF32) return Narrowed(to, x, prelude);
    prelude->Call("RoundToOdd");
    std::string wide = x;
    if (kIntegers.Contains(from)) {
      prelude->Call("IntegerToOdd");
      wide = absl::StrCat("IntegerToOdd(", x, ")");
    }
    return Narrowed(to, absl::StrCat("RoundToOdd(", wide, ")"), prelude);
  }
  if (kIntegers.Contains(to) && !kIntegers.Contains(from)) {
    const std::string function = to == DType::kI32 ? "TruncateToI32" : "TruncateToI64";
    prelude->Call(function);
    return absl::StrCat(function, "(", x, ")");
  }
  return absl::StrCat("(", CudaType(to), ")(", x, ")");
}

std::string CudaExpression(const MicroProgram& program, int32_t index, CudaPrelude* prelude) {
  const MicroInstruction& instruction = program.instructions[static_cast<size_t>(index)];
  std::string v[3];
  for (size_t k = 0; k < 3; ++k) {
    if (instruction.operands[k] >= 0) v[k] = absl::StrCat("v", instruction.operands[k]);
  }
  const DType of = program.instructions[static_cast<size_t>(instruction.operands[0])].dtype;
  UseCudaType(instruction.dtype, prelude);
  switch (instruction.kind) {
    case MicroKind::kUnary:
      return Narrowed(instruction.dtype,
                      absl::StrCat(Function(instruction.op, of, prelude), "(", Widened(of, v[0]), ")"), prelude);
    case MicroKind::kBinary:
      return Narrowed(instruction.dtype, BinaryText(instruction.op, of, v[0], v[1], prelude), prelude);
    case MicroKind::kCompare:
      return CompareText(instruction.direction, of, v[0], v[1], prelude);
    case MicroKind::kSelect:
      return absl::StrCat(v[0], " ? ", v[1], " : ", v[2]);
    case MicroKind::kClamp: {
      // The maximum of halves is one of them, so it needs no rounding before the minimum.
      const std::string raised = ExtremeText(CoreOp::kMaximum, of, v[1], v[0], prelude);
      return Narrowed(of,
                      absl::StrCat(Function(CoreOp::kMinimum, of, prelude), "(", raised, ", ", Widened(of, v[2]), ")"),
                      prelude);
    }
    case MicroKind::kConvert:
      return CudaConvert(of, instruction.dtype, v[0], prelude);
    case MicroKind::kLoad:
    case MicroKind::kIota:
    case MicroKind::kConstant:
    case MicroKind::kReduce:
      break;
  }
  return "";
}

std::string CudaPairType(DType dtype, CudaPrelude* prelude) {
  std::string type = absl::StrCat(CudaType(dtype), "x2");
  prelude->Use(type);
  return type;
}

std::string CudaPairExpression(const MicroInstruction& instruction, absl::Span<const std::string> pairs,
                               CudaPrelude* prelude) {
  const std::string type = CudaPairType(instruction.dtype, prelude);
  const CoreOp op = instruction.op;
  if (op == CoreOp::kAdd || op == CoreOp::kSubtract || op == CoreOp::kMultiply) {
    return absl::StrCat(kFunctors[static_cast<size_t>(op)], type, "(", pairs[0], ", ", pairs[1], ")");
  }
  const std::string function = Function(op, instruction.dtype, prelude);
  const auto of = [&](absl::string_view part) {
    const std::string second = pairs.size() == 1 ? "" : absl::StrCat(", ", part, "(", pairs[1], ")");
    return absl::StrCat(function, "(", part, "(", pairs[0], ")", second, ")");
  };
  return absl::StrCat("To", type, "(", of("LowFloat"), ", ", of("HighFloat"), ")");
}

std::string CudaBinary(CoreOp op, DType dtype, const std::string& a, const std::string& b, CudaPrelude* prelude) {
  UseCudaType(dtype, prelude);
  return Narrowed(dtype, BinaryText(op, dtype, a, b, prelude), prelude);
}

bool HasCudaFunction(CoreOp op, DType dtype) { return CudaPrelude::Has(FunctionName(op, dtype)); }

DType CudaAccumulator(DType dtype) { return kHalves.Contains(dtype) ? DType::kF32 : dtype; }

std::string CudaCombiner(ReduceKind kind, DType dtype, CudaPrelude* prelude) {
  return Function(CombinerOf(kind), CudaAccumulator(dtype), prelude);
}

std::string CudaNeutral(ReduceKind kind, DType dtype, CudaPrelude* prelude) {
  return VisitDType(CudaAccumulator(dtype), [&]<typename T>(TypeTag<T>) {
    T neutral = T();
    switch (CombinerOf(kind)) {
      case CoreOp::kMultiply:
        neutral = scalar::ConvertElement<T>(int32_t{1});
        break;
      case CoreOp::kMaximum:
        neutral = Extreme<T>(-1);
        break;
      case CoreOp::kMinimum:
        neutral = Extreme<T>(1);
        break;
      default:
        break;
    }
    return CudaConstant(Literal::Scalar<T>(neutral), prelude);
  });
}

}  // namespace tensord
