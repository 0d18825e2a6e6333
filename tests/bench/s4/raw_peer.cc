#include "tests/bench/s4/raw_peer.h"

#include <grpcpp/grpcpp.h>

#include <utility>

#include "server/rpc/wire/shared_slice.h"
#include "tensord/v1/compute.grpc.pb.h"

namespace tensord {
namespace {

class RawService final : public v1::Compute::WithRawCallbackMethod_Execute<v1::Compute::Service> {
 public:
  explicit RawService(std::shared_ptr<const std::string> tensor) : tensor_(std::move(tensor)) {}

 private:
  // A long request is one with a tensor.
  grpc::ServerUnaryReactor* Execute(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                    grpc::ByteBuffer* response) override {
    const bool gives = request->Length() < tensor_->size();
    const grpc::Slice slice =
        gives ? server::SharedSlice(*tensor_, std::shared_ptr<const void>(tensor_, tensor_->data())) : grpc::Slice();
    *response = grpc::ByteBuffer(&slice, 1);
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  const std::shared_ptr<const std::string> tensor_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeRawService(std::shared_ptr<const std::string> tensor) {
  return std::make_unique<RawService>(std::move(tensor));
}

}  // namespace tensord
