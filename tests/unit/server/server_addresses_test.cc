#include "server/server_addresses.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace tensord::server {
namespace {

int64_t IdleMs(const std::vector<std::string>& listen, int64_t set = -1) {
  ServerConfig config;
  for (const std::string& address : listen) config.add_listen(address);
  config.set_allow_insecure_listen(true);
  config.mutable_limits()->set_connection_idle_ms(set);
  const absl::StatusOr<ServerAddresses> addresses = ParseServerAddresses(config);
  EXPECT_TRUE(addresses.ok()) << addresses.status();
  return ConnectionIdleMs(config.limits(), addresses->calls);
}

TEST(ServerAddressesTest, IdleConnectionsOfOtherMachinesEnd) {
  EXPECT_EQ(IdleMs({}), 0);
  EXPECT_EQ(IdleMs({"unix:/a", "127.0.0.1:1", "[::1]:1"}), 0);
  EXPECT_EQ(IdleMs({"unix:/a", "0.0.0.0:1"}), 1'800'000);
  EXPECT_EQ(IdleMs({"unix:/a"}, 5), 5);
  EXPECT_EQ(IdleMs({"0.0.0.0:1"}, 0), 0);
}

}  // namespace
}  // namespace tensord::server
