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

TEST(AutomaticSettingsTest, OneTenantGetsEverything) {
  const ServerConfig decided =
      WithAutomaticSettings(ConfigOf({"sessions.device_bytes=101", "shared_memory.bytes=203"}), {.tensor_bytes = 1000});
  EXPECT_EQ(decided.cpu().memory_bytes(), 900);
  EXPECT_EQ(decided.scheduling().tenant_queue_percent(), 100);
  EXPECT_EQ(decided.scheduling().tenant_in_flight_percent(), 100);
  EXPECT_EQ(decided.sessions().tenant_bytes(), 101);
  EXPECT_EQ(decided.shared_memory().tenant_bytes(), 203);
}

TEST(AutomaticSettingsTest, OneOfSeveralTenantsGetsHalf) {
  const ServerConfig decided = WithAutomaticSettings(ConfigOf({"sessions.device_bytes=101", "shared_memory.bytes=203"}),
                                                     {.tensor_bytes = 1000, .has_tenants = true});
  EXPECT_EQ(decided.scheduling().tenant_queue_percent(), 50);
  EXPECT_EQ(decided.scheduling().tenant_in_flight_percent(), 50);
  EXPECT_EQ(decided.sessions().tenant_bytes(), 50);
  EXPECT_EQ(decided.shared_memory().tenant_bytes(), 101);
}

TEST(AutomaticSettingsTest, WhatIsSetStays) {
  const ServerConfig set =
      ConfigOf({"cpu.memory_bytes=0", "scheduling.tenant_queue_percent=100", "scheduling.tenant_in_flight_percent=7",
                "sessions.tenant_bytes=0", "shared_memory.tenant_bytes=9"});
  const ServerConfig decided = WithAutomaticSettings(set, {.tensor_bytes = 1000, .has_tenants = true});
  EXPECT_TRUE(ChangedSettings(set, decided).empty());
}

}  // namespace
}  // namespace tensord::server
