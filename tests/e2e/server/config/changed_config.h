#ifndef TENSORD_TESTS_E2E_SERVER_CONFIG_CHANGED_CONFIG_H_
#define TENSORD_TESTS_E2E_SERVER_CONFIG_CHANGED_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/config/config_file.h"
#include "tests/e2e/server/in_process_server.h"

namespace tensord {

// The configuration with settings as --set has them.
inline server::ServerConfig Changed(const server::ServerConfig& config, const std::vector<std::string>& settings) {
  server::ServerConfig changed = config;
  for (const std::string& setting : settings) EXPECT_TRUE(server::SetConfigField(setting, &changed).ok()) << setting;
  return changed;
}

inline v1::ServerInfo InfoOf(InProcessServer& server) {
  grpc::ClientContext context;
  v1::ServerInfo info;
  EXPECT_TRUE(server.stub().GetServerInfo(&context, v1::GetServerInfoRequest(), &info).ok());
  return info;
}

// Returns the limit as the server tells its clients; -1 if it tells none of that name.
inline int64_t LimitOf(InProcessServer& server, const std::string& name) {
  const v1::ServerInfo info = InfoOf(server);
  for (const v1::Limit& limit : info.limits()) {
    if (limit.name() == name) return limit.value();
  }
  return -1;
}

}  // namespace tensord

#endif  // TENSORD_TESTS_E2E_SERVER_CONFIG_CHANGED_CONFIG_H_
