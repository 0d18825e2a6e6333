// tensordctl's commands for operators, against the server binary.
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clients/cpp/tensord.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/server_binary.h"
#include "tests/testlib/tensordctl_call.h"

namespace tensord::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class TensordctlAdminTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (ServerBinary::Path().empty()) GTEST_SKIP() << "TENSORD_BINARY names no server";
    char folder[] = "/tmp/tensord-admin.XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    auto server = ServerBinary::Start({"--set=admin.listen=unix:" + folder_ + "/admin",
                                       "--set=program_cache.disk_path=" + folder_ + "/programs", "--log-level=off"});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  void TearDown() override {
    server_.reset();
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  Outcome Call(std::vector<std::string> words) const {
    words.push_back("--admin=unix:" + folder_ + "/admin");
    return CallTensordctl(words);
  }
  std::string Compile() const {
    auto client = client::Client::Connect({.target = server_->target()});
    EXPECT_TRUE(client.ok()) << client.status();
    v1::Graph graph;
    graph.set_name("identity");
    v1::GraphInput* input = graph.add_inputs();
    input->set_name("x");
    input->mutable_type()->set_dtype(v1::DTYPE_F32);
    v1::GraphOutput* output = graph.add_outputs();
    output->set_name("y");
    output->set_value("x");
    const auto compiled = (*client)->Compile(graph);
    EXPECT_TRUE(compiled.ok()) << compiled.status();
    return compiled.ok() ? compiled->program().fingerprint() : "";
  }

  std::string folder_;
  std::unique_ptr<ServerBinary> server_;
};

TEST_F(TensordctlAdminTest, ListsAndEvictsPrograms) {
  EXPECT_EQ(Call({"programs"}).out, "");
  const std::string fingerprint = Compile();
  const Outcome listed = Call({"programs"});
  EXPECT_EQ(listed.status, kExitOk) << listed.err;
  EXPECT_THAT(listed.out, HasSubstr(fingerprint.substr(0, 12)));
  EXPECT_THAT(listed.out, HasSubstr("identity"));
  EXPECT_THAT(Call({"programs", "--json"}).out, HasSubstr(fingerprint));

  EXPECT_EQ(Call({"evict"}).status, kExitUsage);
  EXPECT_THAT(Call({"evict", "zz"}).err, HasSubstr("0 programs begin with zz"));
  const Outcome evicted = Call({"evict", "--disk", fingerprint.substr(0, 5)});
  EXPECT_EQ(evicted.out, "evicted 1\n") << evicted.err;
  EXPECT_EQ(Call({"programs"}).out, "");
  EXPECT_EQ(Call({"evict", "--all"}).out, "evicted 0\n");
}

TEST_F(TensordctlAdminTest, ShowsTheFlightRecorder) {
  Compile();
  const Outcome all = Call({"flight-recorder"});
  EXPECT_EQ(all.status, kExitOk) << all.err;
  EXPECT_THAT(all.out, HasSubstr("listening unix:"));
  EXPECT_THAT(all.out, HasSubstr(" Compile OK "));
  EXPECT_THAT(all.out, HasSubstr("tenant=default request_id="));
  EXPECT_THAT(Call({"flight-recorder", "--notable"}).out, Not(HasSubstr(" Compile OK ")));
  EXPECT_THAT(Call({"flight-recorder", "--json", "--limit=1"}).out, HasSubstr("\"entries\""));
  EXPECT_EQ(Call({"flight-recorder", "--limit=0"}).status, kExitUsage);
}

TEST_F(TensordctlAdminTest, SetsTheLogLevel) {
  EXPECT_EQ(Call({"log-level", "warning"}).out, "log level warning\n");
  EXPECT_EQ(Call({"log-level"}).status, kExitUsage);
  const Outcome wrong = Call({"log-level", "loud"});
  EXPECT_EQ(wrong.status, kExitFailed);
  EXPECT_THAT(wrong.err, HasSubstr("loud"));
}

TEST_F(TensordctlAdminTest, Drains) {
  EXPECT_EQ(Call({"drain", "--timeout=soon"}).status, kExitUsage);
  EXPECT_EQ(Call({"drain", "--timeout=10s"}).out, "draining\n");
}

TEST_F(TensordctlAdminTest, NeedsToKnowWhere) {
  std::ostringstream out, err;
  Console console(out, err);
  EXPECT_EQ(Dispatch({"programs"}, console), kExitUsage);
  EXPECT_THAT(err.str(), HasSubstr("--admin"));
}

}  // namespace
}  // namespace tensord::cli
