#include "clients/cpp/admin_client.h"

#include <future>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clients/cpp/channel_arguments.h"
#include "clients/cpp/connecting.h"
#include "clients/cpp/error_detail.h"
#include "clients/cpp/steady_time.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "tensord/v1/admin.grpc.pb.h"

namespace tensord::client {
namespace {

void PrepareContext(const ConnectOptions& options, grpc::ClientContext* context) {
  if (options.deadline.has_value()) context->set_deadline(ToGrpcDeadline(SteadyNow() + *options.deadline));
  for (const auto& [key, value] : options.metadata) context->AddMetadata(key, value);
}

}  // namespace

struct AdminClient::Stub {
  // One call that waits for its answer.
  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(const ConnectOptions& options,
                                grpc::Status (v1::Admin::Stub::*method)(grpc::ClientContext*, const Request&,
                                                                        Response*),
                                const Request& request) const {
    grpc::ClientContext context;
    PrepareContext(options, &context);
    Response response;
    const grpc::Status status = (admin.get()->*method)(&context, request, &response);
    if (!status.ok()) return ToAbslStatus(status);
    return response;
  }

  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::Admin::Stub> admin;
};

absl::StatusOr<std::unique_ptr<AdminClient>> AdminClient::Connect(ConnectOptions options) {
  if (const absl::Status target = CheckTarget(options.target); !target.ok()) return target;
  if (options.credentials == nullptr) options.credentials = grpc::InsecureChannelCredentials();
  const std::shared_ptr<grpc::Channel> channel =
      grpc::CreateCustomChannel(options.target, options.credentials, TunedChannelArguments());
  if (const absl::Status connected = AwaitConnection(*channel, options.target, options.connect_timeout);
      !connected.ok()) {
    return connected;
  }
  auto stub = std::make_unique<Stub>();
  stub->channel = channel;
  stub->admin = v1::Admin::NewStub(channel);
  return std::unique_ptr<AdminClient>(new AdminClient(std::move(options), std::move(stub)));
}

AdminClient::AdminClient(ConnectOptions options, std::unique_ptr<Stub> stub)
    : options_(std::move(options)), stub_(std::move(stub)) {}

AdminClient::~AdminClient() = default;

absl::StatusOr<v1::ListProgramsResponse> AdminClient::ListPrograms() {
  v1::ListProgramsResponse all;
  v1::ListProgramsRequest request;
  do {
    absl::StatusOr<v1::ListProgramsResponse> page = stub_->Call(options_, &v1::Admin::Stub::ListPrograms, request);
    if (!page.ok()) return page.status();
    request.set_page_token(page->next_page_token());
    all.mutable_programs()->MergeFrom(page->programs());
  } while (!request.page_token().empty());
  return all;
}

absl::StatusOr<int64_t> AdminClient::EvictPrograms(const v1::EvictProgramsRequest& request) {
  const absl::StatusOr<v1::EvictProgramsResponse> response =
      stub_->Call(options_, &v1::Admin::Stub::EvictPrograms, request);
  if (!response.ok()) return response.status();
  return response->evicted();
}

absl::StatusOr<int64_t> AdminClient::ReleasePrograms(const v1::ReleaseProgramsRequest& request) {
  const absl::StatusOr<v1::ReleaseProgramsResponse> response =
      stub_->Call(options_, &v1::Admin::Stub::ReleasePrograms, request);
  if (!response.ok()) return response.status();
  return response->released();
}

absl::StatusOr<v1::ListCallsResponse> AdminClient::ListCalls(const v1::ListCallsRequest& request) {
  return stub_->Call(options_, &v1::Admin::Stub::ListCalls, request);
}

absl::Status AdminClient::CancelCall(absl::string_view id) {
  v1::CancelCallRequest request;
  request.set_id(std::string(id));
  return stub_->Call(options_, &v1::Admin::Stub::CancelCall, request).status();
}

absl::Status AdminClient::CloseSession(absl::string_view session) {
  v1::CloseSessionRequest request;
  request.set_session(std::string(session));
  return stub_->Call(options_, &v1::Admin::Stub::CloseSession, request).status();
}

absl::StatusOr<v1::ListSessionsResponse> AdminClient::ListSessions() {
  return stub_->Call(options_, &v1::Admin::Stub::ListSessions, v1::ListSessionsRequest());
}

absl::StatusOr<v1::DumpFlightRecorderResponse> AdminClient::DumpFlightRecorder(
    const v1::DumpFlightRecorderRequest& request) {
  return stub_->Call(options_, &v1::Admin::Stub::DumpFlightRecorder, request);
}

absl::Status AdminClient::SetLogLevel(absl::string_view level) {
  v1::SetLogLevelRequest request;
  request.set_level(std::string(level));
  return stub_->Call(options_, &v1::Admin::Stub::SetLogLevel, request).status();
}

absl::Status AdminClient::Drain(std::optional<absl::Duration> timeout) {
  v1::DrainRequest request;
  if (timeout.has_value()) {
    const timespec parts = absl::ToTimespec(*timeout);
    request.mutable_timeout()->set_seconds(parts.tv_sec);
    request.mutable_timeout()->set_nanos(static_cast<int32_t>(parts.tv_nsec));
  }
  return stub_->Call(options_, &v1::Admin::Stub::Drain, request).status();
}

absl::StatusOr<v1::CaptureProfileResponse> AdminClient::CaptureProfile(const v1::CaptureProfileRequest& request) {
  return stub_->Call(options_, &v1::Admin::Stub::CaptureProfile, request);
}

absl::StatusOr<std::string> AdminClient::CallRaw(const std::string& method, const std::string& request) {
  grpc::ClientContext context;
  PrepareContext(options_, &context);
  const grpc::Slice sent(request);
  const grpc::ByteBuffer request_bytes(&sent, 1);
  grpc::ByteBuffer response_bytes;
  std::promise<grpc::Status> ended;
  grpc::GenericStub stub(stub_->channel);
  stub.UnaryCall(&context, method, grpc::StubOptions(), &request_bytes, &response_bytes,
                 [&ended](grpc::Status status) { ended.set_value(std::move(status)); });
  const grpc::Status status = ended.get_future().get();
  if (!status.ok()) return ToAbslStatus(status);
  std::vector<grpc::Slice> slices;
  std::string response;
  if (!response_bytes.Dump(&slices).ok()) return absl::InternalError("the response cannot be read");
  for (const grpc::Slice& slice : slices) {
    response.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return response;
}

}  // namespace tensord::client
