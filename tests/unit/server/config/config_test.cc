#include "server/config/config_file.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"
#include "server/config/command_line.h"
#include "server/config/flat_settings.h"
#include "tests/testlib/tls/private_folder.h"

namespace tensord::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

TEST(ConfigTest, ReadsTextAndJson) {
  ServerConfig config;
  ASSERT_TRUE(MergeConfigText("# comment\nlisten: \"unix:/a\" limits { rank: 3 }", &config).ok());
  ASSERT_TRUE(MergeConfigText("  {\"cpu\": {\"executors\": 5}, \"limits\": {\"name_bytes\": \"9\"}}", &config).ok());
  EXPECT_THAT(config.listen(), ElementsAre("unix:/a"));
  EXPECT_EQ(config.cpu().executors(), 5);
  EXPECT_EQ(GraphLimitsOf(config).rank, 3);
  EXPECT_EQ(GraphLimitsOf(config).name_bytes, 9);
}

TEST(ConfigTest, RefusesWhatDoesNotExist) {
  ServerConfig config;
  EXPECT_THAT(MessageOf(MergeConfigText("limits { rnak: 3 }", &config)), HasSubstr("rnak"));
  EXPECT_THAT(MessageOf(MergeConfigText("{\"limits\": {\"rnak\": 3}}", &config)), HasSubstr("rnak"));
  EXPECT_THAT(MessageOf(SetConfigField("limits.rnak=3", &config)), HasSubstr("limits.rnak"));
  EXPECT_THAT(MessageOf(SetConfigField("limits=3", &config)), HasSubstr("limits"));
  EXPECT_THAT(MessageOf(SetConfigField("metrics.port=3", &config)), HasSubstr("metrics"));
  EXPECT_THAT(MessageOf(SetConfigField("limits.rank", &config)), HasSubstr("path=value"));
  EXPECT_THAT(MessageOf(SetConfigField("=3", &config)), HasSubstr("no setting"));
  EXPECT_EQ(MessageOf(SetConfigField("limits.rnak=3", &config)),
            "there is no setting limits.rnak; did you mean limits.rank?");
  EXPECT_EQ(MessageOf(SetConfigField("in_flight_bytes=3", &config)),
            "there is no setting in_flight_bytes; did you mean limits.in_flight_bytes?");
  EXPECT_EQ(MessageOf(SetConfigField("xyzzy.plugh=3", &config)),
            "there is no setting xyzzy.plugh; --print-default-config shows all");
  EXPECT_EQ(MergeConfigFile("/does/not/exist", &config).code(), absl::StatusCode::kInvalidArgument);
}

TEST(ConfigTest, RefusesAFieldThatIsThereTwice) {
  const auto merged = [](const std::string& text) {
    ServerConfig config;
    return MessageOf(MergeConfigText(text, &config));
  };
  EXPECT_THAT(merged("limits { rank: 3 rank: 4 }"), HasSubstr("rank"));
  EXPECT_THAT(merged(R"({"limits": {"rank": 3, "name_bytes": 9, "rank": 4}})"), HasSubstr("limits.rank"));
  EXPECT_THAT(merged(R"({"limits": {"rank": 3}, "cpu": {"threads": 1}, "limits": {}})"), HasSubstr("limits"));
  EXPECT_THAT(merged(R"({"limits": {"name_bytes": 3, "nameBytes": 4}})"), HasSubstr("limits.nameBytes"));
  EXPECT_THAT(merged(R"({"limits": {"rank": 3, "r\u0061nk": 4}})"), HasSubstr("limits."));
  EXPECT_THAT(merged(R"({limits: {rank: 3, 'rank': 4}})"), HasSubstr("limits.rank")) << "protobuf takes these too";
  EXPECT_THAT(merged(R"({"listen": ["unix:/a"], "listen": ["unix:/b"]})"), HasSubstr("listen"));
  EXPECT_EQ(merged(R"({"listen": ["{\"rank\": 1, \"rank\": 2}", "x\\"], "limits": {"rank": 1}, "metrics": "a:1"})"),
            "");
  EXPECT_EQ(merged(R"({"cpu": {"threads": 1}, "compiler": {"threads": 2}, "shared_memory": {"uids": [1, 1]}})"), "");
}

TEST(ConfigTest, NamesTheWholeSettingWhoseValueIsWrong) {
  ServerConfig config;
  EXPECT_THAT(MessageOf(SetConfigField("limits.message_bytes=4g", &config)),
              HasSubstr("setting limits.message_bytes takes bytes, for example 2147483648, 2Gi or 2G, not \"4g\""));
  EXPECT_THAT(MessageOf(SetConfigField("limits.rank=4k", &config)),
              HasSubstr("setting limits.rank takes a whole number, not \"4k\""));
  EXPECT_THAT(MessageOf(SetConfigField("reflection=maybe", &config)), HasSubstr("setting reflection takes"));
  EXPECT_THAT(MessageOf(SetConfigField("limits=3", &config)),
              HasSubstr("setting limits takes fields of its own, for example limits.NAME"));
  EXPECT_THAT(MessageOf(SetConfigField("limits.rank.x=3", &config)), HasSubstr("setting limits.rank has no fields"));
}

TEST(ConfigTest, ReadsFilesWholeOrNotAtAll) {
  const PrivateFolder folder;
  ServerConfig config;
  EXPECT_TRUE(MergeConfigFile(folder.Write("right", "limits { rank: 3 }"), &config).ok());
  EXPECT_EQ(GraphLimitsOf(config).rank, 3);
  EXPECT_TRUE(MergeConfigFile(folder.Write("comment", "# nothing"), &config).ok());
  EXPECT_THAT(MessageOf(MergeConfigFile(folder.Write("empty", ""), &config)), HasSubstr("is empty"));
  EXPECT_THAT(MessageOf(MergeConfigFile(folder.PathOf(""), &config)), HasSubstr("is no file"));
  EXPECT_THAT(MessageOf(MergeConfigFile("/dev/null", &config)), HasSubstr("is no file"));
  // It opens, and reading it fails.
  EXPECT_THAT(MessageOf(MergeConfigFile("/proc/self/mem", &config)), HasSubstr("cannot be read"));
}

TEST(ConfigTest, SetsEveryKindOfField) {
  ServerConfig config;
  ASSERT_TRUE(SetConfigField("limits.message_bytes=4096", &config).ok());
  ASSERT_TRUE(SetConfigField("cpu.threads=3", &config).ok());
  ASSERT_TRUE(SetConfigField("reflection=false", &config).ok());
  ASSERT_TRUE(SetConfigField("metrics=127.0.0.1:0", &config).ok());
  ASSERT_TRUE(SetConfigField("listen=unix:/a=b", &config).ok());
  EXPECT_EQ(config.limits().message_bytes(), 4096);
  EXPECT_EQ(config.cpu().threads(), 3);
  EXPECT_FALSE(config.reflection());
  EXPECT_EQ(config.metrics(), "127.0.0.1:0");
  EXPECT_THAT(config.listen(), ElementsAre("unix:/a=b"));
  for (const char* wrong : {"limits.message_bytes=4g", "cpu.threads=", "cpu.threads=99999999999", "reflection=maybe"}) {
    EXPECT_EQ(SetConfigField(wrong, &config).code(), absl::StatusCode::kInvalidArgument) << wrong;
  }
}

TEST(ConfigTest, BytesMayHaveAUnit) {
  ServerConfig config;
  ASSERT_TRUE(SetConfigField("limits.in_flight_bytes=2G", &config).ok());
  EXPECT_EQ(config.limits().in_flight_bytes(), 2'000'000'000);
  ASSERT_TRUE(SetConfigField("limits.in_flight_bytes=2Gi", &config).ok());
  EXPECT_EQ(config.limits().in_flight_bytes(), int64_t{2} << 30);
  ASSERT_TRUE(SetConfigField("cpu.memory_bytes=-1", &config).ok());
  EXPECT_EQ(config.cpu().memory_bytes(), -1);
}

TEST(ConfigTest, EverySettingOfBytesMayHaveAUnitAndNoOther) {
  std::vector<std::string> in_bytes_settings;
  VisitSettings(ServerConfig(), [&](const std::string& path, const google::protobuf::Message&,
                                    const google::protobuf::FieldDescriptor& field) {
    const bool is_named_so = field.name() == "bytes" || absl::EndsWith(std::string(field.name()), "_bytes");
    EXPECT_EQ(field.options().GetExtension(in_bytes), is_named_so) << path;
    if (is_named_so) in_bytes_settings.push_back(path);
    ServerConfig config;
    const bool is_text = field.cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_STRING;
    EXPECT_EQ(SetConfigField(path + "=2Ki", &config).ok(), is_named_so || is_text) << path;
  });
  EXPECT_THAT(in_bytes_settings, IsSupersetOf({"program_cache.bytes", "shared_memory.bytes", "limits.message_bytes"}));
  for (const std::string& path : in_bytes_settings) {
    ServerConfig with_unit, without;
    ASSERT_TRUE(SetConfigField(path + "=2Ki", &with_unit).ok()) << path;
    ASSERT_TRUE(SetConfigField(path + "=2048", &without).ok()) << path;
    EXPECT_EQ(with_unit.SerializeAsString(), without.SerializeAsString()) << path;
    EXPECT_THAT(MessageOf(SetConfigField(path + "=many", &with_unit)),
                HasSubstr("takes bytes, for example 2147483648, 2Gi or 2G, not \"many\""))
        << path;
  }
}

TEST(ConfigTest, ValidatesRangesAndNames) {
  EXPECT_TRUE(ValidateConfig(ServerConfig()).ok());
  for (const char* wrong : {"limits.message_bytes=2147483648",
                            "limits.rank=-1",
                            "cpu.executors=0",
                            "drain.timeout_ms=-1",
                            "log.level=loud",
                            "cpu.jit=maybe",
                            "cpu.epilogues=maybe",
                            "cpu.memory_bytes=-2",
                            "cpu.niceness=20",
                            "cpu.chain_block_bytes=-2",
                            "cpu.fft_table_bytes=-1",
                            "program_cache.size_sets=0",
                            "program_cache.size_sets=1025",
                            "program_cache.size_set_bytes=-1",
                            "compiler.niceness=-1",
                            "scheduling.max_priority=3",
                            "scheduling.ageing_ms=0",
                            "scheduling.tenant_queue_percent=-1",
                            "sessions.tenant_bytes=-2",
                            "scheduling.tenant_in_flight_percent=101",
                            "scheduling.tenant_unread_percent=101",
                            "scheduling.tenant_requests_per_second=-1",
                            "scheduling.max_wait_ms=-1",
                            "limits.default_deadline_ms=0",
                            "compiler.disabled_passes=no_such_pass",
                            "compiler.enabled_passes=no_such_pass"}) {
    ServerConfig config;
    ASSERT_TRUE(SetConfigField(wrong, &config).ok()) << wrong;
    const absl::Status status = ValidateConfig(config);
    const std::string path(wrong, std::string(wrong).find('='));
    EXPECT_THAT(MessageOf(status), HasSubstr(path.substr(path.find('.') + 1))) << wrong;
  }
}

// A limit of the codec that cannot be configured would be one that no operator can raise.
TEST(ConfigTest, ALeaseByDefaultFitsTheLongest) {
  const auto check = [](const std::vector<std::string>& settings) {
    ServerConfig config;
    for (const std::string& setting : settings) EXPECT_TRUE(SetConfigField(setting, &config).ok());
    return std::string(ValidateConfig(config).message());
  };
  EXPECT_EQ(check({"sessions.default_lease_ms=9", "sessions.max_lease_ms=8"}),
            "setting sessions.default_lease_ms, 9, is at most sessions.max_lease_ms, which is 8");
  EXPECT_EQ(check({"sessions.default_lease_ms=8", "sessions.max_lease_ms=8"}), "");
  EXPECT_EQ(check({"sessions.max_lease_ms=8"}), "") << "shortens the default";
  EXPECT_NE(check({"sessions.default_lease_ms=86400001"}), "");
}

TEST(ConfigTest, EveryGraphLimitIsASetting) {
  for (const codec::GraphLimitInfo& info : codec::AllGraphLimits()) {
    ServerConfig config;
    ASSERT_TRUE(SetConfigField("limits." + std::string(info.name) + "=7", &config).ok()) << std::string(info.name);
    EXPECT_EQ(GraphLimitsOf(config).*info.value, 7) << std::string(info.name);
    EXPECT_EQ(GraphLimitsOf(ServerConfig()).*info.value, codec::GraphLimits().*info.value);
  }
}

TEST(ConfigTest, LimitsThatLetNothingThroughAreRefusedByTheirNames) {
  for (const std::string limit : {"rank", "dimension", "graph_nodes", "graph_outputs", "graph_bytes", "tensor_bytes"}) {
    const absl::Status refused = ParseCommandLine({"--set=limits." + limit + "=0"}).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << limit;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("setting limits." + limit + " must be between 1 and"));
  }
  EXPECT_TRUE(ParseCommandLine({"--set=limits.constant_bytes=0"}).ok()) << "graphs may do without";
}

TEST(ConfigTest, PrintedDefaultsReadBack) {
  const std::string printed = PrintConfig(ServerConfig());
  ServerConfig config;
  ASSERT_TRUE(MergeConfigText(printed, &config).ok());
  EXPECT_EQ(PrintConfig(config), printed);
  EXPECT_THAT(printed, HasSubstr("message_bytes: 1073741824"));
  EXPECT_THAT(printed, HasSubstr("rank: 32"));
}

TEST(CommandLineTest, FlagsWinOverDefaults) {
  const auto line = ParseCommandLine({"--listen=unix:/a", "--listen", "127.0.0.1:0", "--metrics=localhost:0",
                                      "--set=limits.rank=4", "--log-level=warning", "--allow-insecure-listen"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->action, CommandLine::Action::kRun);
  EXPECT_THAT(line->config.listen(), ElementsAre("unix:/a", "127.0.0.1:0"));
  EXPECT_EQ(line->config.metrics(), "localhost:0");
  EXPECT_EQ(line->config.limits().rank(), 4);
  EXPECT_EQ(line->config.log().level(), "warning");
  EXPECT_TRUE(line->config.allow_insecure_listen());
}

TEST(CommandLineTest, FlagsThatStandForSettings) {
  const auto line = ParseCommandLine({"--admin=unix:/a", "--cache-dir", "/var/cache/tensord"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->config.admin().listen(), "unix:/a");
  EXPECT_EQ(line->config.program_cache().disk_path(), "/var/cache/tensord");
  EXPECT_FALSE(ParseCommandLine({"--admin=127.0.0.1:0"}).ok()) << "checked as the setting is";
  EXPECT_THAT(HelpText(), HasSubstr("--admin=ADDRESS"));
  EXPECT_THAT(HelpText(), HasSubstr("--cache-dir=DIR"));
}

TEST(CommandLineTest, RefusesWhatIsWrong) {
  for (const std::string wrong : {"--lisen=unix:/a", "listen", "--set", "--version=1", "--set=cpu.executors=0", "-x"}) {
    EXPECT_EQ(ParseCommandLine({wrong}).status().code(), absl::StatusCode::kInvalidArgument) << wrong;
  }
}

TEST(CommandLineTest, AFlagOfOneValueIsGivenOnce) {
  for (const std::string flag : {"--metrics=localhost:0", "--admin=unix:/a", "--cache-dir=/a", "--log-level=off"}) {
    const absl::Status twice = ParseCommandLine({flag, flag}).status();
    EXPECT_EQ(twice.code(), absl::StatusCode::kInvalidArgument) << flag;
    EXPECT_THAT(std::string(twice.message()), HasSubstr("twice")) << flag;
  }
  EXPECT_TRUE(ParseCommandLine({"--listen=unix:/a", "--set=limits.rank=4", "--set=limits.rank=5", "--listen=unix:/b",
                                "--allow-insecure-listen", "--allow-insecure-listen"})
                  .ok());
}

TEST(CommandLineTest, FilesOfTheConfiguration) {
  EXPECT_THAT(ConfigFilesOf(std::vector<std::string>{"--log-level=off", "--config=/a", "--config", "/b"}),
              ::testing::ElementsAre("/a", "/b"));
  EXPECT_TRUE(ConfigFilesOf(std::vector<std::string>{"--config=/a", "--wrong"}).empty());
}

TEST(CommandLineTest, ActionsAndHelp) {
  EXPECT_EQ(ParseCommandLine({"--check-config"})->action, CommandLine::Action::kCheckConfig);
  EXPECT_EQ(ParseCommandLine({"--print-default-config"})->action, CommandLine::Action::kPrintDefaultConfig);
  EXPECT_EQ(ParseCommandLine({"--version"})->action, CommandLine::Action::kVersion);
  EXPECT_EQ(ParseCommandLine({"--help"})->action, CommandLine::Action::kHelp);
  EXPECT_EQ(ParseCommandLine({"-h"})->action, CommandLine::Action::kHelp);
  EXPECT_EQ(MessageOf(ParseCommandLine({"--metircs=x:1"}).status()),
            "there is no flag --metircs; did you mean --metrics?");
  EXPECT_EQ(MessageOf(ParseCommandLine({"--xyzzy"}).status()), "there is no flag --xyzzy; see --help");
  EXPECT_THAT(HelpText(), HasSubstr("\n  -h, --help"));
  EXPECT_THAT(HelpText(), HasSubstr("--listen=ADDRESS"));
}

}  // namespace
}  // namespace tensord::server
