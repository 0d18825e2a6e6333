// Programs that outlive the server, and refusals that are remembered.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/rpc/programs/warm_up.h"
#include "tests/e2e/server/in_process_server.h"

namespace tensord {
namespace {

namespace fs = std::filesystem;

class DiskCacheTest : public testing::Test {
 protected:
  ~DiskCacheTest() override { fs::remove_all(Programs()); }

  std::string Programs() const { return folder_.path() + "/programs"; }
  std::vector<std::string> Settings(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> settings = {"program_cache.disk_path=" + Programs()};
    settings.insert(settings.end(), more.begin(), more.end());
    return settings;
  }
  static v1::CompileResponse CompileIn(InProcessServer& server, const v1::Graph& graph) {
    v1::CompileRequest request;
    *request.mutable_graph() = graph;
    v1::CompileResponse response;
    const grpc::Status status = Compile(server.stub(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  // The sum of 4096 times `x` at each of 16 places.
  static void ExpectRuns(InProcessServer& server, const std::string& fingerprint, float scale) {
    v1::ExecuteRequest request;
    request.set_fingerprint(fingerprint);
    *request.add_arguments()->mutable_tensor() = FloatTensor(std::vector<float>(16, 2), {16});
    v1::ExecuteResponse response;
    const grpc::Status status = Execute(server.stub(), request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(FloatsOf(response.results(0).tensor()), std::vector<float>(16, 8192 * scale));
  }
  // Compiles some programs and leaves them on disk. Their fingerprints.
  std::vector<std::string> LeavePrograms(int count) const {
    InProcessServer server(Settings());
    std::vector<std::string> fingerprints;
    for (int i = 1; i <= count; ++i) {
      const v1::CompileResponse response = CompileIn(server, LargeSum(static_cast<float>(i)));
      EXPECT_EQ(response.source(), v1::CompileResponse::SOURCE_COMPILED);
      fingerprints.push_back(response.program().fingerprint());
    }
    server.parts().store->Flush();  // the end waits for the writer only so long
    return fingerprints;
  }
  std::string PathOf(const std::string& fingerprint) const { return Programs() + "/" + fingerprint + ".program"; }

  TemporaryFolder folder_;
};

std::string ReadFile(const std::string& path) {
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return bytes.str();
}

void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

TEST_F(DiskCacheTest, AServerThatStartsAgainHasItsPrograms) {
  const std::vector<std::string> programs = LeavePrograms(3);
  InProcessServer server(Settings());
  EXPECT_EQ(server.Metric("tensord_program_cache_entries", "memory"), 3);
  EXPECT_EQ(server.Metric("tensord_program_cache_entries", "disk"), 3);
  EXPECT_EQ(CompileIn(server, LargeSum(1)).source(), v1::CompileResponse::SOURCE_DISK);
  EXPECT_EQ(CompileIn(server, LargeSum(1)).source(), v1::CompileResponse::SOURCE_MEMORY);
  for (int i = 0; i < 3; ++i) ExpectRuns(server, programs[static_cast<size_t>(i)], static_cast<float>(i + 1));
  EXPECT_EQ(server.Metric("tensord_compile_requests_total", "hit_disk"), 3);
  EXPECT_EQ(server.Metric("tensord_compile_requests_total", "miss"), 0);
}

TEST_F(DiskCacheTest, AFingerprintBringsItsProgramBack) {
  const std::vector<std::string> programs = LeavePrograms(2);
  InProcessServer server(Settings({"program_cache.restore_ms=0"}));
  EXPECT_EQ(server.Metric("tensord_program_cache_entries", "memory"), 0);
  ExpectRuns(server, programs[1], 2);
  EXPECT_EQ(server.Metric("tensord_program_cache_entries", "memory"), 1);
  EXPECT_EQ(server.Metric("tensord_compile_requests_total", "hit_disk"), 1);
  v1::GetProgramRequest request;
  request.set_fingerprint(programs[0]);
  v1::Program program;
  grpc::ClientContext context;
  ASSERT_TRUE(server.stub().GetProgram(&context, request, &program).ok());
  EXPECT_EQ(program.outputs(0).name(), "sum");
}

// The remaining programs were compiled with all passes and within the limits of then.
TEST_F(DiskCacheTest, AProgramIsServedUnderTheSettingsOfToday) {
  const std::string fingerprint = LeavePrograms(1)[0];
  for (const char* setting :
       {"compiler.disabled_passes=fuse", "compiler.enabled_passes=fuse", "limits.graph_nodes=4", "limits.rank=1"}) {
    InProcessServer server(Settings({setting}));
    EXPECT_EQ(server.Metric("tensord_program_cache_entries", "memory"), 0) << setting;
    v1::ExecuteRequest request;
    request.set_fingerprint(fingerprint);
    v1::ExecuteResponse response;
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(DetailOf(Execute(server.stub(), request, &response)).reason(), "PROGRAM_NOT_FOUND") << setting;
    }
    EXPECT_EQ(server.parts().store->stats().loaded, 1) << "it is not read for each call that names it";
  }
  InProcessServer server(Settings());
  ExpectRuns(server, fingerprint, 1);
}

TEST_F(DiskCacheTest, TheStartWaitsForNoProgramLongerThanItMay) {
  LeavePrograms(2);
  InProcessServer server(Settings({"program_cache.restore_ms=0", "compiler.threads=1"}));
  BlockedCompiler blocked(server);
  EXPECT_EQ(server::RestorePrograms(server.parts().service_parts, absl::Milliseconds(20), CancelToken()), 0);
  EXPECT_EQ(server.Metric("tensord_program_cache_entries", "memory"), 0);
  blocked.Release();
  EXPECT_TRUE(WaitFor([&] { return server.Metric("tensord_program_cache_entries", "memory") == 1; }))
      << "the one that was begun comes all the same";
}

TEST_F(DiskCacheTest, AProgramComesBackWhereItsPassesAreOffToo) {
  const std::string off = "compiler.disabled_passes=fuse";
  std::string fingerprint;
  {
    InProcessServer server(Settings({off}));
    fingerprint = CompileIn(server, LargeSum()).program().fingerprint();
    server.parts().store->Flush();
  }
  InProcessServer server(Settings({off}));
  EXPECT_EQ(server.Metric("tensord_program_cache_entries", "memory"), 1);
  ExpectRuns(server, fingerprint, 1);
}

TEST_F(DiskCacheTest, WithoutAFolderNothingStays) {
  std::string fingerprint;
  {
    InProcessServer server;
    fingerprint = CompileIn(server, LargeSum()).program().fingerprint();
  }
  InProcessServer server;
  v1::ExecuteRequest request;
  request.set_fingerprint(fingerprint);
  v1::ExecuteResponse response;
  EXPECT_EQ(DetailOf(Execute(server.stub(), request, &response)).reason(), "PROGRAM_NOT_FOUND");
}

TEST_F(DiskCacheTest, DamagedProgramsAreDeletedCountedAndCompiledAgain) {
  const std::string fingerprint = LeavePrograms(1)[0];
  const std::string path = PathOf(fingerprint), whole = ReadFile(path);
  ASSERT_GT(whole.size(), 100u);
  struct Damage {
    std::string bytes, reason;
  };
  std::vector<Damage> damages = {{"", "truncated"},
                                 {whole.substr(0, whole.size() - 1), "truncated"},
                                 {"a foreign file that is long enough to be none of ours, whatever is in it, and it "
                                  "goes on and on until it is longer than the frame of an entry",
                                  "format"}};
  std::mt19937_64 random(1);
  for (int i = 0; i < 5; ++i) {
    std::string flipped = whole;
    const size_t at = std::uniform_int_distribution<size_t>(20, whole.size() - 1)(random);
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << (at % 8)));
    damages.push_back({flipped, "checksum"});
  }
  for (const Damage& damage : damages) {
    WriteFile(path, damage.bytes);
    InProcessServer server(Settings());
    EXPECT_FALSE(fs::exists(path)) << damage.reason;
    EXPECT_EQ(server.Metric("tensord_program_cache_load_errors_total", damage.reason), 1);
    v1::ExecuteRequest request;
    request.set_fingerprint(fingerprint);
    v1::ExecuteResponse response;
    EXPECT_EQ(DetailOf(Execute(server.stub(), request, &response)).reason(), "PROGRAM_NOT_FOUND");
    EXPECT_EQ(CompileIn(server, LargeSum(1)).source(), v1::CompileResponse::SOURCE_COMPILED);
    ExpectRuns(server, fingerprint, 1);
    EXPECT_TRUE(WaitFor([&] { return fs::exists(path); })) << "written anew";
    EXPECT_EQ(ReadFile(path), whole);
  }
}

// In the state in which the handler of a signal leaves it on a full disk.
TEST_F(DiskCacheTest, WhatEndedANeighbourIsRefusedFromMemoryToo) {
  InProcessServer server(Settings());
  const std::string fingerprint = CompileIn(server, LargeSum()).program().fingerprint();
  ExpectRuns(server, fingerprint, 1);
  const std::string quarantine = Programs() + "/quarantine";
  fs::create_directory(quarantine);
  WriteFile(quarantine + "/" + fingerprint + ".crash", "");
  v1::ExecuteRequest named;
  named.set_fingerprint(fingerprint);
  *named.add_arguments()->mutable_tensor() = FloatTensor(std::vector<float>(16, 2), {16});
  v1::ExecuteRequest whole = named;
  *whole.mutable_graph() = LargeSum();
  const auto reason = [&server](const v1::ExecuteRequest& request) {
    v1::ExecuteResponse response;
    return DetailOf(Execute(server.stub(), request, &response)).reason();
  };
  EXPECT_TRUE(WaitFor([&] { return reason(named) == "QUARANTINED"; }));
  EXPECT_EQ(reason(whole), "QUARANTINED");
  fs::remove(quarantine + "/" + fingerprint + ".crash");
  EXPECT_TRUE(WaitFor([&] { return reason(whole).empty(); })) << "another server released it";
}

TEST_F(DiskCacheTest, TwoServersShareTheFolder) {
  InProcessServer first(Settings()), second(Settings());
  const std::string fingerprint = CompileIn(first, LargeSum(3)).program().fingerprint();
  ASSERT_TRUE(WaitFor([&] { return fs::exists(PathOf(fingerprint)); }));
  ExpectRuns(second, fingerprint, 3);
  EXPECT_EQ(second.Metric("tensord_compile_requests_total", "hit_disk"), 1);
}

TEST(NegativeCacheTest, ARefusedGraphIsNotCompiledAgain) {
  const auto graph = [](const std::string& node) {
    return GraphOf(R"(inputs { name: "a" type { dtype: DTYPE_F32 shape { size: 2 } } }
                      inputs { name: "b" type { dtype: DTYPE_F32 shape { size: 3 } } }
                      nodes { name: ")" +
                   node + R"(" inputs: "a" inputs: "b" binary: BINARY_OP_ADD }
                      outputs { name: "y" value: ")" +
                   node + R"(" })");
  };
  InProcessServer server;
  for (const std::string node : {"first", "second"}) {
    v1::CompileRequest request;
    *request.mutable_graph() = graph(node);
    v1::CompileResponse response;
    const grpc::Status status = Compile(server.stub(), request, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(DetailOf(status).reason(), "SHAPE_MISMATCH");
    EXPECT_EQ(DetailOf(status).node(), node);
  }
  EXPECT_EQ(server.Metric("tensord_compile_requests_total", "failed"), 1);
  EXPECT_EQ(server.Metric("tensord_compile_requests_total", "negative"), 1);
}

// A graph whose types do not fit, which the compiler finds.
class RefusedGraphTest : public testing::Test {
 protected:
  static double Asked(const InProcessServer& server, const char* result) {
    return server.Metric("tensord_compile_requests_total", result);
  }
  static void Ask(InProcessServer& server) {
    v1::CompileRequest request;
    *request.mutable_graph() = GraphOf(R"(
      inputs { name: "a" type { dtype: DTYPE_F32 shape { size: 2 } } }
      inputs { name: "b" type { dtype: DTYPE_F32 shape { size: 3 } } }
      nodes { name: "y" inputs: "a" inputs: "b" binary: BINARY_OP_ADD }
      outputs { name: "y" value: "y" })");
    v1::CompileResponse response;
    const grpc::Status status = Compile(server.stub(), request, &response);
    EXPECT_EQ(DetailOf(status).reason(), "SHAPE_MISMATCH");
  }
};

TEST_F(RefusedGraphTest, IsNotCompiledAgainForAWhile) {
  InProcessServer server({"program_cache.negative_ms=3600000"});
  for (int i = 0; i < 3; ++i) Ask(server);
  EXPECT_EQ(Asked(server, "failed"), 1);
  EXPECT_EQ(Asked(server, "negative"), 2) << "refused without another attempt";
}

TEST_F(RefusedGraphTest, IsTriedAgainAfterwards) {
  InProcessServer server({"program_cache.negative_ms=1"});
  int64_t asked = 0;
  EXPECT_TRUE(WaitFor([&] {
    Ask(server);
    ++asked;
    return Asked(server, "failed") == 2;
  }));
  EXPECT_EQ(Asked(server, "failed") + Asked(server, "negative"), asked);
}

TEST_F(RefusedGraphTest, IsTriedEachTimeWhereNothingIsRemembered) {
  InProcessServer server({"program_cache.negative_ms=0"});
  for (int i = 0; i < 3; ++i) Ask(server);
  EXPECT_EQ(Asked(server, "failed"), 3);
  EXPECT_EQ(Asked(server, "negative"), 0);
}

TEST(CompileDeadlineTest, WhoWaitsForAnothersCompilationIsAnsweredInTime) {
  InProcessServer server({"compiler.threads=1"});
  BlockedCompiler blocked(server);
  std::thread first([&server] {
    v1::CompileRequest request;
    *request.mutable_graph() = LargeSum();
    v1::CompileResponse response;
    EXPECT_TRUE(Compile(server.stub(), request, &response).ok());
  });
  ASSERT_TRUE(WaitFor([&] { return server.parts().gate->snapshot().calls == 1; }));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(100));
  v1::CompileRequest request;
  *request.mutable_graph() = LargeSum();
  v1::CompileResponse response;
  EXPECT_EQ(server.stub().Compile(&context, request, &response).error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  blocked.Release();
  first.join();
}

}  // namespace
}  // namespace tensord
