#ifndef TENSORD_SERVER_LIFECYCLE_CONNECTION_EXCESS_H_
#define TENSORD_SERVER_LIFECYCLE_CONNECTION_EXCESS_H_

#include <cstdint>

namespace tensord::server {

// Why a connection is ended: its client sends more headers or takes back more calls than one may, or makes more calls
// without acknowledging the server's settings, or does not read its answers.
enum class ConnectionExcess : uint8_t { kNone, kHeaders, kCancels, kSettings, kUnread };

}  // namespace tensord::server

#endif  // TENSORD_SERVER_LIFECYCLE_CONNECTION_EXCESS_H_
