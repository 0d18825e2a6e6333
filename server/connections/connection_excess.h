#ifndef TENSORD_SERVER_CONNECTIONS_CONNECTION_EXCESS_H_
#define TENSORD_SERVER_CONNECTIONS_CONNECTION_EXCESS_H_

#include <cstdint>

namespace tensord::server {

// The reason to end a connection: its client sends more headers, takes back more calls or sends more frames without
// content than one may, makes more calls without acknowledging the server's settings, or does not read its answers.
enum class ConnectionExcess : uint8_t { kNone, kHeaders, kCancels, kFrames, kSettings, kUnread };

}  // namespace tensord::server

#endif  // TENSORD_SERVER_CONNECTIONS_CONNECTION_EXCESS_H_
