#ifndef TENSORD_TESTS_TESTLIB_PROPERTY_ROUNDING_H_
#define TENSORD_TESTS_TESTLIB_PROPERTY_ROUNDING_H_

#include "absl/types/span.h"
#include "engine/ir/attribute.h"
#include "engine/ops/core_ops.h"
#include "engine/tensor/dtype.h"

namespace tensord::property {

// Tells whether every correct implementation of an op gives the same bits on exact operands: integers and BOOL, ops
// that only move elements, and the operations that IEEE 754 rounds correctly. The order of a sum and the last bits of
// an elementary function are left open. 16-bit floats are computed in F32 and rounded once, which changes nothing of
// this.
bool IsExactOp(CoreOp op, const Attributes& attrs, DType operand, DType result);

// Tells whether a small change of that operand may change the result by much: comparisons, roundings to integers,
// branch cuts, indices. Only exact values are fed into these.
bool NeedsExactOperand(CoreOp op, size_t operand_index, DType operand, DType result);

}  // namespace tensord::property

#endif  // TENSORD_TESTS_TESTLIB_PROPERTY_ROUNDING_H_
