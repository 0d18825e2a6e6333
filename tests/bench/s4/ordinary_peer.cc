#include "tests/bench/s4/ordinary_peer.h"

#include <grpcpp/grpcpp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensord/v1/compute.grpc.pb.h"

namespace tensord {
namespace {

class MessageService final : public v1::Compute::CallbackService {
 public:
  explicit MessageService(size_t tensor_bytes) : tensor_(tensor_bytes, 'x') {}

 private:
  // Gives a tensor to whoever sends none.
  grpc::ServerUnaryReactor* Execute(grpc::CallbackServerContext* context, const v1::ExecuteRequest* request,
                                    v1::ExecuteResponse* response) override {
    if (request->arguments().empty()) response->add_results()->mutable_tensor()->set_data(tensor_);
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  const std::string tensor_;
};

bool Call(v1::Compute::Stub& stub, char what, const std::string& tensor) {
  v1::ExecuteRequest request;
  if (what == 'u') request.add_arguments()->mutable_tensor()->set_data(tensor);
  grpc::ClientContext context;
  v1::ExecuteResponse response;
  if (!stub.Execute(&context, request, &response).ok()) return false;
  return what == 'u' || response.results(0).tensor().data().size() == tensor.size();
}

void Serve(const std::string& address, size_t tensor_bytes, int orders, int answers) {
  MessageService service(tensor_bytes);
  grpc::ServerBuilder builder;
  int port = 0;  // where it is one
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  builder.SetMaxReceiveMessageSize(-1);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  const std::string target = absl::StartsWith(address, "unix:") ? address : absl::StrCat("127.0.0.1:", port);
  const auto stub =
      v1::Compute::NewStub(grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments));
  const std::string tensor(tensor_bytes, 'x');
  for (char what; read(orders, &what, 1) == 1;) {
    const char answer = server != nullptr && Call(*stub, what, tensor) ? '+' : '-';
    if (write(answers, &answer, 1) != 1) break;
  }
  if (server != nullptr) server->Shutdown();
}

}  // namespace

OrdinaryPeer::OrdinaryPeer(const std::string& address, size_t tensor_bytes) {
  int orders[2], answers[2];
  if (pipe(orders) != 0 || pipe(answers) != 0) return;
  process_ = fork();
  if (process_ == 0) {
    close(orders[1]);
    close(answers[0]);
    Serve(address, tensor_bytes, orders[0], answers[1]);
    std::_Exit(0);
  }
  close(orders[0]);
  close(answers[1]);
  orders_ = orders[1];
  answers_ = answers[0];
}

OrdinaryPeer::~OrdinaryPeer() {
  close(orders_);
  close(answers_);
  if (process_ > 0) waitpid(process_, nullptr, 0);
}

bool OrdinaryPeer::Do(char what) {
  char answer = '-';
  return write(orders_, &what, 1) == 1 && read(answers_, &answer, 1) == 1 && answer == '+';
}

}  // namespace tensord
