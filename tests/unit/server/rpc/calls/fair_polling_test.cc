#include "server/rpc/calls/fair_polling.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "server/rpc/calls/polling_threads.h"
#include "tests/testlib/peers/http2_peer.h"
#include "tests/unit/server/rpc/calls/reactions.h"

namespace tensord::server {
namespace {

// Ends every call at once.
class Answers final : public grpc::CallbackGenericService {
 public:
  bool was_called() const { return was_called_; }

 private:
  class Answer final : public grpc::ServerGenericBidiReactor {
   public:
    Answer() { Finish(grpc::Status::OK); }
    void OnDone() override { delete this; }
  };
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* /*context*/) override {
    was_called_ = true;
    return new Answer;
  }

  std::atomic<bool> was_called_{false};
};

// Reactions that each make the next ones due, like those of streams whose messages have come already.
TEST(FairPollingTest, AThreadThatHasReactionsWithoutEndTakesWhatOthersSend) {
  constexpr int kChains = 4, kMostReactions = 100'000;
  Answers answers;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterCallbackGenericService(&answers);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  {
    const PollingThreads one_polls;
    ASSERT_EQ(one_polls.num_awake(), 1);
    FairPolling polling;
    Reactions reactions;
    std::atomic<bool> is_sent{false};
    std::atomic<int> since_sent{0}, left{kChains};
    absl::Notification over;
    const std::function<void()> react = [&] {
      polling.React();
      if (is_sent) ++since_sent;
      if (!answers.was_called() && since_sent < kMostReactions) {
        reactions.Begin(react);
      } else if (--left == 0) {
        over.Notify();
      }
    };
    for (int i = 0; i < kChains; ++i) reactions.Begin(react);
    Http2Peer peer(absl::StrCat("127.0.0.1:", port));
    EXPECT_TRUE(peer.Send(Http2Peer::Call(1, "/a/b")));
    is_sent = true;
    EXPECT_TRUE(over.WaitForNotificationWithTimeout(kPatience));
    EXPECT_TRUE(answers.was_called());
    EXPECT_LT(since_sent, kMostReactions);
  }
  server->Shutdown();
}

}  // namespace
}  // namespace tensord::server
