#ifndef TENSORD_TESTS_E2E_SERVER_IN_PROCESS_SERVER_H_
#define TENSORD_TESTS_E2E_SERVER_IN_PROCESS_SERVER_H_

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "server/daemon.h"
#include "tensord/v1/compute.grpc.pb.h"

namespace tensord {

// A folder that goes with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Tells whether servers of these tests have a device whose memory the host cannot read (VeiledBackend) in the place of
// the CPU: if the environment variable TENSORD_TEST_VEILED is set.
bool HasVeiledDevice();

// Gives servers whose `devices` have one of CUDA the processor in its place, behind memory that the host cannot read
// (VeiledBackend).
server::OtherBackends VeiledCuda(bool prepares_slowly = false);

// The whole server, in this process, on a unix socket of its own. Settings as for --set.
class InProcessServer {
 public:
  // `others` stand in the place of backends of the server; in the place of the CPU's also the devices above do.
  explicit InProcessServer(const std::vector<std::string>& settings = {}, server::OtherBackends others = {});
  // Checks that no call and no byte is left inside.
  ~InProcessServer();

  server::Daemon& daemon() { return *daemon_; }
  const server::ServerParts& parts() const { return daemon_->parts(); }
  std::string socket_path() const { return folder_.path() + "/s"; }
  std::string target() const { return "unix:" + socket_path(); }
  // A channel with connections of its own.
  std::shared_ptr<grpc::Channel> Dial() const;
  v1::Compute::Stub& stub() { return *stub_; }
  DeviceExecutor& executor() { return **parts().executors->all().begin(); }

  // Returns the value of the counter or gauge of that name with that value of a label; -1 if there is none.
  double Metric(const std::string& name, const std::string& label) const;
  // Waits until no call is inside.
  void WaitUntilIdle();
  // Stops the server from a thread of its own, as a signal does. Again: at once.
  void RequestStop();
  void WaitUntilStopped();

 private:
  TemporaryFolder folder_;
  std::unique_ptr<server::Daemon> daemon_;
  std::unique_ptr<v1::Compute::Stub> stub_;
  std::thread runner_;
};

// Keeps every worker of the server's first executor busy until it is released or destroyed.
class BlockedExecutor {
 public:
  explicit BlockedExecutor(InProcessServer& server);
  ~BlockedExecutor() { Release(); }
  void Release();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int holding_ = 0;
  bool released_ = false;
};

// Keeps every compiling thread of a server with compiler.threads=1, and callers of one tenant, busy until it is
// released or destroyed.
class BlockedCompiler {
 public:
  explicit BlockedCompiler(InProcessServer& server);
  ~BlockedCompiler() { Release(); }
  void Release();

 private:
  std::promise<void> release_;
  bool released_ = false;
};

// Takes all turns to read of the tenant "default".
class BlockedReaders {
 public:
  explicit BlockedReaders(InProcessServer& server);
  ~BlockedReaders() { Release(); }
  void Release();

 private:
  std::promise<void> release_;
  bool released_ = false;
};

// Lets other threads run until the condition holds; gives up, false, after a minute.
bool WaitFor(const std::function<bool()>& condition);

// A wire graph of its text form.
v1::Graph GraphOf(const std::string& text);
// x + y on f32[16]: so small that it runs where it is received.
v1::Graph SmallAdd();
// x on f32[16], broadcast to [16, 4096] and summed: one of those that go to an executor. `scale` makes another program.
v1::Graph LargeSum(float scale = 1);
v1::Tensor FloatTensor(const std::vector<float>& values, const std::vector<int64_t>& shape);
std::vector<float> FloatsOf(const v1::Tensor& tensor);

struct Reply {
  grpc::Status status;
  std::string bytes;
};
// Sends these very bytes to a method, "tensord.v1.Compute/Execute".
Reply CallRaw(const std::shared_ptr<grpc::Channel>& channel, const std::string& method, const std::string& bytes);

grpc::Status Compile(v1::Compute::Stub& stub, const v1::CompileRequest& request, v1::CompileResponse* response);
grpc::Status Execute(v1::Compute::Stub& stub, const v1::ExecuteRequest& request, v1::ExecuteResponse* response);
// The request that runs a graph on one tensor.
v1::ExecuteRequest RequestOf(const v1::Graph& graph, const std::vector<v1::Tensor>& arguments);
// A request for a program that is compiled already.
v1::ExecuteRequest WarmRequest(v1::Compute::Stub& stub, const v1::Graph& graph,
                               const std::vector<v1::Tensor>& arguments);

// Decodes grpc-status-details-bin; all fields are empty if it is absent or malformed.
v1::ErrorDetail DetailOf(const grpc::Status& status);

}  // namespace tensord

#endif  // TENSORD_TESTS_E2E_SERVER_IN_PROCESS_SERVER_H_
