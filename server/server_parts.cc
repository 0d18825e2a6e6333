#include "server/server_parts.h"

namespace tensord::server {

ServerParts::~ServerParts() {
  quarantine_watch.reset();
  if (executors == nullptr) return;  // what failed to be composed
  // A call may have ended for its client while the thread that told it so is still in the lines behind.
  readers.reset();
  operators.reset();
  for (const auto& executor : executors->all()) executor->Stop();  // whose runs ask the pool for stages
  compile_pool.reset();
  turns.reset();
  sessions.reset();  // which tell executors of the memory that they let go
  executors.reset();
  alarms.reset();
}

}  // namespace tensord::server
