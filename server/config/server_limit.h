#ifndef TENSORD_SERVER_CONFIG_SERVER_LIMIT_H_
#define TENSORD_SERVER_CONFIG_SERVER_LIMIT_H_

#include <string>

#include "server/config/live_value.h"

namespace tensord::server {

// A limit beside those of graphs, under the name that refusals and GetServerInfo give it.
struct ServerLimit {
  std::string name;
  LiveInt64 value;  // changes with a reload
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_CONFIG_SERVER_LIMIT_H_
