// Messages of empty fields: two bytes each on the wire, an object of a hundred each in memory. They are refused on the
// wire, by every method, and cost what they are long.
#include <signal.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/e2e/server/in_process_server.h"
#include "tests/e2e/server/raw_stream.h"
#include "tests/e2e/server/server_process.h"
#include "tests/testlib/peers/bytes_field.h"

namespace tensord {
namespace {

// A list of empty elements, of that many bytes.
std::string EmptyFields(int field, int64_t bytes) {
  const std::string one = BytesField(field, "");
  std::string all;
  all.reserve(static_cast<size_t>(bytes));
  while (static_cast<int64_t>(all.size()) < bytes) all += one;
  return all;
}

struct Case {
  const char* method;
  std::string bytes;
  const char* limit;
};

std::vector<Case> Cases(int64_t bytes) {
  return {
      {"tensord.v1.Compute/Compile", BytesField(1, EmptyFields(3, bytes)), "graph_nodes"},
      {"tensord.v1.Compute/Explain", BytesField(2, EmptyFields(3, bytes)), "graph_nodes"},
      {"tensord.v1.Compute/Execute", EmptyFields(5, bytes), "graph_inputs"},
      {"tensord.v1.Compute/Execute", EmptyFields(6, bytes), "graph_outputs"},
      {"tensord.v1.Compute/Execute", BytesField(3, BytesField(3, EmptyFields(2, bytes))), "graph_edges"},
      {"tensord.v1.Compute/DeleteTensors", EmptyFields(2, bytes), "sessions.handles"},
  };
}

TEST(EmptyFieldsTest, AreRefusedByTheirLimit) {
  const TemporaryFolder folder;
  InProcessServer server({"admin.listen=unix:" + folder.path() + "/admin"});
  const auto channel = server.Dial();
  for (const Case& c : Cases(int64_t{5} << 20)) {
    const Reply reply = CallRaw(channel, c.method, c.bytes);
    EXPECT_EQ(DetailOf(reply.status).limit(), c.limit) << c.method << ": " << reply.status.error_message();
  }
  for (const char* const method : {"GetProgram", "GetServerInfo", "OpenSession", "CloseSession", "GetTensor"}) {
    const Reply reply = CallRaw(channel, absl::StrCat("tensord.v1.Compute/", method), EmptyFields(14, 1 << 20));
    EXPECT_EQ(DetailOf(reply.status).reason(), "UNSUPPORTED_REQUEST") << method;
  }
  const auto admin = grpc::CreateChannel("unix:" + folder.path() + "/admin", grpc::InsecureChannelCredentials());
  const Reply evict = CallRaw(admin, "tensord.v1.Admin/EvictPrograms", EmptyFields(1, 1 << 20));
  EXPECT_EQ(DetailOf(evict.status).limit(), "message_items") << evict.status.error_message();
}

TEST(EmptyFieldsTest, EndAStream) {
  InProcessServer server;
  for (const char* const method : {"tensord.v1.Compute/ExecuteStream", "tensord.v1.Compute/PutTensor"}) {
    RawStream stream(server.Dial(), method);
    const bool is_upload = std::string(method).back() == 'r';
    ASSERT_TRUE(
        stream.Write(is_upload ? BytesField(1, BytesField(4, std::string(1 << 20, '\1'))) : EmptyFields(5, 1 << 20)));
    EXPECT_EQ(DetailOf(stream.Finish()).limit(), is_upload ? "rank" : "graph_inputs");
  }
}

// The objects of a request are counted while they exist.
TEST(EmptyFieldsTest, ObjectsAreBytesInFlight) {
  InProcessServer server({"limits.in_flight_bytes=4194304"});
  v1::CompileRequest request;
  for (int i = 0; i < 100'000; ++i) request.mutable_graph()->add_nodes()->mutable_iota();
  const Reply reply = CallRaw(server.Dial(), "tensord.v1.Compute/Compile", request.SerializeAsString());
  EXPECT_EQ(DetailOf(reply.status).limit(), "in_flight_bytes") << reply.status.error_message();
  EXPECT_TRUE(WaitFor([&] { return server.parts().gate->snapshot().bytes == 0; }));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

int64_t PeakBytes(pid_t process) {
  std::ifstream status(absl::StrCat("/proc/", process, "/status"));
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) == 0) return std::stoll(line.substr(6)) * 1024;
  }
  return 0;
}

TEST(EmptyFieldsTest, CostWhatTheyAreLong) {
  ASSERT_FALSE(Process::BinaryPath().empty());
  constexpr int64_t kBytes = int64_t{32} << 20;
  for (const Case& c : Cases(kBytes)) {
    TemporaryFolder folder;
    Process server({"--listen=unix:" + folder.path() + "/s", "--set=log.requests=false"});
    ASSERT_FALSE(server.Line().empty());
    grpc::ChannelArguments arguments;
    arguments.SetMaxSendMessageSize(-1);
    const auto channel =
        grpc::CreateCustomChannel("unix:" + folder.path() + "/s", grpc::InsecureChannelCredentials(), arguments);
    CallRaw(channel, "tensord.v1.Compute/GetServerInfo", "");
    const int64_t before = PeakBytes(server.pid());
    EXPECT_EQ(DetailOf(CallRaw(channel, c.method, c.bytes).status).limit(), c.limit);
    EXPECT_LT(PeakBytes(server.pid()) - before, 3 * kBytes) << c.method;
    server.Signal(SIGTERM);
    EXPECT_EQ(server.Wait(), 0);
  }
}

#endif

}  // namespace
}  // namespace tensord
