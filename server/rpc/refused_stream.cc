#include "server/rpc/refused_stream.h"

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"

namespace tensord::server {

template <typename Reactor>
RefusedStream<Reactor>::RefusedStream(const ServiceParts& parts, RpcMethod method, grpc::CallbackServerContext* context)
    : call_(parts, method, context) {
  absl::Status status = call_.Enter(0);
  if (status.ok()) {
    status = Refuse(Refusal::kUnsupportedRequest, absl::StrCat("this server does not provide ", Name(method)));
  }
  this->Finish(call_.Outcome(status));
}

template <typename Reactor>
void RefusedStream<Reactor>::OnDone() {
  call_.Ended();
  delete this;
}

template class RefusedStream<grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>>;
template class RefusedStream<grpc::ServerReadReactor<grpc::ByteBuffer>>;
template class RefusedStream<grpc::ServerWriteReactor<grpc::ByteBuffer>>;

}  // namespace tensord::server
