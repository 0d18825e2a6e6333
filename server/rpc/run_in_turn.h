#ifndef TENSORD_SERVER_RPC_RUN_IN_TURN_H_
#define TENSORD_SERVER_RPC_RUN_IN_TURN_H_

#include <functional>

namespace tensord::server {

// Runs the step here and now; inside another such step, as soon as that one has returned. So a chain in which each step
// sets off the next takes no more stack than one of them. Thread-safe; on the calling thread.
void RunInTurn(std::function<void()> step);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_RUN_IN_TURN_H_
