#include "server/server_parts.h"

namespace tensord::server {

ServerParts::~ServerParts() {
  quarantine_watch.reset();
  if (executors == nullptr) return;  // what failed to be composed
  // A call may have ended for its client while the thread that told it so is still in the lines behind.
  readers.reset();
  operators.reset();
  compile_pool.reset();
  for (const auto& executor : executors->all()) executor->Stop();
  turns.reset();
  sessions.reset();  // which tell executors of the memory that they let go
  executors.reset();
  alarms.reset();
}

}  // namespace tensord::server
