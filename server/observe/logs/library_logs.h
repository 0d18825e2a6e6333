#ifndef TENSORD_SERVER_OBSERVE_LOGS_LIBRARY_LOGS_H_
#define TENSORD_SERVER_OBSERVE_LOGS_LIBRARY_LOGS_H_

#include <cstdint>

namespace tensord::server {

// Turns gRPC's lines on standard error into JSON lines too: at most some a second, and none that its reader has no room
// for. Silences Protocol Buffers, whose complaints about a request go to the client that sent it. For the whole
// process; before the first server is built.
void TakeOverLibraryLogs();

// Returns the number of errors that gRPC has reported since. Thread-safe.
int64_t CountGrpcErrors();

}  // namespace tensord::server

#endif  // TENSORD_SERVER_OBSERVE_LOGS_LIBRARY_LOGS_H_
