#include "server/rpc/calls/fair_polling.h"

#include <grpc/support/time.h>

namespace tensord::server {

FairPolling::~FairPolling() {
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
  }
}

void FairPolling::React() {
  thread_local int reactions = 0;
  if (++reactions % kReactions != 0) return;
  void* tag = nullptr;
  bool ok = false;
  queue_.AsyncNext(&tag, &ok, gpr_inf_past(GPR_CLOCK_MONOTONIC));
}

}  // namespace tensord::server
