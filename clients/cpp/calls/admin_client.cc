#include "tensord/admin_client.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clients/cpp/connection/call_context.h"
#include "clients/cpp/connection/channel_arguments.h"
#include "clients/cpp/connection/connecting.h"
#include "clients/cpp/connection/unary_call.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "tensord/error_detail.h"
#include "tensord/v1/admin.grpc.pb.h"

namespace tensord::client {
namespace {

absl::Time DeadlineOf(const ConnectOptions& options) { return DeadlineOf(options, std::nullopt); }

}  // namespace

struct AdminClient::Stub {
  // One call that waits for its answer.
  template <typename Prepare, typename Request>
  auto Call(const ConnectOptions& options, Prepare prepare, const Request& request) {
    return Call(options, prepare, request, DeadlineOf(options));
  }
  template <typename Prepare, typename Request>
  auto Call(const ConnectOptions& options, Prepare prepare, const Request& request, absl::Time deadline) {
    return UnaryCall(ContextOf(options, deadline, ""), *admin, prepare, request);
  }

  std::unique_ptr<v1::Admin::Stub> admin;
  grpc::GenericStub generic;
};

absl::StatusOr<std::unique_ptr<AdminClient>> AdminClient::Connect(ConnectOptions options) {
  if (const absl::Status target = CheckTarget(options.target); !target.ok()) return target;
  if (options.credentials == nullptr) options.credentials = grpc::InsecureChannelCredentials();
  const std::shared_ptr<grpc::Channel> channel =
      grpc::CreateCustomChannel(options.target, options.credentials, TunedChannelArguments());
  if (const absl::Status connected = AwaitConnection(channel, options.target, options.connect_timeout);
      !connected.ok()) {
    return connected;
  }
  std::unique_ptr<Stub> stub(new Stub{.admin = v1::Admin::NewStub(channel), .generic = grpc::GenericStub(channel)});
  return std::unique_ptr<AdminClient>(new AdminClient(std::move(options), std::move(stub)));
}

AdminClient::AdminClient(ConnectOptions options, std::unique_ptr<Stub> stub)
    : options_(std::move(options)), stub_(std::move(stub)) {}

AdminClient::~AdminClient() = default;

absl::StatusOr<v1::ListProgramsResponse> AdminClient::ListPrograms() {
  v1::ListProgramsResponse all;
  v1::ListProgramsRequest request;
  const absl::Time deadline = DeadlineOf(options_);  // of all pages: a server might have no last one
  do {
    absl::StatusOr<v1::ListProgramsResponse> page =
        stub_->Call(options_, &v1::Admin::Stub::PrepareAsyncListPrograms, request, deadline);
    if (!page.ok()) return page.status();
    request.set_page_token(page->next_page_token());
    all.mutable_programs()->MergeFrom(page->programs());
  } while (!request.page_token().empty());
  return all;
}

absl::StatusOr<int64_t> AdminClient::EvictPrograms(const v1::EvictProgramsRequest& request) {
  const absl::StatusOr<v1::EvictProgramsResponse> response =
      stub_->Call(options_, &v1::Admin::Stub::PrepareAsyncEvictPrograms, request);
  if (!response.ok()) return response.status();
  return response->evicted();
}

absl::StatusOr<int64_t> AdminClient::ReleasePrograms(const v1::ReleaseProgramsRequest& request) {
  const absl::StatusOr<v1::ReleaseProgramsResponse> response =
      stub_->Call(options_, &v1::Admin::Stub::PrepareAsyncReleasePrograms, request);
  if (!response.ok()) return response.status();
  return response->released();
}

absl::StatusOr<v1::ListCallsResponse> AdminClient::ListCalls(const v1::ListCallsRequest& request) {
  return stub_->Call(options_, &v1::Admin::Stub::PrepareAsyncListCalls, request);
}

absl::Status AdminClient::CancelCall(absl::string_view id) {
  v1::CancelCallRequest request;
  request.set_id(std::string(id));
  return stub_->Call(options_, &v1::Admin::Stub::PrepareAsyncCancelCall, request).status();
}

absl::Status AdminClient::CloseSession(absl::string_view session) {
  v1::CloseSessionRequest request;
  request.set_session(std::string(session));
  return stub_->Call(options_, &v1::Admin::Stub::PrepareAsyncCloseSession, request).status();
}

absl::StatusOr<v1::ListSessionsResponse> AdminClient::ListSessions() {
  return stub_->Call(options_, &v1::Admin::Stub::PrepareAsyncListSessions, v1::ListSessionsRequest());
}

absl::StatusOr<v1::DumpFlightRecorderResponse> AdminClient::DumpFlightRecorder(
    const v1::DumpFlightRecorderRequest& request) {
  return stub_->Call(options_, &v1::Admin::Stub::PrepareAsyncDumpFlightRecorder, request);
}

absl::Status AdminClient::SetLogLevel(absl::string_view level) {
  v1::SetLogLevelRequest request;
  request.set_level(std::string(level));
  return stub_->Call(options_, &v1::Admin::Stub::PrepareAsyncSetLogLevel, request).status();
}

absl::Status AdminClient::Drain(std::optional<absl::Duration> timeout) {
  v1::DrainRequest request;
  if (timeout.has_value()) {
    const timespec parts = absl::ToTimespec(*timeout);
    request.mutable_timeout()->set_seconds(parts.tv_sec);
    request.mutable_timeout()->set_nanos(static_cast<int32_t>(parts.tv_nsec));
  }
  return stub_->Call(options_, &v1::Admin::Stub::PrepareAsyncDrain, request).status();
}

absl::StatusOr<v1::CaptureProfileResponse> AdminClient::CaptureProfile(const v1::CaptureProfileRequest& request) {
  return stub_->Call(options_, &v1::Admin::Stub::PrepareAsyncCaptureProfile, request);
}

absl::StatusOr<std::string> AdminClient::CallRaw(const std::string& method, const std::string& request) {
  const grpc::Slice sent(request);
  grpc::ByteBuffer response_bytes;
  const grpc::Status status = UnaryCall(ContextOf(options_, DeadlineOf(options_), ""), stub_->generic, method,
                                        grpc::ByteBuffer(&sent, 1), &response_bytes);
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
