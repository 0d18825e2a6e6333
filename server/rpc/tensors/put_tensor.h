#ifndef TENSORD_SERVER_RPC_TENSORS_PUT_TENSOR_H_
#define TENSORD_SERVER_RPC_TENSORS_PUT_TENSOR_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include "server/rpc/calls/service_parts.h"

namespace tensord::server {

// Starts a call of PutTensor: a header, and chunks that follow each other, copied from the transport's slices into the
// tensor's memory; or a header that names a place in shared memory, from which all is copied. The quota is charged at
// the header. An upload that is not resumable leaves nothing behind unless all of it came. A resumable one keeps its
// received bytes, as far as checksums hold, and another call goes on from there. Every message renews the session's
// lease, and counts at the gate until it is worked on. A client without a deadline that sends none for
// limits.default_deadline_ms is cancelled. The parts outlive the call, which owns itself.
grpc::ServerReadReactor<grpc::ByteBuffer>* StartPutTensor(const ServiceParts& parts,
                                                          grpc::CallbackServerContext* context,
                                                          grpc::ByteBuffer* response);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_TENSORS_PUT_TENSOR_H_
