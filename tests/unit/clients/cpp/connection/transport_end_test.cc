// The memory of calls that the transport does not end in time.
#include "clients/cpp/connection/transport_end.h"

#include <memory>

#include "absl/time/time.h"
#include "clients/cpp/connection/steady_time.h"
#include "grpcpp/alarm.h"
#include "grpcpp/completion_queue.h"
#include "gtest/gtest.h"

namespace tensord::client {
namespace {

TEST(TransportEnd, KeepsMemoryUntilTheTransportHasEndedTheCall) {
  struct Call {
    grpc::CompletionQueue queue;
    grpc::Alarm step;
  };
  auto call = std::make_shared<Call>();
  Call* const late = call.get();
  late->step.Set(&late->queue, ToGrpcDeadline(SteadyNow() + absl::Hours(1)), nullptr);
  const std::weak_ptr<Call> memory = call;
  KeepUntilEnded(std::move(call), &late->queue);
  EXPECT_EQ(FreeEnded(), 1u);
  ASSERT_FALSE(memory.expired());
  late->step.Cancel();
  while (FreeEnded() != 0) {
  }
  EXPECT_TRUE(memory.expired());
}

}  // namespace
}  // namespace tensord::client
