// S2, a warm Compile: the time that the server adds to a call whose program it has. Beside it runs an echo, which
// parses the same message and answers with the same bytes, and the decoding and hashing of the graph: no server that
// keys programs by their graphs can leave these out. Ours, the echo and the hashing take turns in each round. Exit
// status 1 if the rest is over the limit.
#include <grpcpp/grpcpp.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "engine/ops/core_ops.h"
#include "engine/runtime/compile/compiler.h"
#include "proto/codec/graph_codec.h"
#include "server/daemon.h"
#include "server/process_tuning.h"
#include "tensord/v1/compute.grpc.pb.h"
#include "tests/bench/median.h"
#include "tests/bench/option_reader.h"
#include "tests/testlib/graphs/mixed_graph.h"

namespace tensord {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kMostMicroseconds = 100;
constexpr int kNodes[] = {10, 100, 400, 1000};

class EchoService final : public v1::Compute::CallbackService {
 public:
  v1::CompileResponse answer;

  grpc::ServerUnaryReactor* Compile(grpc::CallbackServerContext* context, const v1::CompileRequest*,
                                    v1::CompileResponse* response) override {
    *response = answer;
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

double MicrosecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

double Call(v1::Compute::Stub& stub, const v1::CompileRequest& request, v1::CompileResponse* response) {
  grpc::ClientContext context;
  const auto start = Clock::now();
  const grpc::Status status = stub.Compile(&context, request, response);
  const double taken = MicrosecondsSince(start);
  if (!status.ok()) {
    std::printf("S2: a call failed: %s\n", status.error_message().c_str());
    std::exit(1);
  }
  return taken;
}

// From the message to the key, with what giving both back costs.
double Hash(const v1::CompileRequest& request) {
  const auto start = Clock::now();
  {
    const auto graph = codec::DecodeGraph(request.graph(), CoreRegistry(), {}, Order::kRowMajor);
    if (!graph.ok()) std::exit(1);
    const ProgramKey key = MakeProgramKey(*graph, {.device = "cpu:0", .row_major = true});
  }
  return MicrosecondsSince(start);
}

struct Row {
  int nodes = 0;
  double ours = 0, echo = 0, hash = 0, left = 0;  // microseconds
};

Row Measure(v1::Compute::Stub& ours, v1::Compute::Stub& echo, EchoService* service, int nodes, int rounds) {
  v1::CompileRequest request;
  const auto graph = codec::EncodeGraph(MixedGraph({.nodes = nodes}));
  if (!graph.ok()) std::exit(1);
  *request.mutable_graph() = *graph;
  request.mutable_options()->set_order(v1::MEMORY_ORDER_ROW_MAJOR);
  v1::CompileResponse response;
  Call(ours, request, &response);
  service->answer = response;
  std::vector<double> of_ours, of_echo, of_hash, left;
  for (int round = -2; round < rounds; ++round) {
    std::vector<double> calls[3];
    for (int i = 0; i < std::max(5, 2000 / nodes); ++i) {
      calls[0].push_back(Call(ours, request, &response));
      calls[1].push_back(Call(echo, request, &response));
      calls[2].push_back(Hash(request));
    }
    if (round < 0) continue;  // warm-up
    of_ours.push_back(Median(calls[0]));
    of_echo.push_back(Median(calls[1]));
    of_hash.push_back(Median(calls[2]));
    left.push_back(of_ours.back() - of_echo.back() - of_hash.back());
  }
  return {nodes, Median(of_ours), Median(of_echo), Median(of_hash), Median(left)};
}

std::string ToJson(const std::vector<Row>& rows) {
  std::vector<std::string> workloads;
  for (const Row& row : rows) {
    workloads.push_back(absl::StrFormat(
        R"({"workload": "S2_warm_%d", "threads": 1, "ours_ms": %.6f, "peers": {"echo": %.6f, "hashing": %.6f}, "left_us": %.2f, "most_left_us": %.0f})",
        row.nodes, row.ours / 1e3, row.echo / 1e3, row.hash / 1e3, row.left, kMostMicroseconds));
  }
  return absl::StrCat("{\"workloads\": [", absl::StrJoin(workloads, ",\n  "), "]}\n");
}

int Main(int rounds, const std::string& json) {
  char folder[] = "/tmp/tensord-s2.XXXXXX";
  if (mkdtemp(folder) == nullptr) return 1;
  // The server's line for each call goes into a file, as it does where it serves.
  const std::string log = absl::StrCat(folder, "/log");
  if (std::freopen(log.c_str(), "w", stderr) == nullptr) return 1;
  const std::string echo_socket = absl::StrCat("unix:", folder, "/echo.sock");
  // Before the daemon: it gives every server that is built after it the health and reflection services.
  EchoService service;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(echo_socket, grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> echo_server = builder.BuildAndStart();
  server::ServerConfig config;
  config.add_listen(absl::StrCat("unix:", folder, "/tensord.sock"));
  const auto daemon = server::Daemon::Start(config);
  if (!daemon.ok()) {
    std::printf("S2: %s\n", std::string(daemon.status().message()).c_str());
    return 1;
  }
  const auto dial = [](const std::string& address) {
    return v1::Compute::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  };
  const auto ours = dial((*daemon)->grpc_addresses()[0]), echo = dial(echo_socket);
  std::vector<Row> rows;
  bool is_met = true;
  for (const int nodes : kNodes) {
    const Row& row = rows.emplace_back(Measure(*ours, *echo, &service, nodes, rounds));
    is_met = is_met && row.left <= kMostMicroseconds;
    std::printf("S2_warm_%-6d ours %8.1f us   echo %8.1f us   hashing %8.1f us   left %6.1f us (limit %.0f)%s\n",
                row.nodes, row.ours, row.echo, row.hash, row.left, kMostMicroseconds,
                row.left <= kMostMicroseconds ? "" : "  MISSED");
  }
  if (!json.empty()) std::ofstream(json) << ToJson(rows);
  echo_server->Shutdown();
  (*daemon)->RequestStop();
  (*daemon)->RunUntilStopped();
  unlink(log.c_str());
  rmdir(folder);
  return is_met ? 0 : 1;
}

}  // namespace
}  // namespace tensord

int main(int argc, char** argv) {
  tensord::server::TuneProcess();
  int rounds = 21;
  std::string json;
  tensord::OptionReader reader;
  reader.Number("rounds", 1, 10'000, &rounds);
  reader.Text("json", &json);
  if (!reader.Read(argc, argv)) {
    std::fprintf(stderr, "usage: bench_warm_compile [--rounds=21] [--json=FILE]\n");
    return 2;
  }
  return tensord::Main(rounds, json);
}
