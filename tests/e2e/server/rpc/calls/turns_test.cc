// A stream's chain of dependent runs, all of which wait for its first one, keeps nobody else's work waiting when that
// is over: no thread that belongs to all runs them.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/server/host_cuda_device.h"
#include "tests/e2e/server/in_process_server.h"
#include "tests/e2e/server/is_slow.h"
#include "tests/e2e/server/session_client.h"

namespace tensord {
namespace {

constexpr int kChainLength = kIsSlow ? 1000 : 10000;

std::vector<float> SixteenOnes() { return std::vector<float>(16, 1.0f); }

std::vector<std::string> ChainSettings(std::vector<std::string> more) {
  more.push_back("sessions.stream_requests=" + std::to_string(2 * kChainLength));
  return more;
}

// Sends `first`, the result of which is kept, and then runs of a tiny program, each of the result of the one before it.
// All are sent when it is made; none is answered before `first` is.
class RunChain {
 public:
  RunChain(InProcessServer& server, v1::ExecuteRequest first)
      : session_(server), stub_(v1::Compute::NewStub(server.Dial())), stream_(stub_->ExecuteStream(&context_)) {
    const v1::ExecuteRequest tiny = WarmRequest(server.stub(), SmallAdd(), {});
    first.set_session(session_.id());
    Keep(&first, "x");
    Send(first);
    for (int i = 1; i < kChainLength; ++i) {
      v1::ExecuteRequest next = tiny;
      next.set_session(session_.id());
      AddDonated(&next, "x");
      *next.add_arguments()->mutable_tensor() = FloatTensor(SixteenOnes(), {16});
      Keep(&next, "x");
      Send(next);
    }
    stream_->WritesDone();
    reader_ = std::thread([this] {
      v1::ExecuteResponse response;
      while (stream_->Read(&response)) {
        EXPECT_FALSE(response.has_error()) << response.error().message();
        ++answers_;
      }
    });
    EXPECT_TRUE(WaitFor([&] { return server.parts().gate->snapshot().calls == kChainLength + 1; }));
  }
  ~RunChain() {
    reader_.join();
    EXPECT_TRUE(stream_->Finish().ok());
    EXPECT_EQ(answers_, kChainLength);
    EXPECT_THAT(session_.Get("x"), ::testing::Each(4096 + kChainLength - 1));
    EXPECT_EQ(session_.Close(), "OK");
  }

  int answers() const { return answers_; }

 private:
  void Send(v1::ExecuteRequest request) {
    request.set_request_id(static_cast<uint64_t>(++sent_));
    EXPECT_TRUE(stream_->Write(request));
  }

  SessionClient session_;
  const std::unique_ptr<v1::Compute::Stub> stub_;
  grpc::ClientContext context_;
  const std::unique_ptr<grpc::ClientReaderWriter<v1::ExecuteRequest, v1::ExecuteResponse>> stream_;
  int sent_ = 0;
  std::atomic<int> answers_{0};
  std::thread reader_;
};

TEST(TurnsTest, AChainBehindARunLeavesTheExecutorToOthers) {
  InProcessServer server(ChainSettings({"cpu.executors=1", "cpu.queue_length=10"}));
  const v1::ExecuteRequest warm = WarmRequest(server.stub(), LargeSum(), {FloatTensor(SixteenOnes(), {16})});
  BlockedExecutor blocked(server);
  const RunChain chain(server, warm);
  std::atomic<int> answers_before{0};
  std::thread other([&] {
    v1::ExecuteResponse response;
    EXPECT_EQ(ReasonOf(Execute(server.stub(), warm, &response)), "OK");
    answers_before = chain.answers();
  });
  EXPECT_TRUE(WaitFor([&] { return server.executor().stats().queued == 2; }));
  blocked.Release();
  other.join();
  EXPECT_LT(answers_before, kChainLength / 2) << "the executor did the chain first";
}

TEST(TurnsTest, AChainBehindACompilationLeavesTheCompilerToOthers) {
  InProcessServer server(ChainSettings({"compiler.threads=1"}));
  WarmRequest(server.stub(), SmallAdd(), {});  // which the chain needs
  BlockedCompiler blocked(server);
  const RunChain chain(server, RequestOf(LargeSum(), {FloatTensor(SixteenOnes(), {16})}));
  std::atomic<int> answers_before{0};
  std::thread other([&] {
    v1::CompileRequest request;
    *request.mutable_graph() = LargeSum(2);
    v1::CompileResponse response;
    EXPECT_EQ(ReasonOf(Compile(server.stub(), request, &response)), "OK");
    answers_before = chain.answers();
  });
  EXPECT_TRUE(WaitFor([&] { return server.parts().compile_pool->stats().queued == 2; }));
  blocked.Release();
  other.join();
  EXPECT_LT(answers_before, kChainLength / 2) << "the compiler's thread did the chain first";
}

// Whatever the passes made of them, and whoever decides their sizes.
TEST(TurnsTest, TinyProgramsDoNotWaitForTheExecutor) {
  if (HasHostCuda()) GTEST_SKIP() << "small runs wait for their executor too";
  InProcessServer server({"cpu.executors=1", "cpu.queue_length=1"});
  const v1::Graph fused = GraphOf(R"(
    inputs { name: "x" type { dtype: DTYPE_F32 shape { size: 4 } } }
    nodes { name: "d" inputs: "x" inputs: "x" binary: BINARY_OP_ADD }
    nodes { name: "y" inputs: "d" unary: UNARY_OP_TANH }
    outputs { name: "y" value: "y" })");
  v1::Graph symbolic = fused;
  symbolic.mutable_inputs(0)->mutable_type()->mutable_shape(0)->set_symbol("n");
  const auto vector_of = [](size_t n) { return FloatTensor(std::vector<float>(n, 1.0f), {static_cast<int64_t>(n)}); };
  const v1::ExecuteRequest large = WarmRequest(server.stub(), symbolic, {vector_of(100000)});
  std::vector<v1::ExecuteRequest> tiny;
  for (const v1::Graph& graph : {fused, symbolic}) tiny.push_back(WarmRequest(server.stub(), graph, {vector_of(4)}));
  tiny.push_back(WarmRequest(server.stub(), symbolic, {vector_of(5)}));
  BlockedExecutor blocked(server);
  std::thread waits([&] {
    v1::ExecuteResponse response;
    EXPECT_EQ(ReasonOf(Execute(server.stub(), large, &response)), "OK");
  });
  EXPECT_TRUE(WaitFor([&] { return server.executor().stats().queued == 1; }));
  v1::ExecuteResponse response;
  EXPECT_EQ(ReasonOf(Execute(server.stub(), large, &response)), "QUEUE_FULL");
  for (const v1::ExecuteRequest& request : tiny) {
    EXPECT_EQ(ReasonOf(Execute(server.stub(), request, &response)), "OK");
    EXPECT_EQ(FloatsOf(response.results(0).tensor()).size(), request.arguments(0).tensor().data().size() / 4);
  }
  blocked.Release();
  waits.join();
}

}  // namespace
}  // namespace tensord
