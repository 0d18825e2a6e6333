#ifndef TENSORD_CLIENTS_CPP_WIRE_WIRE_WRITER_H_
#define TENSORD_CLIENTS_CPP_WIRE_WIRE_WRITER_H_

#include <cstdint>
#include <string>

#include "grpcpp/support/slice.h"
#include "tensord/host_tensor.h"

namespace tensord::client {

// Protobuf's wire format by hand, around payloads that are not copied.

uint64_t VarintSize(uint64_t value);
void AppendVarint(uint64_t value, std::string* out);
// The tag of a string, bytes or message field; its length and content must follow.
void AppendLengthDelimitedTag(int field_number, std::string* out);

// `size` bytes of the tensor's from `offset` on, as they lie there. Keeps the tensor's buffer alive: the transport may
// hold it after the call has ended.
grpc::Slice PayloadSlice(const HostTensor& tensor, size_t offset, size_t size);

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_WIRE_WIRE_WRITER_H_
