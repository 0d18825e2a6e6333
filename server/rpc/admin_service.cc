#include "server/rpc/admin_service.h"

#include "server/rpc/calls/unary_call.h"
#include "server/rpc/operators/admin_handlers.h"
#include "tensord/v1/admin.grpc.pb.h"

namespace tensord::server {
namespace {

using v1::Admin;

// The generated service with every method raw.
using RawPrograms = Admin::WithRawCallbackMethod_ListPrograms<
    Admin::WithRawCallbackMethod_EvictPrograms<Admin::WithRawCallbackMethod_ReleasePrograms<
        Admin::WithRawCallbackMethod_ListSessions<Admin::WithRawCallbackMethod_DumpFlightRecorder<Admin::Service>>>>>;
using RawCalls = Admin::WithRawCallbackMethod_ListCalls<
    Admin::WithRawCallbackMethod_CancelCall<Admin::WithRawCallbackMethod_CloseSession<RawPrograms>>>;
using RawControl = Admin::WithRawCallbackMethod_SetLogLevel<Admin::WithRawCallbackMethod_Drain<RawCalls>>;
using RawAdmin = Admin::WithRawCallbackMethod_CaptureProfile<RawControl>;

class AdminService final : public RawAdmin {
 public:
  explicit AdminService(const ServiceParts* parts) : parts_(*parts) {}

#define TENSORD_NAMED_METHOD(name, method, handler)                                                     \
  grpc::ServerUnaryReactor* name(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request, \
                                 grpc::ByteBuffer* response) override {                                 \
    return UnaryCall::Start(parts_, RpcMethod::method, context, request, response, &handler);           \
  }
#define TENSORD_UNARY_METHOD(name, handler) TENSORD_NAMED_METHOD(name, k##name, handler)
  TENSORD_UNARY_METHOD(ListPrograms, HandleListPrograms)
  TENSORD_UNARY_METHOD(EvictPrograms, HandleEvictPrograms)
  TENSORD_UNARY_METHOD(ReleasePrograms, HandleReleasePrograms)
  TENSORD_UNARY_METHOD(ListSessions, HandleListSessions)
  TENSORD_NAMED_METHOD(CloseSession, kAdminCloseSession, HandleAdminCloseSession)
  TENSORD_UNARY_METHOD(ListCalls, HandleListCalls)
  TENSORD_UNARY_METHOD(CancelCall, HandleCancelCall)
  TENSORD_UNARY_METHOD(DumpFlightRecorder, HandleDumpFlightRecorder)
  TENSORD_UNARY_METHOD(SetLogLevel, HandleSetLogLevel)
  TENSORD_UNARY_METHOD(Drain, HandleDrain)
  TENSORD_UNARY_METHOD(CaptureProfile, HandleCaptureProfile)
#undef TENSORD_UNARY_METHOD
#undef TENSORD_NAMED_METHOD

 private:
  const ServiceParts& parts_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeAdminService(const ServiceParts* parts) {
  return std::make_unique<AdminService>(parts);
}

}  // namespace tensord::server
