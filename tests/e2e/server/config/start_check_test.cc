// Refusals of a start are told before it, and by the start.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/config/config_file.h"
#include "tests/e2e/server/in_process_server.h"
#include "tests/testlib/tls/private_folder.h"

namespace tensord {
namespace {

using server::Daemon;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

server::ServerConfig ConfigOf(const std::vector<std::string>& settings) {
  server::ServerConfig config;
  config.mutable_log()->set_level("off");
  for (const std::string& setting : settings) EXPECT_TRUE(server::SetConfigField(setting, &config).ok()) << setting;
  return config;
}

// Returns the refusal of Check, which Start shares.
std::string Refusal(const std::vector<std::string>& settings) {
  const server::ServerConfig config = ConfigOf(settings);
  const absl::Status checked = Daemon::Check(config);
  if (checked.ok()) return "";
  EXPECT_EQ(checked.code(), absl::StatusCode::kInvalidArgument) << checked;
  EXPECT_EQ(Daemon::Start(config).status(), checked);
  return std::string(checked.message());
}

class StartCheckTest : public ::testing::Test {
 protected:
  std::string PathOf(const std::string& name) const { return folder_.path() + "/" + name; }
  std::string Socket(const std::string& name = "s") const { return "unix:" + PathOf(name); }

  TemporaryFolder folder_;
};

TEST_F(StartCheckTest, MetricsTakeAnAddress) {
  for (const std::string wrong : {"127.0.0.1", "1:2:3", "unix:/a", "127.0.0.1:1,127.0.0.1:2", "127.0.0.1:", ":1"}) {
    EXPECT_EQ(Refusal({"listen=" + Socket(), "metrics=" + wrong}),
              "setting metrics is host:port, not \"" + wrong + "\"");
  }
  EXPECT_EQ(Refusal({"listen=" + Socket(), "metrics=localhost:0"}), "");
  EXPECT_EQ(Refusal({"listen=" + Socket(), "metrics=[::1]:0"}), "");
}

TEST_F(StartCheckTest, EachListenerHasItsOwnAddress) {
  const auto same = [](const std::string& a, const std::string& b) {
    return "setting " + a + ", and setting " + b + ", are the same address; each listener needs its own";
  };
  const std::string s = Socket();
  EXPECT_EQ(Refusal({"listen=" + s, "admin.listen=" + s}), same("listen, " + s, "admin.listen, " + s));
  EXPECT_EQ(Refusal({"listen=" + s, "shared_memory.listen=" + s}), same("listen, " + s, "shared_memory.listen, " + s));
  EXPECT_EQ(Refusal({"listen=" + s, "admin.listen=" + Socket("a"), "shared_memory.listen=" + Socket("./a")}),
            same("admin.listen, " + Socket("a"), "shared_memory.listen, " + Socket("./a")));
  EXPECT_EQ(Refusal({"listen=" + s, "listen=" + s}), same("listen, " + s, "listen, " + s));
  EXPECT_EQ(Refusal({"listen=127.0.0.1:7", "metrics=localhost:7"}),
            same("listen, 127.0.0.1:7", "metrics, localhost:7"));
  EXPECT_EQ(Refusal({"listen=127.0.0.1:0", "metrics=127.0.0.1:0", "admin.listen=" + s}), "");
}

TEST_F(StartCheckTest, TheDefaultAddressIsTaken) {
  const char* const before = getenv("XDG_RUNTIME_DIR");
  const std::string kept = before == nullptr ? "" : before;
  setenv("XDG_RUNTIME_DIR", folder_.path().c_str(), 1);
  EXPECT_THAT(Refusal({"admin.listen=" + Socket("tensord.sock")}),
              StartsWith("setting listen, " + Socket("tensord.sock") + ", and setting admin.listen"));
  if (before == nullptr) {
    unsetenv("XDG_RUNTIME_DIR");
  } else {
    setenv("XDG_RUNTIME_DIR", kept.c_str(), 1);
  }
}

TEST_F(StartCheckTest, GraphsAreThere) {
  const PrivateFolder files;
  const std::string graph = files.Write("graph.json", "{}");
  const std::string other = files.Write("graph.onnx", "");
  const auto refusal = [&](const std::string& path) {
    return Refusal({"listen=" + Socket(), "warm_up.graphs=" + graph, "warm_up.graphs=" + path});
  };
  EXPECT_EQ(refusal(files.PathOf("none.json")),
            "setting warm_up.graphs, " + files.PathOf("none.json") + ": cannot be read: No such file or directory");
  EXPECT_THAT(refusal(other), StartsWith("setting warm_up.graphs, " + other + ": "));
  ASSERT_EQ(mkdir(PathOf("folder.json").c_str(), 0700), 0);
  EXPECT_THAT(refusal(PathOf("folder.json")), HasSubstr("is a folder"));
  rmdir(PathOf("folder.json").c_str());
  const server::ServerConfig lenient = ConfigOf({"warm_up.graphs=/none.json", "warm_up.required=false"});
  EXPECT_TRUE(Daemon::Check(lenient).ok()) << "told in the log only";
  EXPECT_TRUE(Daemon::Check(ConfigOf({"warm_up.graphs=" + graph})).ok());
}

TEST_F(StartCheckTest, PluginsCanBeLoaded) {
  const PrivateFolder files;
  const auto refusal = [&](const std::string& path) {
    return Refusal({"listen=" + Socket(), "families.plugins=" + path});
  };
  EXPECT_EQ(refusal(files.PathOf("none.so")),
            "the plugin " + files.PathOf("none.so") +
                " cannot be loaded: cannot be read: No such file or directory (setting families.plugins)");
  EXPECT_THAT(refusal("none.so"), HasSubstr("name it by a path with a folder"));
  const std::string text = files.Write("text.so", "no object");
  EXPECT_THAT(refusal(text), StartsWith("the plugin " + text + " cannot be loaded: "));
}

TEST_F(StartCheckTest, TheFolderOfProgramsIsOne) {
  const PrivateFolder files;
  const auto refusal = [&](const std::string& path) {
    return Refusal({"listen=" + Socket(), "program_cache.disk_path=" + path});
  };
  const std::string file = files.Write("file", "");
  EXPECT_EQ(refusal(file), "setting program_cache.disk_path: the folder of programs, " + file + ", is no folder");
  EXPECT_THAT(refusal(file + "/programs"), HasSubstr("Not a directory"));
  EXPECT_THAT(refusal(files.PathOf("none") + "/programs"), HasSubstr("cannot be made: No such file or directory"));
  const std::string open = PathOf("open");
  ASSERT_EQ(mkdir(open.c_str(), 0700), 0);
  ASSERT_EQ(chmod(open.c_str(), 0755), 0);
  EXPECT_EQ(refusal(open), "") << "the start closes it";
  rmdir(open.c_str());
  for (const std::string end : {"", "/"}) {
    EXPECT_EQ(refusal(open + end), "") << "the start makes it";
  }
  EXPECT_NE(access(open.c_str(), F_OK), 0) << "and the check does not";
}

}  // namespace
}  // namespace tensord
