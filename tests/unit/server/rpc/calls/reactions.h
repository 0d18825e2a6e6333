#ifndef TENSORD_TESTS_UNIT_SERVER_RPC_CALLS_REACTIONS_H_
#define TENSORD_TESTS_UNIT_SERVER_RPC_CALLS_REACTIONS_H_

#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

namespace tensord::server {

inline constexpr absl::Duration kPatience = absl::Seconds(30);

// Runs reactions on gRPC's threads, as those of calls run. May be asked by one of them too. The destructor waits for
// them.
class Reactions {
 public:
  ~Reactions() {
    while (running_ > 0) std::this_thread::yield();
  }
  // Tells whether it was over in time.
  bool Run(const std::function<void()>& reaction) { return Begin(reaction)->WaitForNotificationWithTimeout(kPatience); }
  std::shared_ptr<absl::Notification> Begin(std::function<void()> reaction) {
    ++running_;
    auto call = std::make_shared<Call>();
    const auto over = std::make_shared<absl::Notification>();
    const grpc::Slice slice("?");
    call->request = grpc::ByteBuffer(&slice, 1);
    grpc::GenericStub(nowhere_).UnaryCall(
        &call->context, "/", grpc::StubOptions(), &call->request, &call->response,
        [this, call, over, reaction = std::move(reaction)](const grpc::Status&) mutable {
          reaction();
          // Its context shares the channel. gRPC's threads end with the last channel,
          // whose owner waits for them, and so must not be one of them.
          call.reset();
          over->Notify();
          --running_;
        });
    return over;
  }

 private:
  struct Call {
    grpc::ClientContext context;
    grpc::ByteBuffer request, response;
  };
  std::atomic<int> running_{0};
  const std::shared_ptr<grpc::Channel> nowhere_ = grpc::CreateChannel("", nullptr);
};

}  // namespace tensord::server

#endif  // TENSORD_TESTS_UNIT_SERVER_RPC_CALLS_REACTIONS_H_
