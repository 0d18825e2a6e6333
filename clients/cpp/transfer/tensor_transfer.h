#ifndef TENSORD_CLIENTS_CPP_TRANSFER_TENSOR_TRANSFER_H_
#define TENSORD_CLIENTS_CPP_TRANSFER_TENSOR_TRANSFER_H_

#include <memory>

#include "absl/status/status.h"
#include "clients/cpp/transfer/tensor_gathering.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"
#include "tensord/host_tensor.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::client {

// Tensors of any size to a session and back, in chunks with checksums. A call each, which blocks.

// Most bytes of data in one message.
inline constexpr size_t kChunkBytes = size_t{1} << 20;

struct SentTensor {
  absl::Status status;
  size_t arrived = 0;    // bytes that the server has, where the call succeeded
  bool is_sent = false;  // all that was to be sent was given to the transport
  bool is_late = false;  // the transport did not end the call in time
};

// Returns the status of a call that ended well and without all of its answer: gRPC drops unread messages if the
// connection breaks behind them.
absl::Status AnswerLost();

// A call of PutTensor with the tensor's bytes [begin, end). Dtype, shape and order of the header are the tensor's. Its
// memory is sent as it is, without a copy. Without any bytes it asks how many the server has.
SentTensor SendTensor(grpc::GenericStub& stub, std::unique_ptr<grpc::ClientContext> context,
                      v1::PutTensorRequest::Header header, const HostTensor& tensor, size_t begin, size_t end);

// Makes a call of GetTensor, from the request's offset on, at which the gathering is.
absl::Status ReceiveTensor(grpc::GenericStub& stub, std::unique_ptr<grpc::ClientContext> context,
                           const v1::GetTensorRequest& request, TensorGathering* gathering);

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_TRANSFER_TENSOR_TRANSFER_H_
