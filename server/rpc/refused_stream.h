#ifndef TENSORD_SERVER_RPC_REFUSED_STREAM_H_
#define TENSORD_SERVER_RPC_REFUSED_STREAM_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include "server/observe/rpc_method.h"
#include "server/rpc/served_call.h"

namespace tensord::server {

// A call of a streaming method that this server does not provide: refused with UNSUPPORTED_REQUEST as soon as it
// begins. `Reactor` is the one that gRPC wants. Owns itself.
template <typename Reactor>
class RefusedStream final : public Reactor {
 public:
  RefusedStream(const ServiceParts& parts, RpcMethod method, grpc::CallbackServerContext* context);

 private:
  void OnDone() override;

  ServedCall call_;
};

extern template class RefusedStream<grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>>;
extern template class RefusedStream<grpc::ServerReadReactor<grpc::ByteBuffer>>;
extern template class RefusedStream<grpc::ServerWriteReactor<grpc::ByteBuffer>>;

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_REFUSED_STREAM_H_
