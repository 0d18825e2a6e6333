#ifndef TENSORD_SERVER_CONNECTION_LINES_H_
#define TENSORD_SERVER_CONNECTION_LINES_H_

#include <cstdint>
#include <string>

#include "server/config/server_config.pb.h"
#include "server/connections/connection_places.h"
#include "server/connections/frame_meter.h"
#include "server/observe/logs/log.h"

namespace tensord::server {

// The log's lines on connections. Thread-safe. The log and the places for calls must outlive it.
class ConnectionLines {
 public:
  ConnectionLines(Log* log, const ConnectionPlaces* connections) : log_(log), connections_(connections) {}

  // Logs a bound below the configured one.
  void TellBound(const ServerConfig& config) const;
  // Logs connections that found no place,
  void TellRefused(int64_t refused) const;
  // and connections that cost too much: their number, and the last of them.
  void TellEnded(ConnectionExcess excess, const std::string& peer, int64_t ended) const;

 private:
  Log* const log_;
  const ConnectionPlaces* const connections_;
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_CONNECTION_LINES_H_
