#ifndef TENSORD_SERVER_OBSERVE_RECORDS_BEGUN_CALLS_H_
#define TENSORD_SERVER_OBSERVE_RECORDS_BEGUN_CALLS_H_

#include <cstdint>

namespace tensord::server {

// Counts the calls that have begun at all servers of this process, also calls of health, of which the server itself is
// told nothing. Thread-safe; asks channelz, for metrics.
int64_t CountBegunCalls();

}  // namespace tensord::server

#endif  // TENSORD_SERVER_OBSERVE_RECORDS_BEGUN_CALLS_H_
