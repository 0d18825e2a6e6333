// tensordctl's commands for operators, against the server binary.
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "pprof/profile.pb.h"
#include "tensord/messages.h"
#include "tensord/tensord.h"
#include "tests/e2e/server_binary.h"
#include "tests/testlib/peers/tensordctl_call.h"

namespace tensord::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

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
  const Outcome none = Call({"programs"});
  EXPECT_THAT(none.out, MatchesRegex("PROGRAM  .*  GRAPH\n"));
  EXPECT_EQ(std::count(none.out.begin(), none.out.end(), '\n'), 1) << "headings alone";
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
  EXPECT_EQ(Call({"programs"}).out, none.out);
  EXPECT_EQ(Call({"evict", "--all"}).out, "evicted 0\n");
}

TEST_F(TensordctlAdminTest, ReleasesPrograms) {
  const std::string fingerprint = Compile();
  EXPECT_EQ(Call({"programs", "--release"}).status, kExitUsage);
  EXPECT_EQ(Call({"programs", "--release", "--all", fingerprint}).status, kExitUsage);
  EXPECT_EQ(Call({"programs", fingerprint}).status, kExitUsage);
  EXPECT_EQ(Call({"programs", "--release", fingerprint}).out, "released 0\n") << "it is not in quarantine";
  EXPECT_EQ(Call({"programs", "--release", "--all"}).out, "released 0\n");
  // In the state in which the handler of a signal leaves it on a full disk.
  std::filesystem::create_directory(folder_ + "/programs/quarantine");
  std::ofstream(folder_ + "/programs/quarantine/" + fingerprint + ".crash");
  EXPECT_THAT(Call({"programs"}).out, HasSubstr(fingerprint.substr(0, 12) + "  quarantine"));
  EXPECT_THAT(Call({"programs", "--json"}).out, HasSubstr("\"quarantine\""));
  EXPECT_EQ(Call({"programs", "--release", fingerprint.substr(0, 6)}).out, "released 1\n");
  EXPECT_THAT(Call({"programs"}).out, Not(HasSubstr("quarantine")));
}

TEST_F(TensordctlAdminTest, ShowsTheFlightRecorder) {
  Compile();
  Outcome all = Call({"flight-recorder"});
  // A call is recorded when the transport is through with it.
  for (const absl::Time end = absl::Now() + absl::Minutes(1);
       !absl::StrContains(all.out, " Compile OK ") && absl::Now() < end;) {
    all = Call({"flight-recorder"});
  }
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

TEST_F(TensordctlAdminTest, TakesAProfile) {
  const std::string path = folder_ + "/cpu.pb";
  const Outcome taken = Call({"profile", "--seconds=1", "--rate=200", "--output=" + path});
  EXPECT_EQ(taken.status, kExitOk) << taken.err;
  EXPECT_THAT(taken.out, HasSubstr(" samples in 1 s\n"));
  EXPECT_THAT(taken.out, HasSubstr("function\n"));
  perftools::profiles::Profile profile;
  std::ifstream file(path);
  ASSERT_TRUE(profile.ParseFromIstream(&file));
  EXPECT_EQ(profile.period(), 5'000'000);
  EXPECT_EQ(profile.sample_type_size(), 2);
  for (const char* wrong : {"--seconds=0", "--seconds=soon", "--rate=-1"}) {
    EXPECT_EQ(Call({"profile", wrong}).status, kExitUsage) << wrong;
  }
  const Outcome refused = Call({"profile", "--seconds=61"});
  EXPECT_EQ(refused.status, kExitFailed);
  EXPECT_THAT(refused.err, HasSubstr("profile_ms"));
}

TEST_F(TensordctlAdminTest, ListsConnections) {
  auto client = client::Client::Connect({.target = server_->target()});
  ASSERT_TRUE(client.ok());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE((*client)->GetServerInfo(false).ok());
  // A call may be counted as open for a while after its answer: calls of the client, and those that the command made
  // before the last.
  const std::string of_client = "plain +[3-9] +0 +0 ", of_operator = "plain +[0-9]+ +[1-9] ";
  Outcome listed = Call({"connections"});
  const absl::Time patience = absl::Now() + absl::Seconds(30);
  while (!testing::Value(listed.out, ContainsRegex(of_client)) && absl::Now() < patience) {
    listed = Call({"connections"});
  }
  EXPECT_EQ(listed.status, kExitOk) << listed.err;
  EXPECT_THAT(listed.out, StartsWith("ADDRESS "));
  EXPECT_THAT(listed.out, ContainsRegex(of_client));
  EXPECT_THAT(listed.out, ContainsRegex(of_operator)) << "the operator's own call";
  google::protobuf::Struct json;
  const Outcome as_json = Call({"connections", "--json"});
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(as_json.out, &json).ok()) << as_json.out;
  EXPECT_GE(json.fields().at("connections").list_value().values_size(), 2);
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
