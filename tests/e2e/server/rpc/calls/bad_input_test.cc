// Mistakes and malice of clients: every case gets a clear error, and the server goes on with nothing left behind (which
// the fixture's destructor checks).
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/server/in_process_server.h"

namespace tensord {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr char kCompile[] = "tensord.v1.Compute/Compile";
constexpr char kExecute[] = "tensord.v1.Compute/Execute";

class BadInputTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = new InProcessServer({"limits.rank=8", "limits.dimension=100000"}); }
  static void TearDownTestSuite() {
    delete server_;
    server_ = nullptr;
  }
  void TearDown() override {
    v1::ExecuteResponse response;
    const std::vector<float> ones(16, 1);
    const grpc::Status status =
        Execute(server_->stub(), RequestOf(SmallAdd(), {FloatTensor(ones, {16}), FloatTensor(ones, {16})}), &response);
    EXPECT_TRUE(status.ok()) << "the server is no longer well: " << status.error_message();
  }

  // The refusal of a graph by Compile.
  grpc::Status Refusal(const v1::Graph& graph) {
    v1::CompileRequest request;
    *request.mutable_graph() = graph;
    v1::CompileResponse response;
    return Compile(server_->stub(), request, &response);
  }
  void ExpectRefused(const v1::Graph& graph, grpc::StatusCode code, const std::string& reason,
                     const std::string& node) {
    const grpc::Status status = Refusal(graph);
    EXPECT_EQ(status.error_code(), code) << status.error_message();
    EXPECT_EQ(DetailOf(status).reason(), reason) << status.error_message();
    EXPECT_EQ(DetailOf(status).node(), node) << status.error_message();
    EXPECT_FALSE(status.error_message().empty());
  }
  void ExpectArgumentRefused(const v1::Tensor& x, const std::string& reason) {
    v1::ExecuteResponse response;
    const grpc::Status status =
        Execute(server_->stub(), RequestOf(SmallAdd(), {x, FloatTensor(std::vector<float>(16, 1), {16})}), &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
    EXPECT_EQ(DetailOf(status).reason(), reason) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr("\"x\"")) << "the message names the argument";
  }

  static InProcessServer* server_;
};

InProcessServer* BadInputTest::server_ = nullptr;

v1::Graph InputOf(const std::string& type) {
  return GraphOf("inputs { name: \"x\" type { " + type + " } } outputs { name: \"o\" value: \"x\" }");
}

TEST_F(BadInputTest, TruncatedMessages) {
  v1::CompileRequest compile;
  *compile.mutable_graph() = LargeSum();
  const std::string whole = compile.SerializeAsString();
  const auto channel = server_->Dial();
  for (size_t length = 1; length < whole.size(); ++length) {
    const Reply reply = CallRaw(channel, kCompile, whole.substr(0, length));
    EXPECT_EQ(reply.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << length;
    EXPECT_FALSE(DetailOf(reply.status).reason().empty()) << length;
  }
  const Reply reply = CallRaw(channel, kCompile, whole.substr(0, whole.size() - 1));
  EXPECT_EQ(DetailOf(reply.status).reason(), "MALFORMED_MESSAGE");
  EXPECT_THAT(reply.status.error_message(), HasSubstr("tensord.v1.CompileRequest"));
}

TEST_F(BadInputTest, RandomBytes) {
  std::mt19937 random(1);
  const auto channel = server_->Dial();
  for (int i = 0; i < 300; ++i) {
    std::string bytes(random() % 200 + 1, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    const Reply reply = CallRaw(channel, i % 2 == 0 ? kCompile : kExecute, bytes);
    EXPECT_THAT(reply.status.error_code(), AnyOf(grpc::StatusCode::INVALID_ARGUMENT, grpc::StatusCode::UNIMPLEMENTED))
        << reply.status.error_message();
    EXPECT_FALSE(DetailOf(reply.status).reason().empty());
  }
}

TEST_F(BadInputTest, MessagesWithSomeBytesChanged) {
  std::mt19937 random(2);
  const std::vector<float> ones(16, 1);
  const std::string whole = RequestOf(LargeSum(), {FloatTensor(ones, {16})}).SerializeAsString();
  const auto channel = server_->Dial();
  for (int i = 0; i < 300; ++i) {
    std::string bytes = whole;
    for (unsigned k = 0; k < 1 + random() % 4; ++k) bytes[random() % bytes.size()] = static_cast<char>(random());
    const grpc::Status status = CallRaw(channel, kExecute, bytes).status;
    EXPECT_THAT(status.error_code(),
                AnyOf(grpc::StatusCode::OK, grpc::StatusCode::INVALID_ARGUMENT, grpc::StatusCode::UNIMPLEMENTED,
                      grpc::StatusCode::RESOURCE_EXHAUSTED, grpc::StatusCode::FAILED_PRECONDITION))
        << status.error_message();
    if (!status.ok()) {
      EXPECT_FALSE(DetailOf(status).reason().empty()) << status.error_message();
    }
  }
}

TEST_F(BadInputTest, EmptyMessages) {
  const auto channel = server_->Dial();
  for (const char* method : {kCompile, kExecute, "tensord.v1.Compute/Explain"}) {
    const grpc::Status status = CallRaw(channel, method, "").status;
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << method;
    EXPECT_EQ(DetailOf(status).reason(), "MALFORMED_MESSAGE") << method;
  }
  const grpc::Status status = CallRaw(channel, "tensord.v1.Compute/GetProgram", "").status;
  EXPECT_EQ(DetailOf(status).reason(), "PROGRAM_NOT_FOUND");
}

TEST_F(BadInputTest, AFieldThatDoesNotExist) {
  const std::string unknown_field = "\xF8\x3F\x01";  // field 1023
  const grpc::Status status = CallRaw(server_->Dial(), kExecute, unknown_field).status;
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(DetailOf(status).reason(), "UNSUPPORTED_REQUEST");
  EXPECT_THAT(status.error_message(), HasSubstr("1023"));
}

TEST_F(BadInputTest, NamesThatAreNoText) {
  v1::CompileRequest request;
  *request.mutable_graph() = SmallAdd();
  std::string bytes = request.SerializeAsString();
  bytes[bytes.find("sum")] = '\xff';
  EXPECT_EQ(CallRaw(server_->Dial(), kCompile, bytes).status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(BadInputTest, ACycle) {
  v1::Graph graph = SmallAdd();
  graph.mutable_nodes(0)->set_inputs(1, "sum");
  ExpectRefused(graph, grpc::StatusCode::INVALID_ARGUMENT, "GRAPH_CYCLE", "sum");

  graph = SmallAdd();
  graph.mutable_nodes(0)->set_inputs(1, "later");
  v1::Node* later = graph.add_nodes();
  later->set_name("later");
  later->add_inputs("sum");
  later->set_unary(v1::UNARY_OP_EXP);
  ExpectRefused(graph, grpc::StatusCode::INVALID_ARGUMENT, "GRAPH_CYCLE", "sum");
}

TEST_F(BadInputTest, AnUnknownValue) {
  v1::Graph graph = SmallAdd();
  graph.mutable_nodes(0)->set_inputs(1, "nobody");
  ExpectRefused(graph, grpc::StatusCode::INVALID_ARGUMENT, "VALUE_UNKNOWN", "sum");
}

TEST_F(BadInputTest, AnUnknownOp) {
  v1::Graph graph = SmallAdd();
  graph.mutable_nodes(0)->set_binary(static_cast<v1::BinaryOp>(4711));
  ExpectRefused(graph, grpc::StatusCode::UNIMPLEMENTED, "OP_UNKNOWN", "sum");

  // A field of Node that only a newer contract has.
  graph = SmallAdd();
  v1::Node* node = graph.mutable_nodes(0);
  node->clear_op();
  node->GetReflection()->MutableUnknownFields(node)->AddLengthDelimited(89, "");
  ExpectRefused(graph, grpc::StatusCode::UNIMPLEMENTED, "OP_UNKNOWN", "sum");

  graph = SmallAdd();
  graph.mutable_nodes(0)->clear_op();
  ExpectRefused(graph, grpc::StatusCode::INVALID_ARGUMENT, "OP_UNSET", "sum");
}

TEST_F(BadInputTest, AnUnknownFamily) {
  v1::Graph graph = SmallAdd();
  graph.mutable_nodes(0)->mutable_extension()->mutable_op()->set_type_url("type.googleapis.com/example.v9.Frobnicate");
  ExpectRefused(graph, grpc::StatusCode::UNIMPLEMENTED, "FAMILY_UNKNOWN", "sum");
}

TEST_F(BadInputTest, ARankPastTheLimit) {
  std::string shape;
  for (int i = 0; i < 9; ++i) shape += " shape { size: 1 }";
  const grpc::Status status = Refusal(InputOf("dtype: DTYPE_F32" + shape));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(DetailOf(status).limit(), "rank");
  EXPECT_EQ(DetailOf(status).limit_value(), 8);
  EXPECT_EQ(DetailOf(status).actual_value(), 9);
}

TEST_F(BadInputTest, ADimensionPastTheLimit) {
  const grpc::Status status = Refusal(InputOf("dtype: DTYPE_F32 shape { size: 100001 }"));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(DetailOf(status).limit(), "dimension");
  EXPECT_EQ(DetailOf(status).actual_value(), 100001);
}

TEST_F(BadInputTest, SizesWhoseProductOverflows) {
  std::string shape;
  for (int i = 0; i < 4; ++i) shape += " shape { size: 100000 }";  // 10^20 elements
  EXPECT_THAT(DetailOf(Refusal(InputOf("dtype: DTYPE_F32" + shape))).reason(),
              AnyOf("SHAPE_OVERFLOW", "LIMIT_EXCEEDED"));
  EXPECT_EQ(DetailOf(Refusal(InputOf("dtype: DTYPE_F32 shape { size: -1 }"))).reason(), "SHAPE_OVERFLOW");

  v1::Tensor tensor;
  tensor.set_dtype(v1::DTYPE_F32);
  for (int i = 0; i < 4; ++i) tensor.add_shape(100000);
  v1::ExecuteResponse response;
  const grpc::Status status = Execute(
      server_->stub(), RequestOf(SmallAdd(), {tensor, FloatTensor(std::vector<float>(16, 1), {16})}), &response);
  EXPECT_THAT(DetailOf(status).reason(), AnyOf("SHAPE_OVERFLOW", "LIMIT_EXCEEDED")) << status.error_message();
}

TEST_F(BadInputTest, APayloadOneByteShortOrLong) {
  v1::Tensor tensor = FloatTensor(std::vector<float>(16, 1), {16});
  tensor.mutable_data()->pop_back();
  ExpectArgumentRefused(tensor, "DATA_LENGTH_MISMATCH");
  tensor.mutable_data()->append(2, '\0');
  ExpectArgumentRefused(tensor, "DATA_LENGTH_MISMATCH");
  tensor.clear_data();
  ExpectArgumentRefused(tensor, "DATA_LENGTH_MISMATCH");

  v1::Graph graph = LargeSum();
  graph.mutable_nodes(0)->mutable_constant()->mutable_value()->mutable_data()->pop_back();
  ExpectRefused(graph, grpc::StatusCode::INVALID_ARGUMENT, "DATA_LENGTH_MISMATCH", "scale");
}

TEST_F(BadInputTest, AnArgumentOfAnotherType) {
  ExpectArgumentRefused(v1::Tensor(), "DTYPE_UNSUPPORTED");
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{{4, 4}, {8}, {}}) {
    size_t count = 1;
    for (const int64_t size : shape) count *= static_cast<size_t>(size);
    v1::ExecuteResponse response;
    const grpc::Status status = Execute(server_->stub(),
                                        RequestOf(SmallAdd(), {FloatTensor(std::vector<float>(count, 1), shape),
                                                               FloatTensor(std::vector<float>(16, 1), {16})}),
                                        &response);
    EXPECT_EQ(DetailOf(status).reason(), "ARGUMENT_MISMATCH") << status.error_message();
  }
}

TEST_F(BadInputTest, TooManyOrTooFewArguments) {
  const v1::Tensor ones = FloatTensor(std::vector<float>(16, 1), {16});
  for (const int count : {0, 1, 3}) {
    v1::ExecuteResponse response;
    const grpc::Status status = Execute(
        server_->stub(), RequestOf(SmallAdd(), std::vector<v1::Tensor>(static_cast<size_t>(count), ones)), &response);
    EXPECT_EQ(DetailOf(status).reason(), "ARGUMENT_COUNT") << status.error_message();
  }
}

TEST_F(BadInputTest, OptionsThatDoNotExist) {
  v1::CompileRequest request;
  *request.mutable_graph() = SmallAdd();
  v1::CompileResponse response;
  request.mutable_options()->set_device("abacus:0");
  EXPECT_EQ(DetailOf(Compile(server_->stub(), request, &response)).reason(), "DEVICE_UNKNOWN");
  request.mutable_options()->set_device("cpu");
  request.mutable_options()->add_disabled_passes("no_such_pass");
  EXPECT_EQ(DetailOf(Compile(server_->stub(), request, &response)).reason(), "PASS_UNKNOWN");
  request.mutable_options()->clear_disabled_passes();
  request.mutable_options()->set_order(static_cast<v1::MemoryOrder>(17));
  EXPECT_EQ(Compile(server_->stub(), request, &response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(BadInputTest, DerivativesOfNothing) {
  const auto channel = server_->Dial();
  for (const char* bytes : {"", "\xff\xff"}) {
    const grpc::Status status = CallRaw(channel, "tensord.v1.Compute/Differentiate", bytes).status;
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(DetailOf(status).reason(), "MALFORMED_MESSAGE");
  }
}

TEST_F(BadInputTest, SessionsThatAreNone) {
  const auto channel = server_->Dial();
  for (const char* method : {"CloseSession", "DeleteTensors"}) {
    const grpc::Status status = CallRaw(channel, std::string("tensord.v1.Compute/") + method, "").status;
    EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION) << method;
    EXPECT_EQ(DetailOf(status).reason(), "SESSION_UNKNOWN") << method;
  }
  for (const char* method : {"OpenSession", "CloseSession", "DeleteTensors"}) {
    const grpc::Status status = CallRaw(channel, std::string("tensord.v1.Compute/") + method, "\xff\xff").status;
    EXPECT_EQ(DetailOf(status).reason(), "MALFORMED_MESSAGE") << method;
  }
  v1::ExecuteRequest request = RequestOf(SmallAdd(), {});
  request.set_session("s");
  v1::ExecuteResponse response;
  EXPECT_EQ(DetailOf(Execute(server_->stub(), request, &response)).reason(), "SESSION_UNKNOWN");
}

TEST_F(BadInputTest, AnUnknownMethod) {
  EXPECT_EQ(CallRaw(server_->Dial(), "tensord.v1.Compute/Levitate", "").status.error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

// A connection by hand, so that it can end anywhere.
class RawConnection {
 public:
  explicit RawConnection(const std::string& path) : fd_(socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  ~RawConnection() { close(fd_); }

  void Send(const std::string& bytes) {
    EXPECT_EQ(send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }

 private:
  const int fd_;
};

constexpr char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

std::string Frame(char type, char flags, int stream, const std::string& payload) {
  std::string frame;
  frame.push_back(static_cast<char>(payload.size() >> 16));
  frame.push_back(static_cast<char>(payload.size() >> 8));
  frame.push_back(static_cast<char>(payload.size()));
  frame.push_back(type);
  frame.push_back(flags);
  frame.append(3, '\0');
  frame.push_back(static_cast<char>(stream));
  return frame + payload;
}

// Settings and the headers of an Execute call on stream 1.
std::string StartOfCall() {
  std::string headers;
  const auto add = [&](const std::string& name, const std::string& value) {
    headers += '\0';  // a literal without indexing
    headers += static_cast<char>(name.size());
    headers += name;
    headers += static_cast<char>(value.size());
    headers += value;
  };
  add(":method", "POST");
  add(":scheme", "http");
  add(":path", "/tensord.v1.Compute/Execute");
  add(":authority", "localhost");
  add("te", "trailers");
  add("content-type", "application/grpc");
  return kPreface + Frame(4, 0, 0, "") + Frame(1, 4, 1, headers);
}

std::string Enveloped(const std::string& message) {
  std::string envelope(1, '\0');
  for (const int shift : {24, 16, 8, 0}) envelope.push_back(static_cast<char>(message.size() >> shift));
  return envelope + message;
}

TEST_F(BadInputTest, ClientsThatHangUpAnywhere) {
  const std::vector<float> ones(16, 1);
  const std::string message = WarmRequest(server_->stub(), LargeSum(), {FloatTensor(ones, {16})}).SerializeAsString();
  const std::string call = StartOfCall() + Frame(0, 1, 1, Enveloped(message));
  for (size_t end = 0; end <= call.size(); end += 7) {
    RawConnection connection(server_->socket_path());
    connection.Send(call.substr(0, end));
  }
  server_->WaitUntilIdle();
}

TEST_F(BadInputTest, BytesThatAreNoHttp) {
  RawConnection(server_->socket_path()).Send("GET / HTTP/1.1\r\n\r\n");
  RawConnection(server_->socket_path()).Send(std::string(1000, '\xff'));
  RawConnection(server_->socket_path()).Send(kPreface + Frame(1, 4, 0, "nonsense"));
}

TEST(HangUpTest, ACallWhoseClientIsGoneIsNotRun) {
  InProcessServer server({"cpu.executors=1"});
  const std::vector<float> ones(16, 1);
  const std::string message = WarmRequest(server.stub(), LargeSum(), {FloatTensor(ones, {16})}).SerializeAsString();
  BlockedExecutor blocked(server);
  {
    RawConnection connection(server.socket_path());
    connection.Send(StartOfCall() + Frame(0, 1, 1, Enveloped(message)));
    ASSERT_TRUE(WaitFor([&] { return server.executor().stats().queued == 1; }));
  }
  ASSERT_TRUE(WaitFor([&] { return server.Metric("tensord_rpc_cancelled_total", "Execute") == 1; }));
  blocked.Release();
  server.WaitUntilIdle();
  EXPECT_EQ(server.executor().stats().failed, 1);
  EXPECT_TRUE(WaitFor([&] { return server.Metric("tensord_execute_total", "cancelled") == 1; }));
}

}  // namespace
}  // namespace tensord
