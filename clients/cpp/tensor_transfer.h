#ifndef TENSORD_CLIENTS_CPP_TENSOR_TRANSFER_H_
#define TENSORD_CLIENTS_CPP_TENSOR_TRANSFER_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "clients/cpp/host_tensor.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::client {

// Tensors of any size to a session and back, in chunks with checksums. A call each, which blocks.

// Most bytes of data in one message.
inline constexpr size_t kChunkBytes = size_t{1} << 20;

// A call of PutTensor. Dtype, shape and order of the header are the tensor's. Its memory is sent as it is, without a
// copy.
absl::Status SendTensor(grpc::GenericStub& stub, grpc::ClientContext& context, v1::PutTensorRequest::Header header,
                        const HostTensor& tensor);

// A call of GetTensor from the tensor's first byte on. Each byte is copied once, out of gRPC's buffers. DATA_LOSS where
// a checksum does not match, INTERNAL where the server's answer is none.
absl::StatusOr<HostTensor> ReceiveTensor(grpc::GenericStub& stub, grpc::ClientContext& context,
                                         const v1::GetTensorRequest& request);

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_TENSOR_TRANSFER_H_
