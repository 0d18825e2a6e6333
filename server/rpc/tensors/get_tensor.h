#ifndef TENSORD_SERVER_RPC_TENSORS_GET_TENSOR_H_
#define TENSORD_SERVER_RPC_TENSORS_GET_TENSOR_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include "server/rpc/calls/service_parts.h"

namespace tensord::server {

// Starts a call of GetTensor: a header, then the tensor's bytes from an offset on, in chunks that are slices over its
// memory. Or all of it goes into a place in shared memory, and the header says so. A tensor that a request in progress
// is to make is waited for until the call's deadline, by default limits.default_deadline_ms. The next chunk is made
// when the transport has taken the one before, so a slow client costs no memory; each renews the session's lease. A
// client without a deadline that takes nothing for limits.default_deadline_ms is cancelled. A transfer goes on if the
// handle is deleted meanwhile. The parts outlive the call, which owns itself.
grpc::ServerWriteReactor<grpc::ByteBuffer>* StartGetTensor(const ServiceParts& parts,
                                                           grpc::CallbackServerContext* context,
                                                           const grpc::ByteBuffer* request);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_TENSORS_GET_TENSOR_H_
