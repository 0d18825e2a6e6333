#include "tests/e2e/server/in_process_server.h"

#include <grpcpp/generic/generic_stub.h>
#include <prometheus/metric_family.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "absl/time/clock.h"
#include "backends/cpu/cpu_backend.h"
#include "engine/base/steady_time.h"
#include "google/protobuf/any.pb.h"
#include "google/protobuf/empty.pb.h"
#include "google/protobuf/stubs/logging.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/unknown_field_set.h"
#include "gtest/gtest.h"
#include "server/config/config_file.h"
#include "server/identity/caller.h"
#include "tests/e2e/server/host_cuda_device.h"
#include "tests/testlib/runs/veiled_backend.h"

namespace tensord {
namespace {

// However short the time is that the server gives to who asks for none.
grpc::Status CompileWithoutHaste(v1::Compute::Stub& stub, const v1::CompileRequest& request,
                                 v1::CompileResponse* response) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(5));
  return stub.Compile(&context, request, response);
}

}  // namespace

bool HasVeiledDevice() { return getenv("TENSORD_TEST_VEILED") != nullptr; }

server::OtherBackends VeiledCuda(bool prepares_slowly) {
  server::OtherBackends others;
  others.cuda = [prepares_slowly](int) -> absl::StatusOr<std::unique_ptr<Backend>> {
    return MakeVeiledBackend(MakeCpuBackend({.threads = 1}), {.kind = "cuda", .prepares_slowly = prepares_slowly});
  };
  return others;
}

TemporaryFolder::TemporaryFolder() {
  char path[] = "/tmp/tensord-e2e.XXXXXX";
  EXPECT_NE(mkdtemp(path), nullptr);
  path_ = path;
}

TemporaryFolder::~TemporaryFolder() { EXPECT_EQ(rmdir(path_.c_str()), 0) << path_ << " was not left empty"; }

InProcessServer::InProcessServer(const std::vector<std::string>& settings, server::OtherBackends others) {
  google::protobuf::SetLogHandler(nullptr);
  server::ServerConfig config;
  config.add_listen(target());
  config.mutable_log()->set_level("off");
  for (const std::string& setting : settings) {
    const absl::Status set = server::SetConfigField(setting, &config);
    EXPECT_TRUE(set.ok()) << set;
  }
  if (HasVeiledDevice() && others.in_place_of_cpu == nullptr) {
    others.in_place_of_cpu = [](std::unique_ptr<Backend> cpu) { return MakeVeiledBackend(std::move(cpu)); };
  }
  if (HasHostCuda() && others.in_place_of_cpu == nullptr) {
    others.in_place_of_cpu = [](std::unique_ptr<Backend>) { return MakeHostCudaDevice(); };
  }
  auto daemon = server::Daemon::Start(config, nullptr, others);
  if (!daemon.ok()) {
    ADD_FAILURE() << daemon.status();
    abort();  // no test can go on without
  }
  daemon_ = *std::move(daemon);
  stub_ = v1::Compute::NewStub(Dial());
  runner_ = std::thread([this] { daemon_->RunUntilStopped(); });
}

InProcessServer::~InProcessServer() {
  WaitUntilIdle();
  EXPECT_TRUE(WaitFor([&] { return parts().gate->snapshot().bytes == 0; })) << "something keeps its requests bytes";
  RequestStop();
  RequestStop();
  WaitUntilStopped();
}

std::shared_ptr<grpc::Channel> InProcessServer::Dial() const {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(-1);
  return grpc::CreateCustomChannel(target(), grpc::InsecureChannelCredentials(), arguments);
}

double InProcessServer::Metric(const std::string& name, const std::string& label) const {
  for (const auto& collectable : parts().collectables) {
    for (const prometheus::MetricFamily& family : collectable->Collect()) {
      if (family.name != name) continue;
      for (const prometheus::ClientMetric& metric : family.metric) {
        for (const prometheus::ClientMetric::Label& l : metric.label) {
          if (l.value != label) continue;
          return family.type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value;
        }
      }
    }
  }
  return -1;
}

void InProcessServer::WaitUntilIdle() {
  EXPECT_TRUE(parts().gate->WaitUntilEmpty(SteadyNow() + absl::Minutes(1), [] { return false; })) << "a call is stuck";
}

void InProcessServer::RequestStop() { daemon_->RequestStop(); }

void InProcessServer::WaitUntilStopped() {
  if (runner_.joinable()) runner_.join();
}

BlockedExecutor::BlockedExecutor(InProcessServer& server) {
  v1::CompileResponse compiled;
  v1::CompileRequest request;
  *request.mutable_graph() = SmallAdd();
  EXPECT_TRUE(CompileWithoutHaste(server.stub(), request, &compiled).ok());
  const CompiledProgramPtr program =
      *server.parts().cache->Find(*Fingerprint::FromHex(compiled.program().fingerprint()));
  const int workers = server.executor().workers();
  for (int i = 0; i < workers; ++i) {
    RunRequest run;
    run.program = program;
    const auto zeros = std::make_shared<std::vector<float>>(16, 0.0f);
    const RunTensor argument = {{DType::kF32, {16}}, std::shared_ptr<const void>(zeros, zeros->data())};
    run.arguments = {argument, argument};
    run.done = [this](const absl::StatusOr<RunOutcome>&) {
      std::unique_lock<std::mutex> lock(mutex_);
      ++holding_;
      changed_.notify_all();
      changed_.wait(lock, [this] { return released_; });
      --holding_;
      changed_.notify_all();
    };
    EXPECT_TRUE(server.executor().Submit(std::move(run)).ok());
  }
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return holding_ == workers; });
}

void BlockedExecutor::Release() {
  std::unique_lock<std::mutex> lock(mutex_);
  released_ = true;
  changed_.notify_all();
  changed_.wait(lock, [this] { return holding_ == 0; });
}

BlockedCompiler::BlockedCompiler(InProcessServer& server) {
  const std::shared_future<void> released = release_.get_future().share();
  // The callers' and the server's own, which would be given a thread besides.
  for (const std::string& tenant : {server::Caller().tenant, std::string()}) {
    const auto blocks = std::make_shared<std::promise<void>>();
    EXPECT_TRUE(server.parts()
                    .compile_pool
                    ->Submit(tenant,
                             [blocks, released] {
                               blocks->set_value();
                               released.wait();
                             })
                    .ok());
    blocks->get_future().wait();
  }
}

void BlockedCompiler::Release() {
  if (!released_) release_.set_value();
  released_ = true;
}

BlockedReaders::BlockedReaders(InProcessServer& server) {
  const std::shared_future<void> released = release_.get_future().share();
  const int threads = std::max(2, static_cast<int>(std::thread::hardware_concurrency()) / 2);
  EXPECT_TRUE(WaitFor([&] { return server.parts().readers->stats().running == 0; }));  // an answer is earlier
  for (int i = 0; i < threads; ++i) {
    EXPECT_TRUE(server.parts().readers->Submit("default", [released] { released.wait(); }).taken());
    EXPECT_TRUE(WaitFor([&] { return server.parts().readers->stats().running == i + 1; }));
  }
}

void BlockedReaders::Release() {
  if (!released_) release_.set_value();
  released_ = true;
}

bool WaitFor(const std::function<bool()>& condition) {
  const absl::Time until = absl::Now() + absl::Minutes(1);
  while (!condition()) {
    if (absl::Now() > until) return false;
    std::this_thread::yield();
  }
  return true;
}

v1::Graph GraphOf(const std::string& text) {
  v1::Graph graph;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &graph)) << text;
  return graph;
}

v1::Graph SmallAdd() {
  return GraphOf(R"(
    inputs { name: "x" type { dtype: DTYPE_F32 shape { size: 16 } } }
    inputs { name: "y" type { dtype: DTYPE_F32 shape { size: 16 } } }
    nodes { name: "sum" inputs: "x" inputs: "y" binary: BINARY_OP_ADD }
    outputs { name: "sum" value: "sum" })");
}

v1::Graph LargeSum(float scale) {
  v1::Graph graph = GraphOf(R"(
    inputs { name: "x" type { dtype: DTYPE_F32 shape { size: 16 } } }
    nodes { name: "scale" constant { value { dtype: DTYPE_F32 } } }
    nodes { name: "scales" inputs: "scale" broadcast_in_dim { shape { size: 16 } shape { size: 4096 } } }
    nodes { name: "wide" inputs: "x"
            broadcast_in_dim { shape { size: 16 } shape { size: 4096 } broadcast_dimensions: 0 } }
    nodes { name: "scaled" inputs: "wide" inputs: "scales" binary: BINARY_OP_MULTIPLY }
    nodes { name: "sum" inputs: "scaled" reduce { kind: KIND_SUM dimensions: 1 } }
    outputs { name: "sum" value: "sum" })");
  graph.mutable_nodes(0)->mutable_constant()->mutable_value()->set_data(&scale, sizeof(scale));
  return graph;
}

v1::Tensor FloatTensor(const std::vector<float>& values, const std::vector<int64_t>& shape) {
  v1::Tensor tensor;
  tensor.set_dtype(v1::DTYPE_F32);
  tensor.mutable_shape()->Assign(shape.begin(), shape.end());
  tensor.set_data(values.data(), values.size() * sizeof(float));
  return tensor;
}

std::vector<float> FloatsOf(const v1::Tensor& tensor) {
  std::vector<float> values(tensor.data().size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), tensor.data().data(), values.size() * sizeof(float));
  return values;
}

Reply CallRaw(const std::shared_ptr<grpc::Channel>& channel, const std::string& method, const std::string& bytes) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Minutes(1)));
  const grpc::Slice slice(bytes);
  const grpc::ByteBuffer request(&slice, 1);
  grpc::ByteBuffer response;
  grpc::CompletionQueue queue;
  Reply reply;
  const auto call = stub.PrepareUnaryCall(&context, "/" + method, request, &queue);
  call->StartCall();
  call->Finish(&response, &reply.status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
  std::vector<grpc::Slice> slices;
  if (reply.status.ok() && response.Dump(&slices).ok()) {
    for (const grpc::Slice& s : slices) reply.bytes.append(reinterpret_cast<const char*>(s.begin()), s.size());
  }
  return reply;
}

grpc::Status Compile(v1::Compute::Stub& stub, const v1::CompileRequest& request, v1::CompileResponse* response) {
  grpc::ClientContext context;
  return stub.Compile(&context, request, response);
}

grpc::Status Execute(v1::Compute::Stub& stub, const v1::ExecuteRequest& request, v1::ExecuteResponse* response) {
  grpc::ClientContext context;
  return stub.Execute(&context, request, response);
}

v1::ExecuteRequest RequestOf(const v1::Graph& graph, const std::vector<v1::Tensor>& arguments) {
  v1::ExecuteRequest request;
  *request.mutable_graph() = graph;
  for (const v1::Tensor& argument : arguments) *request.add_arguments()->mutable_tensor() = argument;
  return request;
}

v1::ExecuteRequest WarmRequest(v1::Compute::Stub& stub, const v1::Graph& graph,
                               const std::vector<v1::Tensor>& arguments) {
  v1::CompileRequest compile;
  *compile.mutable_graph() = graph;
  v1::CompileResponse compiled;
  const grpc::Status status = CompileWithoutHaste(stub, compile, &compiled);
  EXPECT_TRUE(status.ok()) << status.error_message();
  v1::ExecuteRequest request = RequestOf(graph, arguments);
  request.set_fingerprint(compiled.program().fingerprint());
  return request;
}

v1::ErrorDetail DetailOf(const grpc::Status& status) {
  v1::ErrorDetail detail;
  google::protobuf::Empty fields;  // google.rpc.Status: field 3 holds the details
  if (!fields.ParseFromString(status.error_details())) return detail;
  const auto& unknown = fields.GetReflection()->GetUnknownFields(fields);
  for (int i = 0; i < unknown.field_count(); ++i) {
    google::protobuf::Any any;
    if (unknown.field(i).number() == 3 && any.ParseFromString(unknown.field(i).length_delimited()))
      any.UnpackTo(&detail);
  }
  return detail;
}

}  // namespace tensord
