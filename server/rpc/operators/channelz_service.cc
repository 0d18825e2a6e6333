#include "server/rpc/operators/channelz_service.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/util/json_util.h>
#include <grpc/grpc.h>
#include <grpc/support/alloc.h>
#include <grpcpp/ext/channelz_service_plugin.h>
#include <grpcpp/impl/codegen/server_callback_handlers.h>
#include <grpcpp/impl/rpc_service_method.h>

#include <deque>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "server/rpc/calls/unary_call.h"

namespace tensord::server {
namespace {

using google::protobuf::Message;

// gRPC's library of channelz has the messages, but no header of them: without a name of its own that is used, linkers
// leave it out.
[[gnu::used]] void (*const kLibrary)() = &grpc::channelz::experimental::InitChannelzService;

std::unique_ptr<Message> NewMessage(absl::string_view name) {
  const auto* descriptor = google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(
      absl::StrCat("grpc.channelz.v1.", name));
  if (descriptor == nullptr) return nullptr;
  return std::unique_ptr<Message>(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(descriptor)->New());
}

int64_t Number(const Message& request, const char* field) {
  return request.GetReflection()->GetInt64(request, request.GetDescriptor()->FindFieldByName(field));
}

// Returns the core's knowledge as JSON of the response; null if there is no such object. Freed by gpr_free.
char* Ask(RpcMethod method, const Message& request) {
  switch (method) {
    case RpcMethod::kGetTopChannels:
      return grpc_channelz_get_top_channels(Number(request, "start_channel_id"));
    case RpcMethod::kGetServers:
      return grpc_channelz_get_servers(Number(request, "start_server_id"));
    case RpcMethod::kGetServer:
      return grpc_channelz_get_server(Number(request, "server_id"));
    case RpcMethod::kGetServerSockets:
      return grpc_channelz_get_server_sockets(Number(request, "server_id"), Number(request, "start_socket_id"),
                                              Number(request, "max_results"));
    case RpcMethod::kGetChannel:
      return grpc_channelz_get_channel(Number(request, "channel_id"));
    case RpcMethod::kGetSubchannel:
      return grpc_channelz_get_subchannel(Number(request, "subchannel_id"));
    case RpcMethod::kGetSocket:
      return grpc_channelz_get_socket(Number(request, "socket_id"));
    default:
      return nullptr;
  }
}

void HandleChannelz(UnaryCall* call) {
  const RpcMethod method = call->record().method;
  const std::unique_ptr<Message> request = NewMessage(absl::StrCat(Name(method), "Request"));
  const std::unique_ptr<Message> response = NewMessage(absl::StrCat(Name(method), "Response"));
  if (request == nullptr || response == nullptr) {
    return call->Fail(Refuse(Refusal::kUnsupportedRequest, "this server was built without gRPC's channelz"));
  }
  const absl::Status parsed = call->Parse(request.get());
  if (!parsed.ok()) return call->Fail(parsed);
  // The core takes an id of 0 for a mistake of its caller's in one place, and a negative one in all.
  const google::protobuf::Descriptor* descriptor = request->GetDescriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const auto* field = descriptor->field(i);
    if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_INT64 &&
        request->GetReflection()->GetInt64(*request, field) < 0) {
      return call->Fail(Refuse(Refusal::kMalformedMessage, absl::StrCat(field->name(), " is negative")));
    }
  }
  char* const json = Ask(method, *request);
  if (json == nullptr) return call->Fail(absl::NotFoundError("gRPC has no object of that id any more"));
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto converted = google::protobuf::util::JsonStringToMessage(json, response.get(), options);
  gpr_free(json);
  if (!converted.ok()) return call->Fail(Refuse(Refusal::kInternal, "gRPC's own account could not be read"));
  call->Reply(*response);
}

class ChannelzService final : public grpc::Service {
 public:
  explicit ChannelzService(const ServiceParts* parts) : parts_(*parts) {
    for (const RpcMethod method :
         {RpcMethod::kGetTopChannels, RpcMethod::kGetServers, RpcMethod::kGetServer, RpcMethod::kGetServerSockets,
          RpcMethod::kGetChannel, RpcMethod::kGetSubchannel, RpcMethod::kGetSocket}) {
      Add(method);
    }
  }

 private:
  // Works as generated services do, whose messages would need that header.
  void Add(RpcMethod method) {
    using Handler = grpc::internal::CallbackUnaryHandler<grpc::ByteBuffer, grpc::ByteBuffer>;
    paths_.push_back(absl::StrCat("/grpc.channelz.v1.Channelz/", Name(method)));
    AddMethod(
        new grpc::internal::RpcServiceMethod(paths_.back().c_str(), grpc::internal::RpcMethod::NORMAL_RPC, nullptr));
    const auto start = [this, method](grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                      grpc::ByteBuffer* response) {
      return UnaryCall::Start(parts_, method, context, request, response, &HandleChannelz);
    };
    MarkMethodRawCallback(paths_.size() - 1, new Handler(start));
  }

  const ServiceParts& parts_;
  std::deque<std::string> paths_;  // of the methods, which do not copy them
};

}  // namespace

std::unique_ptr<grpc::Service> MakeChannelzService(const ServiceParts* parts) {
  return std::make_unique<ChannelzService>(parts);
}

}  // namespace tensord::server
