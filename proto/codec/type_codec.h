#ifndef TENSORD_PROTO_CODEC_TYPE_CODEC_H_
#define TENSORD_PROTO_CODEC_TYPE_CODEC_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "engine/ops/core_ops.h"
#include "engine/tensor/tensor_type.h"
#include "proto/codec/limits.h"
#include "tensord/v1/tensor.pb.h"

namespace tensord::codec {

// DTypes, sizes and orders between the wire and the engine.

// Fails with DTYPE_UNSUPPORTED for an unset or unknown dtype.
absl::StatusOr<DType> DecodeDType(v1::DType dtype);
v1::DType EncodeDType(DType dtype);

// Returns the order that a field asks for, `unspecified` if it names none. ATTRIBUTE_INVALID for an unknown number.
absl::StatusOr<Order> DecodeOrder(v1::MemoryOrder order, Order unspecified);

// Reads the size expressions of one graph. Their nesting is bounded, and so is the work that they make together: a few
// bytes may multiply out to many terms. Keeps a reference to the limits. DIM_EXPR_INVALID, DIM_EXPR_OVERFLOW,
// LIMIT_EXCEEDED.
class DimExprDecoder {
 public:
  explicit DimExprDecoder(const GraphLimits& limits) : limits_(limits) {}

  absl::StatusOr<DimExpr> Decode(const v1::DimExpr& expr) { return Decode(expr, 1); }
  // Returns a type of any dtype but the unset one; rank and constant sizes are checked against the limits.
  absl::StatusOr<TensorType> DecodeType(const v1::TensorType& type);

 private:
  absl::StatusOr<DimExpr> Decode(const v1::DimExpr& expr, int64_t depth);
  absl::StatusOr<DimExpr> DecodeBinary(const v1::BinaryDimExpr& binary, int64_t depth);

  const GraphLimits& limits_;
  int64_t terms_ = 0;  // combined so far
};

v1::DimExpr EncodeDimExpr(const DimExpr& expr);
// A size that only the run decides becomes the symbol "?".
v1::TensorType EncodeType(const TensorType& type);

}  // namespace tensord::codec

#endif  // TENSORD_PROTO_CODEC_TYPE_CODEC_H_
