// Every setting is either taken on SIGHUP, and then in force, or named as one that takes a restart.
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/fingerprint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/config/config_file.h"
#include "server/config/flat_settings.h"
#include "server/part_settings.h"
#include "tests/e2e/server/config/changed_config.h"
#include "tests/e2e/server/in_process_server.h"
#include "tests/testlib/tls/certificate_authority.h"
#include "tests/testlib/tls/private_folder.h"

namespace tensord {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string CallersIn(const std::vector<std::string>& tenants) {
  std::string lines;
  for (const std::string& tenant : tenants) {
    absl::StrAppend(&lines, tenant, " execute,read ", Fingerprint::Of("token-" + tenant).ToHex(), "\n");
  }
  return lines;
}

// A setting that a running server takes: another value, and the value in force afterwards.
struct Taken {
  std::string value;
  std::string in_force;
  std::function<std::string(InProcessServer&)> look;  // null: another test does, which `in_force` names
};

template <typename Function>
std::function<std::string(InProcessServer&)> Look(Function&& function) {
  return [function](InProcessServer& server) { return absl::StrCat(function(server)); };
}

#define TENSORD_LOOK(expression) Look([]([[maybe_unused]] InProcessServer& server) { return expression; })

DeviceExecutor::Bounds BoundsOfCuda(InProcessServer& server) {
  return (*server.parts().executors->Find("cuda:0"))->bounds();
}

std::map<std::string, Taken> TakenSettings(const PrivateFolder& folder) {
  std::map<std::string, Taken> taken = {
      {"cpu.memory_bytes", {"12345", "12345", TENSORD_LOOK(server.executor().bounds().memory_bytes)}},
      {"cpu.pool_bytes", {"12345", "12345", TENSORD_LOOK(server.parts().devices->memory()->keep_bytes())}},
      {"cpu.queue_length", {"77", "77", TENSORD_LOOK(server.executor().bounds().max_queued)}},
      {"cuda.memory_bytes", {"12345", "12345", TENSORD_LOOK(BoundsOfCuda(server).memory_bytes)}},
      {"cuda.queue_length", {"77", "77", TENSORD_LOOK(BoundsOfCuda(server).max_queued)}},
      {"compiler.queue_length", {"77", "77", TENSORD_LOOK(server.parts().compile_pool->bounds().max_queued)}},
      {"receive.queue_length", {"77", "77", TENSORD_LOOK(server.parts().readers->bounds().max_queued)}},
      {"drain.grace_ms", {"1", "ReloadTest.TheEndKeepsToNewTimes", nullptr}},
      {"drain.timeout_ms", {"1", "ReloadTest.TheEndKeepsToNewTimes", nullptr}},
      {"flight_recorder.slow_ms",
       {"77", "77", TENSORD_LOOK(absl::ToInt64Milliseconds(server.parts().recorder->slow()))}},
      {"identity.file",
       {folder.Write("two", CallersIn({"a", "b"})), "2",
        TENSORD_LOOK(server.parts().authenticator->policy()->table->num_tenants())}},
      {"identity.required", {"off", "0", TENSORD_LOOK(server.parts().authenticator->policy()->required)}},
      {"identity.trust_unix_sockets", {"false", "AccessTest", nullptr}},
      {"limits.connections", {"77", "77", TENSORD_LOOK(server.parts().connections->bounds().most)}},
      {"limits.connections_per_address",
       {"7", "7", TENSORD_LOOK(server.parts().connections->bounds().most_of_address)}},
      {"limits.default_deadline_ms",
       {"7777", "7777",
        TENSORD_LOOK(
            absl::ToInt64Milliseconds(absl::Duration(server.parts().service_parts.admission.default_deadline)))}},
      {"limits.in_flight_bytes", {"77777", "77777", TENSORD_LOOK(LimitOf(server, "in_flight_bytes"))}},
      {"limits.metadata_bytes",
       {"7777", "7777", TENSORD_LOOK(int64_t{server.parts().service_parts.admission.metadata_bytes})}},
      {"log.level", {"error", "0", TENSORD_LOOK(server.parts().log->Logs(server::LogLevel::kWarning))}},
      {"log.requests", {"true", "1", TENSORD_LOOK(server.parts().log->takes_requests())}},
      {"program_cache.bytes", {"77777", "77777", TENSORD_LOOK(server.parts().cache->max_bytes())}},
      {"program_cache.disk_bytes", {"77777", "77777", TENSORD_LOOK(server.parts().store->max_bytes())}},
      {"program_cache.negative_ms",
       {"77", "77", TENSORD_LOOK(absl::ToInt64Milliseconds(server.parts().cache->keep_refused()))}},
      {"receive.pool_bytes", {"12345", "12345", TENSORD_LOOK(server.parts().payloads->keep_bytes())}},
      {"scheduling.ageing_ms",
       {"77", "77", TENSORD_LOOK(absl::ToInt64Milliseconds(server.executor().bounds().ageing))}},
      {"scheduling.max_priority", {"1", "1", TENSORD_LOOK(int64_t{server.parts().service_parts.devices.max_priority})}},
      {"scheduling.max_wait_ms",
       {"77", "77", TENSORD_LOOK(absl::ToInt64Milliseconds(server.executor().bounds().max_wait))}},
      {"scheduling.tenant_burst", {"77", "77", TENSORD_LOOK(server.parts().rates->options().burst)}},
      {"scheduling.tenant_in_flight_percent",
       {"25", absl::StrCat(int64_t{1} << 29), TENSORD_LOOK(server.parts().gate->bytes().most_of_tenant())}},
      {"scheduling.tenant_unread_percent",
       {"25", "1",
        TENSORD_LOOK(server.parts().unread_results->most_of_tenant() ==
                     server::ShareOf(server.executor().bounds().memory_bytes, 25))}},
      {"scheduling.tenant_queue_percent",
       {"25", "256", TENSORD_LOOK(server.executor().bounds().max_queued_per_tenant)}},
      {"scheduling.tenant_requests_per_second",
       {"77777", "77777", TENSORD_LOOK(server.parts().rates->options().per_second)}},
      {"sessions.count", {"77", "77", TENSORD_LOOK(server.parts().sessions->limits().sessions)}},
      {"sessions.default_lease_ms",
       {"7777", "7777", TENSORD_LOOK(absl::ToInt64Milliseconds(server.parts().sessions->limits().default_lease))}},
      {"sessions.device_bytes", {"7777", "7777", TENSORD_LOOK(server.parts().sessions->limits().memory.device_bytes)}},
      {"sessions.handles", {"77", "77", TENSORD_LOOK(server.parts().sessions->limits().handles)}},
      {"sessions.max_lease_ms",
       {"7777777", "7777777", TENSORD_LOOK(absl::ToInt64Milliseconds(server.parts().sessions->limits().max_lease))}},
      {"sessions.stream_bytes",
       {"7777", "7777", TENSORD_LOOK(int64_t{server.parts().service_parts.admission.stream_bytes})}},
      {"sessions.stream_requests",
       {"7", "7", TENSORD_LOOK(int64_t{server.parts().service_parts.admission.stream_requests})}},
      {"sessions.tenant_bytes", {"7777", "7777", TENSORD_LOOK(server.parts().sessions->limits().memory.tenant_bytes)}},
      {"sessions.tenant_count", {"77", "77", TENSORD_LOOK(server.parts().sessions->limits().tenant_sessions)}},
      {"shared_memory.bytes", {"7777", "7777", TENSORD_LOOK(server.parts().regions->limits().bytes)}},
      {"shared_memory.connections", {"77", "77", TENSORD_LOOK(server.daemon().broker()->max_connections())}},
      {"shared_memory.region_bytes", {"7777", "7777", TENSORD_LOOK(server.parts().regions->limits().region_bytes)}},
      {"shared_memory.tenant_bytes", {"7777", "7777", TENSORD_LOOK(server.parts().regions->limits().tenant_bytes)}},
      {"shared_memory.tenant_regions", {"77", "77", TENSORD_LOOK(server.parts().regions->limits().tenant_regions)}},
      {"shared_memory.uids", {"77", "77", TENSORD_LOOK(absl::StrJoin(server.daemon().broker()->uids(), ","))}},
      {"tracing.sample_ratio", {"0.5", "TracerTest", nullptr}},
  };
  for (const codec::GraphLimitInfo& limit : codec::AllGraphLimits()) {
    const auto look = [&limit](InProcessServer& server) {
      return absl::StrCat(server.parts().service_parts.admission.graph_limits.now().*limit.value);
    };
    taken[absl::StrCat("limits.", std::string(limit.name))] = {"7", "7", look};
  }
  return taken;
}

// Returns other values of the settings that take a restart; some are right only beside others.
std::map<std::string, std::vector<std::string>> OtherValues(const PrivateFolder& folder) {
  const CertificateAuthority ca;
  const IssuedCertificate issued = ca.Issue();
  const std::vector<std::string> tls = {"tls.certificate=" + folder.Write("server.pem", issued.certificate, 0644),
                                        "tls.key=" + folder.Write("server.key", issued.key),
                                        "tls.client_ca=" + folder.Write("ca.pem", ca.certificate(), 0644),
                                        "tls.require_client_certificate=true"};
  return {{"listen", {"listen=unix:" + folder.PathOf("other")}},
          {"metrics", {"metrics=127.0.0.1:0"}},
          {"limits.message_bytes", {"limits.message_bytes=1048576"}},
          {"devices", {"devices=cuda:1"}},
          {"default_device", {"default_device=cuda:0"}},
          {"cpu.jit", {"cpu.jit=off"}},
          {"cpu.epilogues", {"cpu.epilogues=off"}},
          {"cpu.disabled_joins", {"cpu.disabled_joins=boxes"}},
          {"cpu.isa", {"cpu.isa=baseline"}},
          {"cuda.libraries", {"cuda.libraries=/proc/self"}},
          {"compiler.disabled_passes", {"compiler.disabled_passes=fold_constants"}},
          {"compiler.enabled_passes", {"compiler.enabled_passes=decompose_dots"}},
          {"program_cache.disk_path", {"program_cache.disk_path=" + folder.PathOf("other_programs")}},
          {"families.plugins", {"families.plugins=/proc/self/exe"}},
          {"admin.listen", {"admin.listen=unix:" + folder.PathOf("admin")}},
          {"warm_up.graphs", {"warm_up.graphs=" + folder.Write("graph.json", "{}")}},
          {"warm_up.order", {"warm_up.order=column"}},
          {"shared_memory.listen", {"shared_memory.listen=unix:" + folder.PathOf("other_memory")}},
          {"tls.certificate", tls},
          {"tls.key", tls},
          {"tls.client_ca", tls},
          {"tls.require_client_certificate", tls},
          {"tracing.endpoint", {"tracing.endpoint=127.0.0.1:2"}},
          {"tracing.tls", {"tracing.tls=true"}},
          {"tracing.ca", {"tracing.tls=true", "tracing.ca=" + folder.Write("ca.pem", ca.certificate(), 0644)}},
          {"tracing.headers", {"tracing.headers=" + folder.Write("headers", "a: b\n")}},
          {"tracing.service_name", {"tracing.service_name=other"}}};
}

// Another value of a switch or a number, as it is set by default.
std::string OtherValueOf(const std::string& path) {
  for (const char* value : {"true", "false", "1", "2"}) {
    server::ServerConfig config;
    if (!server::SetConfigField(path + "=" + value, &config).ok()) continue;
    if (!server::ChangedSettings(server::ServerConfig(), config).empty() && server::ValidateConfig(config).ok()) {
      return value;
    }
  }
  ADD_FAILURE() << path << " needs a line in OtherValues";
  return "";
}

TEST(ReloadedSettingsTest, EachIsInForceOrNamedAsOneThatTakesARestart) {
  const PrivateFolder folder;
  const std::map<std::string, Taken> taken = TakenSettings(folder);
  const std::map<std::string, std::vector<std::string>> others = OtherValues(folder);
  InProcessServer server(
      {"log.level=warning", "log.requests=false", "tracing.endpoint=127.0.0.1:1",
       "identity.file=" + folder.Write("one", CallersIn({"a"})), "program_cache.disk_path=" + folder.PathOf("programs"),
       "shared_memory.listen=unix:" + folder.PathOf("memory"), "reload.check_files_ms=0", "devices=cpu",
       "devices=cuda:0"},
      VeiledCuda());
  const server::ServerConfig started = server.daemon().config();
  std::set<std::string> reloaded;
  for (const std::string& path : server::AllSettings()) {
    SCOPED_TRACE(path);
    const auto one = taken.find(path);
    EXPECT_EQ(server::Reloads(path), one != taken.end()) << "as server_config.proto says";
    if (one == taken.end()) {
      const auto other = others.find(path);
      const std::vector<std::string> settings =
          other == others.end() ? std::vector<std::string>{path + "=" + OtherValueOf(path)} : other->second;
      const server::Reloader::Outcome outcome = server.daemon().Reload(Changed(started, settings));
      EXPECT_THAT(outcome.need_restart, Contains(path));
      EXPECT_THAT(outcome.changed, IsEmpty());
      continue;
    }
    const std::string before = one->second.look == nullptr ? "" : one->second.look(server);
    EXPECT_NE(before, one->second.in_force) << "else nothing is shown";
    EXPECT_THAT(server.daemon().Reload(Changed(started, {path + "=" + one->second.value})).changed, ElementsAre(path));
    if (one->second.look == nullptr) {
      EXPECT_THAT(server.daemon().Reload(started).changed, ElementsAre(path));
      continue;
    }
    EXPECT_EQ(one->second.look(server), one->second.in_force);
    // Both names that refusals may give it.
    for (const std::string& name : {path, path.substr(path.find('.') + 1)}) {
      const bool is_limit = name == path || path.substr(0, 7) == "limits.";
      const double told = is_limit ? server.Metric("tensord_limit", name) : -1;
      if (told >= 0) {
        EXPECT_EQ(absl::StrCat(told), absl::StrCat(std::stod(one->second.value)));
        reloaded.insert(name);
      }
    }
    EXPECT_THAT(server.daemon().Reload(started).changed, ElementsAre(path));
    EXPECT_EQ(one->second.look(server), before) << "and back";
  }
  EXPECT_GT(reloaded.size(), 30u) << "limits that are told";
}

// If one tenant may run programs it gets everything; if several may, each gets half of it at most.
TEST(ReloadedSettingsTest, PartsOfTenantsFollowTheFileOfCallers) {
  const PrivateFolder folder;
  const std::string callers =
      folder.Write("callers", CallersIn({"a"}) + "ops read,admin " + Fingerprint::Of("token-ops").ToHex() + "\n");
  InProcessServer server({"identity.file=" + callers, "shared_memory.listen=unix:" + folder.PathOf("memory"),
                          "sessions.device_bytes=1000", "shared_memory.bytes=2000", "cpu.queue_length=100",
                          "limits.in_flight_bytes=1048576", "reload.check_files_ms=0"});
  const auto parts = [&server] {
    const server::ServerParts& parts = server.parts();
    return std::vector<int64_t>{parts.sessions->limits().memory.tenant_bytes,
                                LimitOf(server, "sessions.tenant_bytes"),
                                parts.regions->limits().tenant_bytes,
                                LimitOf(server, "shared_memory.tenant_bytes"),
                                server.executor().bounds().max_queued_per_tenant,
                                parts.gate->bytes().most_of_tenant()};
  };
  constexpr int64_t kAll = server::TenantBytes::kUnlimited;
  EXPECT_THAT(parts(), ElementsAre(1000, 1000, 2000, 2000, kAll, kAll));
  folder.Write("callers", CallersIn({"a", "b"}));
  server.daemon().Reload(server.daemon().config());
  EXPECT_THAT(parts(), ElementsAre(500, 500, 1000, 1000, 50, 524288));
  server.daemon().Reload(
      Changed(server.daemon().config(), {"sessions.tenant_bytes=7", "scheduling.tenant_queue_percent=100"}));
  EXPECT_THAT(parts(), ElementsAre(7, 7, 1000, 1000, kAll, 524288)) << "what is set is as it is set";
  folder.Write("callers", CallersIn({"a"}));
  server.daemon().Reload(server.daemon().config());
  EXPECT_THAT(parts(), ElementsAre(1000, 1000, 2000, 2000, kAll, kAll));
}

}  // namespace
}  // namespace tensord
