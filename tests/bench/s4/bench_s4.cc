// S4, big tensors: 64 MiB to the server and back, over a unix socket and over TCP, by Execute and by PutTensor with
// GetTensor, both in messages and through shared memory. Each way is compared with an ordinary protobuf message, and
// both together with the echo of a server that hands gRPC's slices through without looking at them. They are called in
// turns, and are compared within each round, because a shared machine changes its speed between rounds. Every client
// ends with the tensor's bytes in one piece. Servers have a process of their own; that of the ordinary client and
// server leaves the allocator and gRPC as they come, the others have the same settings. Exit status 1 below a bar.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <stdlib.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "clients/cpp/connection/channel_arguments.h"
#include "clients/cpp/wire/execute_wire.h"
#include "engine/base/allocator_tuning.h"
#include "server/rpc/wire/shared_slice.h"
#include "tensord/client.h"
#include "tensord/messages.h"
#include "tensord/v1/compute.pb.h"
#include "tests/bench/median.h"
#include "tests/bench/option_reader.h"
#include "tests/bench/s4/measured_servers.h"
#include "tests/bench/s4/ordinary_peer.h"

namespace tensord {
namespace {

// The promises of the service: each way so many times as fast as a message, and there and back at least so much of the
// speed of an echo of slices.
constexpr double kFasterThanMessage = 2.5;
constexpr double kOfEcho = 0.8;

constexpr int kMostRounds = 10'000;

struct Options {
  int rounds = 15;
  int64_t mebibytes = 64;
  std::string json;
};

struct Contestant {
  std::string name;
  std::function<bool()> call;
  std::vector<double> times_ms;           // by round
  std::function<void()> prepare = [] {};  // before each call, and not part of its time
};

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "S4: %s\n", what.c_str());
  std::exit(1);
}

std::shared_ptr<grpc::Channel> Dial(const std::string& address) {
  grpc::ChannelArguments arguments = client::TunedChannelArguments();
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

bool CallBytes(grpc::GenericStub& stub, const grpc::ByteBuffer& request, grpc::ByteBuffer* response) {
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareUnaryCall(&context, client::kExecuteMethod, request, &queue);
  call->StartCall();
  grpc::Status status;
  call->Finish(response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  if (!status.ok()) std::fprintf(stderr, "S4: %s\n", status.error_message().c_str());
  return status.ok();
}

Contestant RawUpload(const std::shared_ptr<grpc::Channel>& channel, const std::shared_ptr<std::string>& tensor) {
  return {"raw", [stub = std::make_shared<grpc::GenericStub>(channel), tensor] {
            const grpc::Slice slice = server::SharedSlice(*tensor, std::shared_ptr<const void>(tensor, tensor->data()));
            grpc::ByteBuffer response;
            return CallBytes(*stub, grpc::ByteBuffer(&slice, 1), &response);
          }};
}

Contestant RawDownload(const std::shared_ptr<grpc::Channel>& channel, size_t size) {
  return {"raw", [stub = std::make_shared<grpc::GenericStub>(channel), size] {
            const grpc::Slice empty;
            grpc::ByteBuffer response;
            std::vector<grpc::Slice> slices;
            if (!CallBytes(*stub, grpc::ByteBuffer(&empty, 1), &response) || !response.Dump(&slices).ok()) return false;
            const std::unique_ptr<char[]> bytes(new char[size]);
            size_t at = 0;
            for (const grpc::Slice& slice : slices) {
              std::memcpy(bytes.get() + at, slice.begin(), slice.size());
              at += slice.size();
            }
            return at == size;
          }};
}

// A client of the server, and a tensor on both sides.
struct Ours {
  std::string session;
  client::HostTensor tensor;
  std::string take, give;  // fingerprints: of what answers with the first element, and with all
  std::string sum;         // of what adds all up: nothing but reading
  std::unique_ptr<client::Client> by_messages;
  std::unique_ptr<client::Client> client;  // with shared memory
  client::HostTensor shared;               // the tensor there
};

// x, and its first element.
v1::Graph GraphOf(int64_t elements, bool whole) {
  v1::Graph graph;
  v1::GraphInput* input = graph.add_inputs();
  input->set_name("x");
  input->mutable_type()->set_dtype(v1::DTYPE_F32);
  input->mutable_type()->add_shape()->set_size(elements);
  v1::GraphOutput* output = graph.add_outputs();
  output->set_name("y");
  output->set_value(whole ? "x" : "first");
  if (whole) return graph;
  v1::Node* node = graph.add_nodes();
  node->set_name("first");
  node->add_inputs("x");
  node->mutable_slice()->add_start_indices(0);
  node->mutable_slice()->add_limit_indices(1);
  return graph;
}

// The sum of x, all of which it reads.
v1::Graph SumOf(int64_t elements) {
  v1::Graph graph = GraphOf(elements, /*whole=*/true);
  graph.mutable_outputs(0)->set_value("sum");
  v1::Node* node = graph.add_nodes();
  node->set_name("sum");
  node->add_inputs("x");
  node->mutable_reduce()->set_kind(v1::Reduce::KIND_SUM);
  node->mutable_reduce()->add_dimensions(0);
  return graph;
}

std::string Compile(client::Client& client, const v1::Graph& graph) {
  const auto compiled = client.Compile(graph);
  if (!compiled.ok()) Die("the graph was refused: " + compiled.status().ToString());
  return compiled->program().fingerprint();
}

Ours Connect(const std::string& address, const std::shared_ptr<std::string>& bytes) {
  Ours ours;
  const int64_t elements = static_cast<int64_t>(bytes->size() / sizeof(float));
  ours.tensor = *client::HostTensor::FromBuffer(client::DType::kF32, {elements}, client::MemoryOrder::kColumnMajor,
                                                std::shared_ptr<const char>(bytes, bytes->data()), bytes->size());
  auto by_messages = client::Client::Connect({.target = address});
  if (!by_messages.ok()) Die(by_messages.status().ToString());
  ours.by_messages = *std::move(by_messages);
  auto client = client::Client::Connect({.target = address, .shared_memory = true});
  if (!client.ok() || (*client)->shared_memory() == nullptr) Die("there is no shared memory");
  ours.client = *std::move(client);
  ours.take = Compile(*ours.client, GraphOf(elements, /*whole=*/false));
  ours.give = Compile(*ours.client, GraphOf(elements, /*whole=*/true));
  ours.sum = Compile(*ours.client, SumOf(elements));
  const auto session = ours.client->OpenSession();
  if (!session.ok()) Die(session.status().ToString());
  ours.session = session->id();
  const auto block = ours.client->shared_memory()->Allocate(bytes->size());
  if (!block.ok()) Die(std::string(block.status().message()));
  std::memcpy(block->get(), bytes->data(), bytes->size());
  ours.shared = *client::HostTensor::FromBuffer(client::DType::kF32, {elements}, client::MemoryOrder::kColumnMajor,
                                                *block, bytes->size());
  return ours;
}

bool Check(const absl::Status& status) {
  if (!status.ok()) std::fprintf(stderr, "S4: %s\n", std::string(status.message()).c_str());
  return status.ok();
}

bool Put(Ours& ours, const std::string& handle) {
  return Check(ours.by_messages->PutTensor(ours.session, handle, ours.tensor));
}

Contestant ExecuteUpload(Ours& ours) {
  return {"execute", [&ours] { return Check(ours.by_messages->Execute(ours.take, {&ours.tensor, 1}).status()); }};
}

// The same answer, from the sum of a tensor that lies in shared memory, or is copied there first.
Contestant SharedUpload(Ours& ours, const std::string& name, const client::HostTensor& tensor) {
  return {name, [&ours, &tensor] { return Check(ours.client->Execute(ours.sum, {&tensor, 1}).status()); }};
}

// All of a tensor that lies in shared memory, as a result that does too: a copy each way.
Contestant SharedDownload(Ours& ours) {
  return {"shared", [&ours] {
            client::ExecuteOptions options;
            options.order = client::MemoryOrder::kColumnMajor;
            const auto result = ours.client->Execute(ours.give, {&ours.shared, 1}, options);
            return result.ok() && result->outputs.at(0).size_bytes() == ours.tensor.size_bytes();
          }};
}

// Deletes the upload of the round before.
std::function<void()> DeleteUpload(Ours& ours) {
  return [&ours] {
    const std::string handle = "up";
    if (!Check(ours.client->DeleteTensors(ours.session, {&handle, 1}).status())) Die("the tensor cannot be deleted");
  };
}

Contestant PutUpload(Ours& ours) {
  return {.name = "put", .call = [&ours] { return Put(ours, "up"); }, .prepare = DeleteUpload(ours)};
}

// A tensor that lies in shared memory, or is copied there first.
Contestant SharedPutUpload(Ours& ours, const std::string& name, const client::HostTensor& tensor) {
  const auto put = [&ours, &tensor] { return ours.client->PutTensor(ours.session, "up", tensor).ok(); };
  return {.name = name, .call = put, .prepare = DeleteUpload(ours)};
}

Contestant ExecuteDownload(Ours& ours) {
  client::ExecuteCall call{
      .fingerprint = ours.give, .arguments = {client::Argument::Handle("down")}, .session = ours.session};
  call.options.order = client::MemoryOrder::kColumnMajor;
  return {"execute", [&ours, call] {
            const auto answer = ours.by_messages->Execute(call);
            return answer.ok() && answer->outputs.at(0).tensor->size_bytes() == ours.tensor.size_bytes();
          }};
}

Contestant GetDownload(Ours& ours) {
  client::ExecuteOptions options;
  options.order = client::MemoryOrder::kColumnMajor;
  return {"get", [&ours, options] {
            const auto received = ours.by_messages->GetTensor(ours.session, "down", options);
            return received.ok() && received->size_bytes() == ours.tensor.size_bytes();
          }};
}

Contestant SharedGetDownload(Ours& ours) {
  return {"get_shared", [&ours] {
            client::ExecuteOptions options;
            options.order = client::MemoryOrder::kColumnMajor;
            const auto received = ours.client->GetTensor(ours.session, "down", options);
            return received.ok() && received->size_bytes() == ours.tensor.size_bytes();
          }};
}

double Measure(Contestant& contestant) {
  contestant.prepare();
  const auto start = std::chrono::steady_clock::now();
  if (!contestant.call()) Die(contestant.name + " failed");
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

void Run(std::vector<Contestant>& contestants, int rounds) {
  for (int round = -2; round < rounds; ++round) {
    for (size_t i = 0; i < contestants.size(); ++i) {
      Contestant& next = contestants[(i + static_cast<size_t>(round + 2)) % contestants.size()];
      const double time = Measure(next);
      if (round >= 0) next.times_ms.push_back(time);
    }
  }
}

// How many times as fast as the peer, by the median of the rounds.
double Ratio(const std::vector<double>& ours_ms, const std::vector<double>& peer_ms) {
  std::vector<double> ratios;
  for (size_t i = 0; i < ours_ms.size(); ++i) ratios.push_back(peer_ms[i] / ours_ms[i]);
  return Median(ratios);
}

// There and back, by round.
std::vector<double> Sum(const std::vector<double>& there, const std::vector<double>& back) {
  std::vector<double> sum;
  for (size_t i = 0; i < there.size(); ++i) sum.push_back(there[i] + back[i]);
  return sum;
}

struct Figures {
  std::vector<std::string> rows;  // JSON
  bool are_bars_met = true;
};

void Judge(const std::string& what, double ratio, double least, Figures* figures) {
  if (ratio >= least) return;
  figures->are_bars_met = false;
  std::fprintf(stderr, "S4: below a bar: %s\n", what.c_str());
}

// Contestants 0 and 1 are the message and the slices.
void ReportWay(const std::string& way, const std::vector<Contestant>& contestants, double mebibytes, Figures* figures) {
  const Contestant& message = contestants[0];
  const Contestant& raw = contestants[1];
  const double message_ms = Median(message.times_ms), raw_ms = Median(raw.times_ms);
  std::printf("S4 %-14s message %8.2f ms (%.2f GB/s)   raw %8.2f ms (%.2f GB/s)\n", way.c_str(), message_ms,
              mebibytes * 1.048576 / message_ms, raw_ms, mebibytes * 1.048576 / raw_ms);
  for (size_t i = 2; i < contestants.size(); ++i) {
    const Contestant& ours = contestants[i];
    const double ours_ms = Median(ours.times_ms), ratio = Ratio(ours.times_ms, message.times_ms);
    const double of_raw = Ratio(ours.times_ms, raw.times_ms);
    std::printf("S4 %-14s %-14s%8.2f ms   %.2f times a message (bar %.1f)   %.2f of raw\n", way.c_str(),
                ours.name.c_str(), ours_ms, ratio, kFasterThanMessage, of_raw);
    Judge(way + " " + ours.name, ratio, kFasterThanMessage, figures);
    figures->rows.push_back(absl::StrFormat(
        R"({"workload": "S4_%s_%s", "threads": 1, "ours_ms": %.6f, "limit_ms": %.6f, "limit": "message", "peers": {"message": %.6f, "raw": %.6f}, "ratio": %.4f, "least_ratio": %.1f, "of_raw": %.4f})",
        way, ours.name, ours_ms, message_ms / kFasterThanMessage, message_ms, raw_ms, ratio, kFasterThanMessage,
        of_raw));
  }
}

void ReportEcho(const std::string& transport, const std::string& name, const Contestant& up, const Contestant& down,
                const std::vector<double>& raw_ms, Figures* figures) {
  const std::vector<double> ours_ms = Sum(up.times_ms, down.times_ms);
  const double of_raw = Ratio(ours_ms, raw_ms);
  std::printf("S4 %-14s %-14s%8.2f ms   %.2f of a raw echo's %.2f ms (bar %.1f)\n", (transport + " echo").c_str(),
              name.c_str(), Median(ours_ms), of_raw, Median(raw_ms), kOfEcho);
  Judge(transport + " echo " + name, of_raw, kOfEcho, figures);
  figures->rows.push_back(absl::StrFormat(
      R"({"workload": "S4_%s_echo_%s", "threads": 1, "ours_ms": %.6f, "limit_ms": %.6f, "limit": "raw echo", "peers": {"raw": %.6f}, "ratio": %.4f, "least_ratio": %.1f})",
      transport, name, Median(ours_ms), Median(raw_ms) / kOfEcho, Median(raw_ms), of_raw, kOfEcho));
}

bool ReadOptions(int argc, char** argv, Options* options) {
  OptionReader reader;
  reader.Number("rounds", 1, kMostRounds, &options->rounds);
  reader.Number<int64_t>("mebibytes", 1, 1024, &options->mebibytes);
  reader.Text("json", &options->json);
  return reader.Read(argc, argv);
}

// Over one transport.
void Compare(const std::string& transport, const MeasuredServers::Addresses& servers, OrdinaryPeer& ordinary,
             const Options& options, const std::shared_ptr<std::string>& bytes, Figures* figures) {
  Ours ours = Connect(servers.tensord, bytes);
  if (!Put(ours, "down")) Die("the tensor to download cannot be put");
  const auto channel = Dial(servers.raw);
  std::vector<Contestant> uploads = {{"message", [&] { return ordinary.Upload(); }, {}},
                                     RawUpload(channel, bytes),
                                     ExecuteUpload(ours),
                                     PutUpload(ours),
                                     SharedUpload(ours, "shared", ours.shared),
                                     SharedPutUpload(ours, "put_shared", ours.shared),
                                     SharedUpload(ours, "copied", ours.tensor),
                                     SharedPutUpload(ours, "put_copied", ours.tensor)};
  std::vector<Contestant> downloads = {{"message", [&] { return ordinary.Download(); }, {}},
                                       RawDownload(channel, bytes->size()),
                                       ExecuteDownload(ours),
                                       GetDownload(ours),
                                       SharedDownload(ours),
                                       SharedGetDownload(ours)};
  Run(uploads, options.rounds);
  Run(downloads, options.rounds);
  ReportWay(transport + "_upload", uploads, static_cast<double>(options.mebibytes), figures);
  ReportWay(transport + "_download", downloads, static_cast<double>(options.mebibytes), figures);
  const std::vector<double> raw_ms = Sum(uploads[1].times_ms, downloads[1].times_ms);
  const char* const pairs[] = {"execute", "put_get", "shared", "put_get_shared"};
  for (size_t i = 0; i < std::size(pairs); ++i) {
    ReportEcho(transport, pairs[i], uploads[i + 2], downloads[i + 2], raw_ms, figures);
  }
}

int Main(const Options& options) {
  char folder[] = "/tmp/tensord-s4.XXXXXX";
  if (mkdtemp(folder) == nullptr) return 1;
  const size_t size = static_cast<size_t>(options.mebibytes) << 20;
  OrdinaryPeer by_unix(absl::StrCat("unix:", folder, "/message"), size), by_tcp("127.0.0.1:0", size);
  MeasuredServers servers(folder, size);
  if (!servers.AreReady()) return 1;
  TuneAllocator();
  const auto bytes = std::make_shared<std::string>(size, 'x');
  Figures figures;
  Compare("unix", servers.by_unix(), by_unix, options, bytes, &figures);
  Compare("tcp", servers.by_tcp(), by_tcp, options, bytes, &figures);
  if (!options.json.empty())
    std::ofstream(options.json) << "{\"workloads\": [" << absl::StrJoin(figures.rows, ",\n  ") << "]}\n";
  std::filesystem::remove_all(folder);  // with the sockets
  return figures.are_bars_met ? 0 : 1;
}

}  // namespace
}  // namespace tensord

int main(int argc, char** argv) {
  tensord::Options options;
  if (!tensord::ReadOptions(argc, argv, &options)) {
    std::fprintf(stderr, "usage: bench_s4 [--rounds=15] [--mebibytes=64] [--json=FILE]\n");
    return 2;
  }
  return tensord::Main(options);
}
