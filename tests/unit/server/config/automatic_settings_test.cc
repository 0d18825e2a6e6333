#include "server/config/automatic_settings.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/config/config_file.h"
#include "server/config/flat_settings.h"

namespace tensord::server {
namespace {

ServerConfig ConfigOf(const std::vector<std::string>& settings) {
  ServerConfig config;
  for (const std::string& setting : settings) EXPECT_TRUE(SetConfigField(setting, &config).ok()) << setting;
  return config;
}

constexpr int64_t kPlenty = int64_t{1} << 20;  // of descriptors

TEST(AutomaticSettingsTest, OneTenantGetsEverything) {
  const ServerConfig decided = WithAutomaticSettings(ConfigOf({"sessions.device_bytes=101", "shared_memory.bytes=203"}),
                                                     {.tensor_bytes = 1000, .descriptors = kPlenty});
  EXPECT_EQ(decided.cpu().memory_bytes(), 900);
  EXPECT_EQ(decided.scheduling().tenant_queue_percent(), 100);
  EXPECT_EQ(decided.scheduling().tenant_in_flight_percent(), 100);
  EXPECT_EQ(decided.scheduling().tenant_unread_percent(), 100);
  EXPECT_EQ(decided.sessions().tenant_bytes(), 101);
  EXPECT_EQ(decided.shared_memory().tenant_bytes(), 203);
}

TEST(AutomaticSettingsTest, OneOfSeveralTenantsGetsHalf) {
  const ServerConfig decided =
      WithAutomaticSettings(ConfigOf({"sessions.device_bytes=101", "shared_memory.bytes=203"}),
                            {.tensor_bytes = 1000, .has_tenants = true, .descriptors = kPlenty});
  EXPECT_EQ(decided.scheduling().tenant_queue_percent(), 50);
  EXPECT_EQ(decided.scheduling().tenant_in_flight_percent(), 50);
  EXPECT_EQ(decided.scheduling().tenant_unread_percent(), 50);
  EXPECT_EQ(decided.sessions().tenant_bytes(), 50);
  EXPECT_EQ(decided.shared_memory().tenant_bytes(), 101);
}

TEST(AutomaticSettingsTest, WhatIsSetStays) {
  const ServerConfig set =
      ConfigOf({"cpu.memory_bytes=0", "scheduling.tenant_queue_percent=100", "scheduling.tenant_in_flight_percent=7",
                "scheduling.tenant_unread_percent=8", "sessions.tenant_bytes=0", "shared_memory.tenant_bytes=9",
                "shared_memory.bytes=1000", "limits.connections_per_address=5"});
  const ServerConfig decided =
      WithAutomaticSettings(set, {.tensor_bytes = 1000, .has_tenants = true, .descriptors = kPlenty});
  EXPECT_TRUE(ChangedSettings(set, decided).empty());
}

TEST(AutomaticSettingsTest, SharedMemoryIsWithinTheTensorsBytes) {
  const ServerConfig decided = WithAutomaticSettings(
      ConfigOf({"shared_memory.bytes=2000"}), {.tensor_bytes = 1000, .has_tenants = true, .descriptors = kPlenty});
  EXPECT_EQ(decided.shared_memory().bytes(), 1000);
  EXPECT_EQ(decided.shared_memory().tenant_bytes(), 500);
}

TEST(AutomaticSettingsTest, ConnectionsLeaveDescriptorsForAllElse) {
  const auto connections = [](int64_t descriptors, const std::vector<std::string>& settings = {}) {
    return WithAutomaticSettings(ConfigOf(settings), {.descriptors = descriptors}).limits().connections();
  };
  const int64_t reserve = DescriptorsBesideConnections(ServerConfig());
  EXPECT_EQ(connections(kPlenty), 1024);
  EXPECT_EQ(connections(reserve + 1024), 1024);
  EXPECT_EQ(connections(reserve + 1000), 1000);
  EXPECT_EQ(connections(reserve + 1000, {"limits.connections=7"}), 7);
  EXPECT_EQ(WithAutomaticSettings(ConfigOf({}), {.descriptors = reserve + 1000}).limits().connections_per_address(),
            500);
  EXPECT_EQ(connections(reserve + 1000, {"shared_memory.listen=unix:/a", "shared_memory.connections=300"}), 700);
  EXPECT_EQ(connections(reserve - 1), 1);
}

}  // namespace
}  // namespace tensord::server
