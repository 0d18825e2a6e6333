// The binary takes a changed file of --config without a signal.
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/server/in_process_server.h"
#include "tests/e2e/server/observe/metrics_page_at.h"
#include "tests/e2e/server/server_process.h"
#include "tests/testlib/tls/private_folder.h"

namespace tensord {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string WithDeadline(int milliseconds) {
  return absl::StrCat("limits { default_deadline_ms: ", milliseconds, " }\n");
}

// A line of identity.file.
std::string CallerNamed(const std::string& tenant) { return tenant + " execute " + std::string(64, '0') + "\n"; }

class WatchedConfigTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_FALSE(Process::BinaryPath().empty()) << "TENSORD_BINARY names the server's binary"; }
  void TearDown() override {
    if (server_ == nullptr) return;
    server_->Signal(SIGTERM);
    EXPECT_EQ(server_->Wait(), 0);
  }
  void Start(const std::string& config, int check_files_ms) {
    server_ = std::make_unique<Process>(
        std::vector<std::string>{"--listen=unix:" + folder_.PathOf("s"), "--metrics=127.0.0.1:0", "--config=" + config,
                                 "--set=identity.file=" + folder_.Write("callers", CallerNamed("a")),
                                 absl::StrCat("--set=reload.check_files_ms=", check_files_ms)},
        folder_.PathOf("log"));
    server_->Line();
    page_ = std::make_unique<MetricsPageAt>(AddressIn(server_->Line()));
  }
  bool HasDeadline(int milliseconds) const {
    return page_->Says(absl::StrCat("tensord_limit{limit=\"default_deadline_ms\"} ", milliseconds));
  }
  bool HasReloads(const std::string& result, int count) const {
    return page_->Says(absl::StrCat("tensord_config_reloads_total{cause=\"file\",result=\"", result, "\"} ", count));
  }
  std::string Log() const {
    std::stringstream text;
    text << std::ifstream(folder_.PathOf("log")).rdbuf();
    return text.str();
  }

  PrivateFolder folder_;
  std::unique_ptr<Process> server_;
  std::unique_ptr<MetricsPageAt> page_;
};

TEST_F(WatchedConfigTest, AChangeIsTaken) {
  Start(folder_.Write("config", WithDeadline(1000)), 10);
  EXPECT_TRUE(HasDeadline(1000));
  folder_.Write("config", WithDeadline(2000));
  EXPECT_TRUE(WaitFor([this] { return HasDeadline(2000); }));
  EXPECT_TRUE(WaitFor([this] { return HasReloads("ok", 1); }));
  folder_.Write("config", "limits { message_bytes: 4096 default_deadline_ms: 3000 }");
  EXPECT_TRUE(WaitFor([this] { return HasDeadline(3000); }));
  EXPECT_TRUE(WaitFor(
      [this] { return absl::StrContains(Log(), "these take a restart and stay as they are: limits.message_bytes"); }));
  EXPECT_TRUE(HasReloads("ok", 2) && HasReloads("refused", 0));
}

TEST_F(WatchedConfigTest, AWrongOneIsRefusedOnceAndLooksAreQuiet) {
  Start(folder_.Write("config", WithDeadline(1000)), 1);
  folder_.Write("config", "limits { no_such_setting: 1 }");
  EXPECT_TRUE(WaitFor([this] { return HasReloads("refused", 1); }));
  folder_.Write("config", "");
  EXPECT_TRUE(WaitFor([this] { return HasReloads("refused", 2); }));
  EXPECT_TRUE(HasDeadline(1000));
  EXPECT_TRUE(page_->Says("tensord_config_last_reload_successful 0"));
  folder_.Write("callers", CallerNamed("b"));
  EXPECT_TRUE(WaitFor([this] { return HasReloads("ok", 1); }));
  EXPECT_TRUE(page_->Says("tensord_config_last_reload_successful 0")) << "the configuration is refused still";
  folder_.Write("config", WithDeadline(2000));
  EXPECT_TRUE(WaitFor([this] { return HasDeadline(2000); }));
  EXPECT_TRUE(WaitFor([this] { return HasReloads("ok", 2); }));
  EXPECT_TRUE(page_->Says("tensord_config_last_reload_successful 1"));
  EXPECT_TRUE(HasReloads("refused", 2)) << "each once, whatever number of looks there was";
  EXPECT_THAT(Log(), HasSubstr("refused, everything stays as it is: "));
}

// The file is a link through a folder that is exchanged as a whole: Kubernetes hands over a ConfigMap like this.
TEST_F(WatchedConfigTest, ALinkThatIsExchangedIsSeen) {
  const auto write = [this](const std::string& folder, int deadline) {
    fs::create_directory(folder_.PathOf(folder));
    std::ofstream(folder_.PathOf(folder + "/config")) << WithDeadline(deadline);
    fs::create_directory_symlink(folder, folder_.PathOf("..new"));
    fs::rename(folder_.PathOf("..new"), folder_.PathOf("..data"));
  };
  write("..1", 1000);
  fs::create_symlink("..data/config", folder_.PathOf("config"));
  Start(folder_.PathOf("config"), 10);
  EXPECT_TRUE(HasDeadline(1000));
  write("..2", 2000);
  EXPECT_TRUE(WaitFor([this] { return HasDeadline(2000); }));
  for (const char* left : {"..1", "..2"}) fs::remove_all(folder_.PathOf(left));
}

TEST_F(WatchedConfigTest, WithoutLooksASignalIsNeeded) {
  Start(folder_.Write("config", WithDeadline(1000)), 0);
  folder_.Write("config", WithDeadline(2000));
  server_->Signal(SIGHUP);
  EXPECT_TRUE(WaitFor([this] { return HasDeadline(2000); }));
  EXPECT_TRUE(HasReloads("ok", 0)) << "that was the signal's";
}

}  // namespace
}  // namespace tensord
