#ifndef TENSORD_ENGINE_OPS_CORE_OPS_H_
#define TENSORD_ENGINE_OPS_CORE_OPS_H_

#include <cstdint>

#include "absl/types/span.h"
#include "engine/ir/op_def.h"
#include "engine/ir/op_registry.h"

namespace tensord {

// The ops of the family "core", in the order of core_ops.def.
enum class CoreOp : uint16_t {
#define TENSORD_UNARY(op, name, functor, summary) op,
#define TENSORD_BINARY(op, name, functor, traits, summary) op,
#define TENSORD_OP(op, definition) op,
#include "engine/ops/core_ops.def"
#undef TENSORD_UNARY
#undef TENSORD_BINARY
#undef TENSORD_OP
};

inline constexpr int kNumCoreOps = 0
#define TENSORD_UNARY(op, name, functor, summary) +1
#define TENSORD_BINARY(op, name, functor, traits, summary) +1
#define TENSORD_OP(op, definition) +1
#include "engine/ops/core_ops.def"
#undef TENSORD_UNARY
#undef TENSORD_BINARY
#undef TENSORD_OP
    ;

// Returns the definitions, indexed by CoreOp.
absl::Span<const OpDef> CoreOps();
const OpDef& Def(CoreOp op);

// Tells whether a definition is that core op.
bool Is(const OpDef& def, CoreOp op);

// Returns the registry of the core vocabulary alone.
const OpRegistry& CoreRegistry();

// Enumerators of the attributes, by wire number.
enum class CompareDirection : int64_t { kUnspecified, kEq, kNe, kLt, kLe, kGt, kGe };
enum class ReduceKind : int64_t { kUnspecified, kSum, kProduct, kMax, kMin, kAnd, kOr };
enum class ScatterCombiner : int64_t { kAdd, kSet, kMultiply, kMinimum, kMaximum };
enum class Order : int64_t { kUnspecified, kColumnMajor, kRowMajor };

}  // namespace tensord

#endif  // TENSORD_ENGINE_OPS_CORE_OPS_H_
