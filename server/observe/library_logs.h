#ifndef TENSORD_SERVER_OBSERVE_LIBRARY_LOGS_H_
#define TENSORD_SERVER_OBSERVE_LIBRARY_LOGS_H_

namespace tensord::server {

// Makes what gRPC writes on standard error JSON lines too, and silences Protocol Buffers, whose complaints about a
// request go to the client that sent it. For the whole process; before the first server is built.
void TakeOverLibraryLogs();

}  // namespace tensord::server

#endif  // TENSORD_SERVER_OBSERVE_LIBRARY_LOGS_H_
