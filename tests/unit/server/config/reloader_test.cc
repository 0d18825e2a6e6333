#include "server/config/reloader.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/config/config_file.h"
#include "server/config/flat_settings.h"

namespace tensord::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ServerConfig ConfigWith(const std::vector<std::string>& settings) {
  ServerConfig config;
  for (const std::string& setting : settings) EXPECT_TRUE(SetConfigField(setting, &config).ok()) << setting;
  return config;
}

TEST(FlatSettingsTest, TellsWhichDiffer) {
  EXPECT_THAT(ChangedSettings(ServerConfig(), ServerConfig()), IsEmpty());
  EXPECT_THAT(ChangedSettings(ServerConfig(), ConfigWith({"limits.rank=32", "cpu.threads=0", "log.level=info"})),
              IsEmpty())
      << "defaults that are written out";
  EXPECT_THAT(ChangedSettings(ConfigWith({"listen=unix:/a", "log.level=debug"}),
                              ConfigWith({"listen=unix:/a", "listen=unix:/b", "limits.rank=3"})),
              ElementsAre("listen", "limits.rank", "log.level"));
}

TEST(FlatSettingsTest, CopiesOne) {
  ServerConfig to = ConfigWith({"log.level=debug", "limits.rank=3", "listen=unix:/a"});
  const ServerConfig from = ConfigWith({"listen=unix:/b", "listen=unix:/c", "cpu.threads=2"});
  EXPECT_TRUE(CopySetting("log.level", from, &to));
  EXPECT_TRUE(CopySetting("listen", from, &to));
  EXPECT_THAT(ChangedSettings(to, from), ElementsAre("limits.rank", "cpu.threads"));
  EXPECT_FALSE(CopySetting("log.colour", from, &to));
}

class ReloaderTest : public ::testing::Test {
 protected:
  ReloadablePart Part(const std::string& setting, std::string* taken, bool reads_files = false) {
    return {{setting},
            [this, setting, taken](const ServerConfig& config) -> absl::StatusOr<ReloadablePart::Commit> {
              if (refused_ == setting) return absl::InvalidArgumentError("no");
              ++prepared_;
              const std::string value = config.log().level();
              return [taken, value] { *taken = value; };
            },
            reads_files};
  }

  std::string first_, second_, refused_;
  int prepared_ = 0;
};

TEST_F(ReloaderTest, ChangesWhatCanAndNamesTheRest) {
  Reloader reloader(ConfigWith({"cpu.threads=2"}), {Part("log.level", &first_)});
  const auto outcome = reloader.Reload(ConfigWith({"log.level=error", "cpu.threads=3", "limits.rank=4"}));
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_THAT(outcome->changed, ElementsAre("log.level"));
  EXPECT_THAT(outcome->need_restart, ElementsAre("limits.rank", "cpu.threads"));
  EXPECT_EQ(first_, "error");
  EXPECT_EQ(reloader.running().cpu().threads(), 2);
  EXPECT_THAT(reloader.Reload(ConfigWith({"log.level=error", "cpu.threads=3"}))->need_restart,
              ElementsAre("cpu.threads"))
      << "they still differ from what runs";
}

TEST_F(ReloaderTest, TellsBeforeItIsDone) {
  Reloader reloader({}, {Part("log.level", &first_)});
  std::vector<std::string> told;
  const auto tell = [&](const Reloader::Outcome& outcome) {
    EXPECT_EQ(first_, "");
    told = outcome.changed;
  };
  EXPECT_TRUE(reloader.Reload(ConfigWith({"log.level=error"}), tell).ok());
  EXPECT_THAT(told, ElementsAre("log.level"));
  told.clear();
  refused_ = "log.level";
  EXPECT_FALSE(reloader.Reload(ConfigWith({"log.level=off"}), tell).ok());
  EXPECT_THAT(told, IsEmpty());
}

TEST_F(ReloaderTest, ChangesAllOrNothing) {
  Reloader reloader({}, {Part("log.level", &first_), Part("log.requests", &second_)});
  refused_ = "log.requests";
  EXPECT_FALSE(reloader.Reload(ConfigWith({"log.level=error", "log.requests=false"})).ok());
  EXPECT_EQ(prepared_, 1);
  EXPECT_EQ(first_, "");
  EXPECT_EQ(reloader.running().log().level(), "info");
  refused_ = "";
  EXPECT_TRUE(reloader.Reload(ConfigWith({"log.level=error", "log.requests=false"})).ok());
  EXPECT_EQ(first_, "error");
  EXPECT_EQ(second_, "error");
}

// A setting that is right alone may be wrong beside the settings that stay.
TEST_F(ReloaderTest, LooksAtTheMixtureThatWillRun) {
  Reloader reloader({}, {Part("identity.required", &first_)});
  const auto outcome = reloader.Reload(ConfigWith({"identity.required=on", "identity.file=/callers"}));
  EXPECT_THAT(std::string(outcome.status().message()), HasSubstr("identity.required"));
  EXPECT_EQ(reloader.running().identity().required(), "auto");
}

TEST_F(ReloaderTest, FilesAreTakenAgainWithoutAChange) {
  Reloader reloader(ConfigWith({"log.level=debug"}),
                    {Part("log.level", &first_, /*reads_files=*/true), Part("log.requests", &second_)});
  EXPECT_TRUE(reloader.ReloadFiles().ok());
  EXPECT_EQ(first_, "debug");
  EXPECT_EQ(second_, "") << "reads none";
  first_.clear();
  EXPECT_TRUE(reloader.Reload(reloader.running()).ok());
  EXPECT_EQ(first_, "debug");
  EXPECT_EQ(second_, "") << "has not changed";
  refused_ = "log.level";
  EXPECT_FALSE(reloader.ReloadFiles().ok());
}

}  // namespace
}  // namespace tensord::server
