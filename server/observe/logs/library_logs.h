#ifndef TENSORD_SERVER_OBSERVE_LOGS_LIBRARY_LOGS_H_
#define TENSORD_SERVER_OBSERVE_LOGS_LIBRARY_LOGS_H_

#include <cstdint>

namespace tensord::server {

// Makes what gRPC writes on standard error JSON lines too, of which some a second at the most and none that its reader
// has no room for, and silences Protocol Buffers, whose complaints about a request go to the client that sent it. For
// the whole process; before the first server is built.
void TakeOverLibraryLogs();

// How many errors gRPC has told of since. Thread-safe.
int64_t CountGrpcErrors();

}  // namespace tensord::server

#endif  // TENSORD_SERVER_OBSERVE_LOGS_LIBRARY_LOGS_H_
