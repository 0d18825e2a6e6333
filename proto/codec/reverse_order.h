#ifndef TENSORD_PROTO_CODEC_REVERSE_ORDER_H_
#define TENSORD_PROTO_CODEC_REVERSE_ORDER_H_

#include <cstdint>

#include "absl/types/span.h"
#include "engine/ops/core_ops.h"
#include "engine/tensor/shape.h"

namespace tensord::codec {

// Reverses the axes of a dense column-major tensor of shape `shape`: element (i, j, k) becomes element (k, j, i) of
// `to`, which has the reversed shape. Seen otherwise, it brings row-major data into column-major order and back. The
// shape must have passed NumElements; element_size is 1, 2, 4, 8 or 16 bytes. Blocked for the cache; the buffers do not
// overlap.
void ReverseOrder(absl::Span<const int64_t> shape, int64_t element_size, const char* from, char* to);
// A tensor's elements, which lie in `order`, in the other order.
void ReverseOrder(const ConcreteType& type, Order order, const char* from, char* to);

}  // namespace tensord::codec

#endif  // TENSORD_PROTO_CODEC_REVERSE_ORDER_H_
