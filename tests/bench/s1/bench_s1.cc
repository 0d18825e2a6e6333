// S1, floor latency: a warm Execute of one Add on f32[16], against a bare gRPC echo that is built from the same stubs
// and answers with the request's first tensor; one caller's latency, and the calls a second of several clients, each
// with a connection of its own. Each server has a process of its own, as servers do, and is tuned as it comes. Both are
// called in turns by the same client code, and are compared within each round, because a shared machine changes its
// speed between rounds. Exit status 1 over a limit.
#include <grpcpp/grpcpp.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tensord/v1/compute.grpc.pb.h"
#include "tests/bench/option_reader.h"
#include "tests/bench/servers/server_process.h"
#include "tests/bench/servers/tensord_process.h"

namespace tensord {
namespace {

constexpr double kLimitRatio = 1.5;
constexpr double kMostAddedMicroseconds = 30;
constexpr double kLeastThroughputRatio = 0.7;
constexpr int kClients[] = {1, 16, 64};
constexpr int kMostRounds = 10'000;
constexpr int kMostCalls = 1'000'000;

class EchoService final : public v1::Compute::CallbackService {
  grpc::ServerUnaryReactor* Execute(grpc::CallbackServerContext* context, const v1::ExecuteRequest* request,
                                    v1::ExecuteResponse* response) override {
    *response->add_results()->mutable_tensor() = request->arguments(0).tensor();
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

struct Options {
  int rounds = 21;
  int calls = 400;  // a round and server, of one caller; of several clients four times as many together
  std::string json;
};

struct Peer {
  std::string address;
  std::unique_ptr<v1::Compute::Stub> stub;
  std::vector<double> p50_us;  // by round
  std::vector<double> p99_us;
};

struct Transport {
  std::string name;
  Peer ours, echo;
  std::vector<double> ratios;  // of the p50s, by round
  std::vector<double> added;   // microseconds between the p50s, by round
};

// So many clients of both servers of a transport.
struct Throughput {
  std::string transport;
  int clients = 0;
  std::vector<std::unique_ptr<v1::Compute::Stub>> ours, echo;
  std::vector<double> ours_per_second, echo_per_second, ratios;  // by round
};

// Listens at the socket and at a port of TCP.
ServerProcess::Serve EchoOf(const std::string& socket) {
  return [socket](const ServerProcess::Served& served) {
    EchoService echo;
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(socket, grpc::InsecureServerCredentials());
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&echo);
    const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
    if (server == nullptr) return 1;
    served({socket, absl::StrCat("127.0.0.1:", port)});
    server->Shutdown();
    return 0;
  };
}

double Percentile(std::vector<double> values, double fraction) {
  const size_t index = static_cast<size_t>(fraction * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(index), values.end());
  return values[index];
}

v1::Graph AddGraph() {
  v1::Graph graph;
  for (const char* name : {"x", "y"}) {
    v1::GraphInput* input = graph.add_inputs();
    input->set_name(name);
    input->mutable_type()->set_dtype(v1::DTYPE_F32);
    input->mutable_type()->add_shape()->set_size(16);
  }
  v1::Node* node = graph.add_nodes();
  node->set_name("sum");
  node->add_inputs("x");
  node->add_inputs("y");
  node->set_binary(v1::BINARY_OP_ADD);
  v1::GraphOutput* output = graph.add_outputs();
  output->set_name("sum");
  output->set_value("sum");
  return graph;
}

v1::ExecuteRequest AddRequest(const std::string& fingerprint) {
  v1::ExecuteRequest request;
  request.set_fingerprint(fingerprint);
  const std::vector<float> values(16, 1.5f);
  for (int i = 0; i < 2; ++i) {
    v1::Tensor* tensor = request.add_arguments()->mutable_tensor();
    tensor->set_dtype(v1::DTYPE_F32);
    tensor->add_shape(16);
    tensor->set_data(values.data(), values.size() * sizeof(float));
  }
  return request;
}

std::unique_ptr<v1::Compute::Stub> Dial(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return v1::Compute::NewStub(grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
}

// Microseconds of one call; exits where it fails or the answer is wrong.
double Call(v1::Compute::Stub& stub, const v1::ExecuteRequest& request) {
  grpc::ClientContext context;
  v1::ExecuteResponse response;
  const auto start = std::chrono::steady_clock::now();
  const grpc::Status status = stub.Execute(&context, request, &response);
  const auto end = std::chrono::steady_clock::now();
  if (!status.ok() || response.results(0).tensor().data().size() != 64) {
    std::printf("S1: a call failed: %s\n", status.error_message().c_str());
    std::exit(1);
  }
  return std::chrono::duration<double, std::micro>(end - start).count();
}

void Measure(Peer& peer, const v1::ExecuteRequest& request, int calls) {
  std::vector<double> times(static_cast<size_t>(calls));
  for (double& time : times) time = Call(*peer.stub, request);
  peer.p50_us.push_back(Percentile(times, 0.5));
  peer.p99_us.push_back(Percentile(times, 0.99));
}

// Calls a second of all clients together, each one after the other.
double CallsPerSecond(const std::vector<std::unique_ptr<v1::Compute::Stub>>& clients, const v1::ExecuteRequest& request,
                      int calls) {
  const int each = std::max(1, calls / static_cast<int>(clients.size()));
  std::vector<std::thread> threads;
  const auto start = std::chrono::steady_clock::now();
  for (const auto& stub : clients) {
    threads.emplace_back([&request, each, client = stub.get()] {
      for (int i = 0; i < each; ++i) Call(*client, request);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  return static_cast<double>(clients.size()) * each / taken.count();
}

Throughput ThroughputOf(const Transport& transport, int clients) {
  Throughput throughput{.transport = transport.name, .clients = clients};
  for (int i = 0; i < clients; ++i) {
    throughput.ours.push_back(Dial(transport.ours.address));
    throughput.echo.push_back(Dial(transport.echo.address));
  }
  return throughput;
}

void Measure(Throughput& throughput, const v1::ExecuteRequest& request, int calls, int round) {
  double ours = 0, echo = 0;
  if (round % 2 == 0) ours = CallsPerSecond(throughput.ours, request, calls);
  echo = CallsPerSecond(throughput.echo, request, calls);
  if (round % 2 != 0) ours = CallsPerSecond(throughput.ours, request, calls);
  if (round < 0) return;  // warm-up
  throughput.ours_per_second.push_back(ours);
  throughput.echo_per_second.push_back(echo);
  throughput.ratios.push_back(ours / echo);
}

std::string Compile(v1::Compute::Stub& stub) {
  grpc::ClientContext context;
  v1::CompileRequest request;
  *request.mutable_graph() = AddGraph();
  v1::CompileResponse response;
  const grpc::Status status = stub.Compile(&context, request, &response);
  if (!status.ok()) {
    std::printf("S1: the graph was refused: %s\n", status.error_message().c_str());
    std::exit(1);
  }
  return response.program().fingerprint();
}

bool ReadOptions(int argc, char** argv, Options* options) {
  OptionReader reader;
  reader.Number("rounds", 1, kMostRounds, &options->rounds);
  reader.Number("calls", 10, kMostCalls, &options->calls);
  reader.Text("json", &options->json);
  return reader.Read(argc, argv);
}

std::string ToJson(const std::vector<Transport>& transports, const std::vector<Throughput>& throughputs) {
  std::vector<std::string> workloads;
  for (const Throughput& t : throughputs) {
    workloads.push_back(absl::StrFormat(
        R"({"workload": "S1_clients_%d", "transport": "%s", "threads": %d, "ours_ms": %.6f, "peers": {"echo": %.6f}, "ratio": %.4f, "least_ratio": %.1f})",
        t.clients, t.transport, t.clients, 1e3 / Percentile(t.ours_per_second, 0.5),
        1e3 / Percentile(t.echo_per_second, 0.5), Percentile(t.ratios, 0.5), kLeastThroughputRatio));
  }
  for (const Transport& t : transports) {
    workloads.push_back(absl::StrFormat(
        R"({"workload": "S1", "transport": "%s", "threads": 1, "ours_ms": %.6f, "p99_ms": %.6f, "limit_ms": %.6f, "limit": "echo", "peers": {"echo": %.6f}, "ratio": %.4f, "largest_ratio": %.1f, "added_us": %.2f, "most_added_us": %.0f})",
        t.name, Percentile(t.ours.p50_us, 0.5) / 1e3, Percentile(t.ours.p99_us, 0.5) / 1e3,
        kLimitRatio * Percentile(t.echo.p50_us, 0.5) / 1e3, Percentile(t.echo.p50_us, 0.5) / 1e3,
        Percentile(t.ratios, 0.5), kLimitRatio, Percentile(t.added, 0.5), kMostAddedMicroseconds));
  }
  return absl::StrCat("{\"workloads\": [", absl::StrJoin(workloads, ",\n  "), "]}\n");
}

void Measure(Transport& transport, const v1::ExecuteRequest& request, int calls, int round) {
  // The first peer takes turns too.
  Peer* const first = round % 2 == 0 ? &transport.ours : &transport.echo;
  Peer* const second = round % 2 == 0 ? &transport.echo : &transport.ours;
  Measure(*first, request, calls);
  Measure(*second, request, calls);
  transport.ratios.push_back(transport.ours.p50_us.back() / transport.echo.p50_us.back());
  transport.added.push_back(transport.ours.p50_us.back() - transport.echo.p50_us.back());
  if (round >= 0) return;  // warm-up
  for (Peer* peer : {first, second}) {
    peer->p50_us.clear();
    peer->p99_us.clear();
  }
  transport.ratios.clear();
  transport.added.clear();
}

// Prints the figures; false if a limit is missed.
bool Tell(const std::vector<Transport>& transports, const std::vector<Throughput>& throughputs) {
  bool are_met = true;
  for (const Transport& t : transports) {
    const double ratio = Percentile(t.ratios, 0.5), added = Percentile(t.added, 0.5);
    const bool is_met = ratio <= kLimitRatio && added <= kMostAddedMicroseconds;
    are_met = are_met && is_met;
    std::printf(
        "S1 %-4s  ours p50 %7.1f us  p99 %7.1f us   echo p50 %7.1f us  p99 %7.1f us   added %.1f us (limit %.0f)   "
        "ratio %.3f (limit %.1f)%s\n",
        t.name.c_str(), Percentile(t.ours.p50_us, 0.5), Percentile(t.ours.p99_us, 0.5), Percentile(t.echo.p50_us, 0.5),
        Percentile(t.echo.p99_us, 0.5), added, kMostAddedMicroseconds, ratio, kLimitRatio, is_met ? "" : "  MISSED");
  }
  for (const Throughput& t : throughputs) {
    const bool is_met = Percentile(t.ratios, 0.5) >= kLeastThroughputRatio;
    are_met = are_met && is_met;
    std::printf("S1 %-4s  %2d clients   ours %8.0f calls/s   echo %8.0f calls/s   ratio %.3f (limit %.1f)%s\n",
                t.transport.c_str(), t.clients, Percentile(t.ours_per_second, 0.5), Percentile(t.echo_per_second, 0.5),
                Percentile(t.ratios, 0.5), kLeastThroughputRatio, is_met ? "" : "  MISSED");
  }
  return are_met;
}

int Main(const Options& options) {
  char folder[] = "/tmp/tensord-s1.XXXXXX";
  if (mkdtemp(folder) == nullptr) return 1;
  // The server's line for each call goes into a file, as it does where it serves.
  const std::string log = absl::StrCat(folder, "/log");
  if (std::freopen(log.c_str(), "w", stderr) == nullptr) return 1;

  server::ServerConfig config;
  config.add_listen(absl::StrCat("unix:", folder, "/tensord.sock"));
  config.add_listen("127.0.0.1:0");
  std::optional<ServerProcess> ours(TensordOf(config)), echo(EchoOf(absl::StrCat("unix:", folder, "/echo.sock")));
  const std::vector<std::string> our_addresses = ours->Await(), echo_addresses = echo->Await();
  if (our_addresses.size() != 2 || echo_addresses.size() != 2) {
    std::ifstream text(log);
    std::cout << "S1: a server does not start\n" << text.rdbuf();
    return 1;
  }

  std::vector<Transport> transports(2);
  for (size_t i = 0; i < transports.size(); ++i) {
    transports[i] = {.name = i == 0 ? "unix" : "tcp",
                     .ours = {our_addresses[i], Dial(our_addresses[i])},
                     .echo = {echo_addresses[i], Dial(echo_addresses[i])}};
  }
  const v1::ExecuteRequest request = AddRequest(Compile(*transports[0].ours.stub));
  for (int round = -2; round < options.rounds; ++round) {
    for (Transport& transport : transports) Measure(transport, request, options.calls, round);
  }
  std::vector<Throughput> throughputs;
  for (const Transport& transport : transports) {
    for (const int clients : kClients) throughputs.push_back(ThroughputOf(transport, clients));
  }
  for (int round = -2; round < options.rounds; ++round) {
    for (Throughput& throughput : throughputs) Measure(throughput, request, 4 * options.calls, round);
  }
  const bool are_limits_met = Tell(transports, throughputs);
  if (!options.json.empty()) std::ofstream(options.json) << ToJson(transports, throughputs);
  throughputs.clear();
  transports.clear();
  ours.reset();
  echo.reset();
  unlink(log.c_str());
  rmdir(folder);
  return are_limits_met ? 0 : 1;
}

}  // namespace
}  // namespace tensord

int main(int argc, char** argv) {
  tensord::Options options;
  if (!tensord::ReadOptions(argc, argv, &options)) {
    std::fprintf(stderr, "usage: bench_s1 [--rounds=21] [--calls=400] [--json=FILE]\n");
    return 2;
  }
  return tensord::Main(options);
}
