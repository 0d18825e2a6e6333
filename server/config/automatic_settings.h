#ifndef TENSORD_SERVER_CONFIG_AUTOMATIC_SETTINGS_H_
#define TENSORD_SERVER_CONFIG_AUTOMATIC_SETTINGS_H_

#include <cstdint>

#include "server/config/server_config.pb.h"

namespace tensord::server {

// The facts that decide the automatic settings.
struct Surroundings {
  int64_t tensor_bytes = 0;  // that all tensors may take of the memory
  bool has_tenants = false;  // several, that may run programs
  int64_t descriptors = 0;   // that the process may open
};

// Connections of operators, at once.
inline constexpr int64_t kMostAdminConnections = 32;

// Descriptors that the server keeps free of clients' connections: for its files, for metrics, for operators, and for
// shared memory, so that these go on working however many clients connect.
int64_t DescriptorsBesideConnections(const ServerConfig& config);

// Returns the configuration with cpu.memory_bytes and the parts of tenants decided if they are left to the server, and
// with at most as many connections as there are descriptors for, at least one. The server's parts take these values,
// and GetServerInfo tells them. Nothing else is changed.
ServerConfig WithAutomaticSettings(const ServerConfig& config, const Surroundings& surroundings);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_CONFIG_AUTOMATIC_SETTINGS_H_
