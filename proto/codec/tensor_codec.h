#ifndef TENSORD_PROTO_CODEC_TENSOR_CODEC_H_
#define TENSORD_PROTO_CODEC_TENSOR_CODEC_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/ops/core_ops.h"
#include "engine/tensor/literal.h"
#include "proto/codec/limits.h"
#include "tensord/v1/tensor.pb.h"

namespace tensord::codec {

// A wire tensor's description of its data. The shape is the client's, whatever the order of the elements.
struct TensorHeader {
  ConcreteType type;
  Order order = Order::kColumnMajor;  // never kUnspecified
  int64_t num_bytes = 0;              // what the data must hold
};

// Decodes the dtype and sizes of a tensor that does not exist yet, for example of a PutTensor header: the dtype is
// known, rank, sizes and bytes are within the limits, and no product of sizes overflows. Allocates nothing.
absl::StatusOr<TensorHeader> DecodeTensorHeader(v1::DType dtype, absl::Span<const int64_t> shape, v1::MemoryOrder order,
                                                Order default_order, const GraphLimits& limits);
// The same of a whole tensor; its data is not looked at.
absl::StatusOr<TensorHeader> DecodeTensorHeader(const v1::Tensor& tensor, Order default_order,
                                                const GraphLimits& limits);

// Fails with DATA_LENGTH_MISMATCH unless `data` has the header's length, DATA_INVALID if a BOOL is neither 0 nor 1.
absl::Status CheckTensorData(const TensorHeader& header, absl::string_view data);
// The second check alone, for data that arrives in pieces: whether every byte is 0 or 1.
bool IsBoolData(absl::string_view data);

// Returns a tensor as the engine stores it: checked, and brought into column-major order.
absl::StatusOr<Literal> DecodeLiteral(const v1::Tensor& tensor, Order default_order, const GraphLimits& limits);
// Column-major, and says so.
v1::Tensor EncodeLiteral(const Literal& literal);

}  // namespace tensord::codec

#endif  // TENSORD_PROTO_CODEC_TENSOR_CODEC_H_
