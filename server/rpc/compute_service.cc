#include "server/rpc/compute_service.h"

#include "server/rpc/calls/handlers.h"
#include "server/rpc/calls/unary_call.h"
#include "server/rpc/execute/execute_stream.h"
#include "server/rpc/tensors/get_tensor.h"
#include "server/rpc/tensors/put_tensor.h"
#include "tensord/v1/compute.grpc.pb.h"

namespace tensord::server {
namespace {

using v1::Compute;

// The generated service with every method raw.
using RawStreams = Compute::WithRawCallbackMethod_ExecuteStream<
    Compute::WithRawCallbackMethod_PutTensor<Compute::WithRawCallbackMethod_GetTensor<Compute::Service>>>;
using RawProgramCalls = Compute::WithRawCallbackMethod_Compile<Compute::WithRawCallbackMethod_GetProgram<
    Compute::WithRawCallbackMethod_Explain<Compute::WithRawCallbackMethod_Differentiate<RawStreams>>>>;
using RawSessions = Compute::WithRawCallbackMethod_OpenSession<
    Compute::WithRawCallbackMethod_CloseSession<Compute::WithRawCallbackMethod_DeleteTensors<RawProgramCalls>>>;
using RawCompute = Compute::WithRawCallbackMethod_Execute<Compute::WithRawCallbackMethod_GetServerInfo<RawSessions>>;

using Context = grpc::CallbackServerContext;
using grpc::ByteBuffer;

class ComputeService final : public RawCompute {
 public:
  explicit ComputeService(const ServiceParts* parts) : parts_(*parts) {}

#define TENSORD_UNARY_METHOD(name, handler)                                                                    \
  grpc::ServerUnaryReactor* name(Context* context, const ByteBuffer* request, ByteBuffer* response) override { \
    return UnaryCall::Start(parts_, RpcMethod::k##name, context, request, response, &handler);                 \
  }
  TENSORD_UNARY_METHOD(Compile, HandleCompile)
  TENSORD_UNARY_METHOD(GetProgram, HandleGetProgram)
  TENSORD_UNARY_METHOD(Explain, HandleExplain)
  TENSORD_UNARY_METHOD(GetServerInfo, HandleGetServerInfo)
  TENSORD_UNARY_METHOD(Differentiate, HandleDifferentiate)
  TENSORD_UNARY_METHOD(OpenSession, HandleOpenSession)
  TENSORD_UNARY_METHOD(CloseSession, HandleCloseSession)
  TENSORD_UNARY_METHOD(DeleteTensors, HandleDeleteTensors)
#undef TENSORD_UNARY_METHOD

  grpc::ServerUnaryReactor* Execute(Context* context, const ByteBuffer* request, ByteBuffer* response) override {
    return UnaryCall::Start(parts_, RpcMethod::kExecute, context, request, response, &HandleExecute,
                            &RefuseExecuteUnread);
  }
  grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>* ExecuteStream(Context* context) override {
    return server::ExecuteStream::Start(parts_, context);
  }
  grpc::ServerReadReactor<ByteBuffer>* PutTensor(Context* context, ByteBuffer* response) override {
    return StartPutTensor(parts_, context, response);
  }
  grpc::ServerWriteReactor<ByteBuffer>* GetTensor(Context* context, const ByteBuffer* request) override {
    return StartGetTensor(parts_, context, request);
  }

 private:
  const ServiceParts& parts_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeComputeService(const ServiceParts* parts) {
  return std::make_unique<ComputeService>(parts);
}

}  // namespace tensord::server
