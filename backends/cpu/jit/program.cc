#include "backends/cpu/jit/program.h"

#include <cstring>
#include <utility>

#include "backends/cpu/math/integer_reciprocal.h"
#include "backends/cpu/math/vector_math_calls.h"

namespace tensord::cpu {
namespace {

bool IsInteger(DType dtype) { return dtype == DType::kI32 || dtype == DType::kI64; }

bool IsUnaryJitted(CoreOp op, DType x) {
  switch (op) {
    case CoreOp::kNegate:
      return x != DType::kBool;
    case CoreOp::kConj:
      return kComplexes.Contains(x);
    case CoreOp::kAbs:
    case CoreOp::kSign:
      return kLaneFloats.Contains(x) || IsInteger(x);
    case CoreOp::kFloor:
    case CoreOp::kCeil:
    case CoreOp::kRoundNearestEven:
    case CoreOp::kIsFinite:
    case CoreOp::kSqrt:
    case CoreOp::kRsqrt:
      return kLaneFloats.Contains(x);
    case CoreOp::kNot:
      return IsInteger(x) || x == DType::kBool;
    case CoreOp::kReal:
    case CoreOp::kImag:
      return x == DType::kC64;
    default:
      return false;
  }
}

bool IsBinaryJitted(CoreOp op, DType x, JitIsa isa) {
  switch (op) {
    case CoreOp::kAdd:
      return true;
    case CoreOp::kSubtract:
      return x != DType::kBool;
    case CoreOp::kMultiply:
      return x != DType::kI64 || isa == JitIsa::kAvx512;
    case CoreOp::kDivide:
      return kLaneFloats.Contains(x);
    case CoreOp::kMaximum:
    case CoreOp::kMinimum:
      return !kComplexes.Contains(x);
    case CoreOp::kAnd:
    case CoreOp::kOr:
    case CoreOp::kXor:
      return IsInteger(x) || x == DType::kBool;
    case CoreOp::kComplex:
      return x == DType::kF32 && isa == JitIsa::kAvx512;
    default:
      return false;
  }
}

// Returns true for conversions between register dtypes with code.
bool IsConvertJitted(DType from, DType to, bool to_half, JitIsa isa) {
  if (from == to && !kComplexes.Contains(from)) return true;
  if (from == DType::kF32 && to == DType::kC64) return true;
  if (from == DType::kF64 && to == DType::kC128) return true;
  if (kComplexes.Contains(from) || kComplexes.Contains(to)) return false;
  if (to_half) return from == DType::kBool;  // others would be rounded twice
  if (isa == JitIsa::kAvx512) return true;
  const bool is_long = from == DType::kI64 || to == DType::kI64;
  if (is_long) return !kLaneFloats.Contains(from) && !kLaneFloats.Contains(to);
  return !(from == DType::kF64 && to == DType::kI32);
}

}  // namespace

absl::string_view Name(JitIsa isa) {
  switch (isa) {
    case JitIsa::kAvx512:
      return "avx512";
    case JitIsa::kAvx2:
      return "avx2";
    case JitIsa::kNone:
      break;
  }
  return "none";
}

DType RegisterDType(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16 ? DType::kF32 : dtype; }

int RegisterBytes(DType dtype) { return dtype == DType::kBool ? 4 : static_cast<int>(SizeOf(RegisterDType(dtype))); }

JitIsa BestJitIsa() {
#if TENSORD_HAS_JIT
  switch (GetVectorMathCalls().vector_bytes) {
    case 64:
      return JitIsa::kAvx512;
    case 32:
      return JitIsa::kAvx2;
    default:
      return JitIsa::kNone;
  }
#else
  return JitIsa::kNone;
#endif
}

bool IsJitted(const JitNode& node, JitIsa isa) {
  if (isa == JitIsa::kNone) return false;
  const DType x = RegisterDType(node.computed);
  switch (node.op_kind) {
    case MicroKind::kUnary:
      return node.call != nullptr || IsUnaryJitted(node.op, x) || IsMathJitted(node.op, x, isa);
    case MicroKind::kBinary:
      return node.call != nullptr || IsBinaryJitted(node.op, x, isa);
    case MicroKind::kCompare:
      return kLaneFloats.Contains(x) || IsInteger(x);
    case MicroKind::kSelect:
      return node.dtype != DType::kC128;
    case MicroKind::kConvert: {
      const bool to_half = RegisterDType(node.dtype) != node.dtype;
      return IsConvertJitted(x, RegisterDType(node.dtype), to_half, isa);
    }
    default:
      return false;
  }
}

bool IsJitted(const JitNode& node, const JitNode& second, JitIsa isa) {
  const bool is_division = node.op == CoreOp::kDivide || node.op == CoreOp::kRemainder;
  if (node.op_kind != MicroKind::kBinary || !is_division || !IsInteger(node.computed)) return IsJitted(node, isa);
  if (isa != JitIsa::kAvx512 || second.kind != JitNode::Kind::kConstant) return false;
  int64_t divisor = 0;
  if (node.computed == DType::kI64) {
    std::memcpy(&divisor, second.constant.data(), sizeof(divisor));
  } else {
    int32_t narrow = 0;
    std::memcpy(&narrow, second.constant.data(), sizeof(narrow));
    divisor = narrow;
  }
  return IntegerReciprocal<int64_t>::Has(divisor);
}

bool IsMathJitted(CoreOp op, DType register_dtype, JitIsa isa) {
  if (op != CoreOp::kExp || isa != JitIsa::kAvx512) return false;
  const VectorMathCalls& calls = GetVectorMathCalls();
  return register_dtype == DType::kF32 ? calls.exp_f32 != nullptr
                                       : register_dtype == DType::kF64 && calls.exp_f64 != nullptr;
}

void SimplifyJitProgram(JitProgram* program) {
  JitNodes& nodes = program->nodes;
  IdVector<JitNodeId, int> uses(nodes.size());
  for (const JitNode& node : nodes) {
    for (const JitNodeId operand : node.operands) {
      if (operand.index >= 0) ++uses[operand];
    }
  }
  for (size_t i = nodes.size(); i-- > 0;) {
    JitNode& node = nodes[JitNodes::id(i)];
    if (node.is_root()) continue;
    if (uses[JitNodes::id(i)] == 0) {
      for (const JitNodeId operand : node.operands) {
        if (operand.index >= 0) --uses[operand];
      }
      continue;
    }
    if (node.kind != JitNode::Kind::kOp || node.op_kind != MicroKind::kSelect || node.dtype == DType::kBool) continue;
    const JitNodeId predicate = node.operands[0];
    const JitNode& compare = nodes[predicate];
    if (compare.kind != JitNode::Kind::kOp || compare.op_kind != MicroKind::kCompare || uses[predicate] != 1) continue;
    node.kind = JitNode::Kind::kCompareSelect;
    node.computed = compare.computed;
    node.direction = compare.direction;
    node.operands = {compare.operands[0], compare.operands[1], node.operands[1], node.operands[2]};
    uses[predicate] = 0;  // its operands have another user now
    nodes[predicate].operands.fill({});
  }
  IdVector<JitNodeId, JitNodeId> moved(nodes.size());
  JitNodes left;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const JitNodeId id = JitNodes::id(i);
    JitNode& node = nodes[id];
    if (!node.is_root() && uses[id] == 0) continue;
    for (JitNodeId& operand : node.operands) {
      if (operand.index >= 0) operand = moved[operand];
    }
    moved[id] = left.Add(std::move(node));
  }
  nodes = std::move(left);
}

}  // namespace tensord::cpu
