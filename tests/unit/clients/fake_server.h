#ifndef TENSORD_TESTS_UNIT_CLIENTS_FAKE_SERVER_H_
#define TENSORD_TESTS_UNIT_CLIENTS_FAKE_SERVER_H_

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/any.pb.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "tensord/v1/compute.grpc.pb.h"

namespace tensord::client {

// Serves tensord.v1.Compute on a socket of its own, and computes nothing: Execute returns its arguments. Each call
// first asks `refuse`, and is kept for the test to look at.
class FakeServer : private v1::Compute::Service {
 public:
  FakeServer()
      : socket_(absl::StrCat(::testing::TempDir(), "/tensord-fake-", getpid(), "-",
                             absl::Hex(reinterpret_cast<uintptr_t>(this)), ".sock")) {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::ServerBuilder builder;
    builder.SetMaxReceiveMessageSize(-1);
    builder.AddListeningPort(target(), grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~FakeServer() override {
    server_->Shutdown(std::chrono::system_clock::now());
    std::remove(socket_.c_str());
  }

  std::string target() const { return absl::StrCat("unix:", socket_); }
  grpc::HealthCheckServiceInterface* health() { return server_->GetHealthCheckService(); }

  // A failure as the server of tensord sends it.
  static grpc::Status Refusal(grpc::StatusCode code, const std::string& message, const v1::ErrorDetail& detail) {
    google::protobuf::Any packed;
    packed.PackFrom(detail);
    // google.rpc.Status by hand: code = 1, message = 2, details = 3, whose length takes two bytes here.
    const std::string any = packed.SerializeAsString();
    std::string status = absl::StrCat("\x08", std::string(1, static_cast<char>(code)), "\x12",
                                      std::string(1, static_cast<char>(message.size())), message, "\x1a");
    status += static_cast<char>(0x80u | (any.size() & 0x7fu));
    status += static_cast<char>(any.size() >> 7);
    return grpc::Status(code, message, status + any);
  }

  static grpc::Status ProgramNotFound() {
    v1::ErrorDetail detail;
    detail.set_reason("PROGRAM_NOT_FOUND");
    detail.set_node(std::string(100, 'n'));  // its length as Refusal wants it
    return Refusal(grpc::StatusCode::FAILED_PRECONDITION, "no such program", detail);
  }

  // Set before the calls that they concern.
  std::function<grpc::Status()> refuse = [] { return grpc::Status::OK; };
  std::function<grpc::Status(const v1::ExecuteRequest&, const grpc::ServerContext&)> refuse_execute =
      [](const auto&, const auto&) { return grpc::Status::OK; };
  std::function<grpc::Status(grpc::ServerContext*, grpc::ServerReader<v1::PutTensorRequest>*, v1::PutTensorResponse*)>
      put_tensor;
  std::function<grpc::Status(const v1::GetTensorRequest&, grpc::ServerWriter<v1::GetTensorResponse>*)> get_tensor;
  using ExecuteStreamEnd = grpc::ServerReaderWriter<v1::ExecuteResponse, v1::ExecuteRequest>;
  std::function<grpc::Status(ExecuteStreamEnd*)> execute_stream;
  v1::ServerInfo info;
  std::string explain_text = "one segment";
  std::vector<v1::ContractionPlan> contractions;  // that Explain answers with
  // The last request of each kind; read after its call returned.
  v1::CompileRequest compile_request;
  v1::ExecuteRequest execute_request;
  v1::ExplainRequest explain_request;
  v1::DifferentiateRequest differentiate_request;
  std::multimap<std::string, std::string> metadata;
  // A received call: its method, its key for a balancer, and its time.
  struct Called {
    std::string method, route;
    std::chrono::system_clock::duration time_left;
  };
  std::vector<Called> calls;
  std::function<grpc::Status(const v1::GetProgramRequest&)> refuse_program = [](const auto&) {
    return grpc::Status::OK;
  };

 private:
  grpc::Status Compile(grpc::ServerContext* context, const v1::CompileRequest* request,
                       v1::CompileResponse* response) override {
    Keep("Compile", *context);
    compile_request = *request;
    v1::Program& program = *response->mutable_program();
    program.set_fingerprint(std::string(64, 'f'));
    program.set_device("cpu:0");
    *program.mutable_inputs() = request->graph().inputs();
    program.set_instruction_count(request->graph().nodes_size());
    response->set_source(v1::CompileResponse::SOURCE_MEMORY);
    return refuse();
  }

  grpc::Status GetProgram(grpc::ServerContext* context, const v1::GetProgramRequest* request,
                          v1::Program* program) override {
    Keep("GetProgram", *context);
    program->set_fingerprint(request->fingerprint());
    const grpc::Status status = refuse_program(*request);
    return status.ok() ? refuse() : status;
  }

  grpc::Status OpenSession(grpc::ServerContext* context, const v1::OpenSessionRequest*, v1::Session* session) override {
    Keep("OpenSession", *context);
    session->set_id(absl::StrCat("session of call ", calls.size()));
    return refuse();
  }

  grpc::Status CloseSession(grpc::ServerContext* context, const v1::CloseSessionRequest*,
                            v1::CloseSessionResponse*) override {
    Keep("CloseSession", *context);
    return refuse();
  }

  grpc::Status DeleteTensors(grpc::ServerContext* context, const v1::DeleteTensorsRequest*,
                             v1::DeleteTensorsResponse*) override {
    Keep("DeleteTensors", *context);
    return refuse();
  }

  grpc::Status Explain(grpc::ServerContext* context, const v1::ExplainRequest* request,
                       v1::ExplainResponse* response) override {
    Keep("Explain", *context);
    explain_request = *request;
    response->set_text(explain_text);
    for (const v1::ContractionPlan& plan : contractions) *response->add_contractions() = plan;
    return refuse();
  }

  grpc::Status Differentiate(grpc::ServerContext* context, const v1::DifferentiateRequest* request,
                             v1::DifferentiateResponse* response) override {
    Keep("Differentiate", *context);
    differentiate_request = *request;
    *response->mutable_graph() = request->graph();
    for (v1::GraphOutput& output : *response->mutable_graph()->mutable_outputs()) {
      output.set_name(output.name() + ".derivative");
    }
    if (request->split()) *response->mutable_backward() = request->graph();
    return refuse();
  }

  grpc::Status Execute(grpc::ServerContext* context, const v1::ExecuteRequest* request,
                       v1::ExecuteResponse* response) override {
    Keep("Execute", *context);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      execute_request = *request;
    }
    for (const v1::Argument& argument : request->arguments()) {
      *response->add_results()->mutable_tensor() = argument.tensor();
    }
    response->mutable_stats()->set_device("cpu:0");
    response->mutable_stats()->mutable_run_time()->set_nanos(1500000);
    if (request->profile()) response->mutable_stats()->add_segments()->set_kernel("copy");
    const grpc::Status status = refuse_execute(*request, *context);
    return status.ok() ? refuse() : status;
  }

  grpc::Status GetServerInfo(grpc::ServerContext* context, const v1::GetServerInfoRequest* request,
                             v1::ServerInfo* response) override {
    Keep("GetServerInfo", *context);
    *response = info;
    if (!request->capabilities()) response->clear_capabilities();
    return refuse();
  }

  grpc::Status PutTensor(grpc::ServerContext* context, grpc::ServerReader<v1::PutTensorRequest>* reader,
                         v1::PutTensorResponse* response) override {
    Keep("PutTensor", *context);
    return put_tensor(context, reader, response);
  }

  grpc::Status GetTensor(grpc::ServerContext* context, const v1::GetTensorRequest* request,
                         grpc::ServerWriter<v1::GetTensorResponse>* writer) override {
    Keep("GetTensor", *context);
    return get_tensor(*request, writer);
  }

  grpc::Status ExecuteStream(grpc::ServerContext* context, ExecuteStreamEnd* stream) override {
    Keep("ExecuteStream", *context);
    return execute_stream(stream);
  }

  void Keep(const std::string& method, const grpc::ServerContext& context) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto route = context.client_metadata().find("x-tensord-route");
    calls.push_back({.method = method,
                     .route = route == context.client_metadata().end()
                                  ? ""
                                  : std::string(route->second.data(), route->second.size()),
                     .time_left = context.deadline() - std::chrono::system_clock::now()});
    metadata.clear();
    for (const auto& [key, value] : context.client_metadata()) {
      metadata.emplace(std::string(key.data(), key.size()), std::string(value.data(), value.size()));
    }
  }

  std::string socket_;
  std::mutex mutex_;  // of what calls keep, of which there may be several at once
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace tensord::client

#endif  // TENSORD_TESTS_UNIT_CLIENTS_FAKE_SERVER_H_
