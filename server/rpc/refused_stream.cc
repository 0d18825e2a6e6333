#include "server/rpc/refused_stream.h"

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "server/rpc/status_bridge.h"

namespace tensord::server {

template <typename Reactor>
RefusedStream<Reactor>::RefusedStream(const ServiceParts& parts, RpcMethod method) : parts_(parts) {
  const absl::Status status =
      Refuse(Refusal::kUnsupportedRequest, absl::StrCat("this server does not provide ", Name(method)));
  record_.method = method;
  record_.code = status.code();
  record_.reason = DetailOf(status)->reason;
  parts_.metrics->CallStarted(method);
  this->Finish(ToGrpcStatus(status));
}

template <typename Reactor>
void RefusedStream<Reactor>::OnDone() {
  parts_.metrics->CallEnded(record_);
  parts_.log->Request(record_);
  delete this;
}

template class RefusedStream<grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>>;
template class RefusedStream<grpc::ServerReadReactor<grpc::ByteBuffer>>;
template class RefusedStream<grpc::ServerWriteReactor<grpc::ByteBuffer>>;

}  // namespace tensord::server
