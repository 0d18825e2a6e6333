#include "server/connections/metered_connections.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/testlib/peers/http2_peer.h"

namespace tensord::server {
namespace {

// The two ends of a connection, closed with the object.
struct Ends {
  Ends() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, of.data()), 0); }
  ~Ends() {
    for (const int end : of) close(end);
  }
  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;

  std::array<int, 2> of = {-1, -1};
};

// Receives as gRPC does; returns the bytes that came, in pieces. Empty with errno if none did.
std::string ReceiveInPieces(int descriptor, int flags = 0) {
  std::string first(5, '\0'), second(1 << 16, '\0');
  std::array<iovec, 2> parts = {iovec{first.data(), first.size()}, iovec{second.data(), second.size()}};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  const ssize_t count = recvmsg(descriptor, &message, flags);
  return count < 0 ? "" : (first + second).substr(0, static_cast<size_t>(count));
}

class MeteredConnectionsTest : public ::testing::Test {
 protected:
  void Add(int descriptor) { MeteredConnections::OfProcess().Add(descriptor, false, "somebody", bounds_); }
  // Sends as gRPC does: as much as the socket takes; -1 with errno if it takes nothing.
  static ssize_t SendOnce(int descriptor, std::string bytes) {
    iovec part{bytes.data(), bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    return sendmsg(descriptor, &message, MSG_DONTWAIT);
  }
  static void Fill(int descriptor) {
    while (SendOnce(descriptor, std::string(1 << 20, 'x')) > 0) {
    }
    EXPECT_EQ(errno, EAGAIN);
  }
  static bool IsOver(int descriptor) {
    pollfd over{.fd = descriptor, .events = POLLRDHUP, .revents = 0};
    return poll(&over, 1, 0) > 0;
  }
  static void Send(int descriptor, const std::string& bytes) {
    EXPECT_EQ(send(descriptor, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }
  static std::string Flood() {
    std::string bytes = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    for (int i = 0; i < 4; ++i) bytes += Http2Peer::Frame(Http2Peer::kReset, 0, 1, std::string(4, '\0'));
    return bytes;
  }

  const std::shared_ptr<ConnectionBounds> bounds_ =
      std::make_shared<ConnectionBounds>(FrameLimits{.header_bytes = 1000,
                                                     .cancels_at_once = 3,
                                                     .cancels_per_second = 3,
                                                     .early_calls = 1,
                                                     .early_header_bytes = 1000},
                                         std::chrono::seconds(30));
};

TEST_F(MeteredConnectionsTest, WhatGoesBeyondItsBoundsIsReset) {
  std::vector<std::string> told;
  bounds_->SetTell([&told](ConnectionExcess excess, const std::string& peer, int64_t ended) {
    EXPECT_EQ(excess, ConnectionExcess::kCancels);
    EXPECT_EQ(ended, 1);
    told.push_back(peer);
  });
  Ends ends;
  Add(ends.of[0]);
  Send(ends.of[1], Flood().substr(0, 40));
  EXPECT_EQ(ReceiveInPieces(ends.of[0]), Flood().substr(0, 40));
  Send(ends.of[1], Flood().substr(40));
  EXPECT_EQ(ReceiveInPieces(ends.of[0]), "");
  EXPECT_EQ(errno, ECONNRESET);
  EXPECT_EQ(ReceiveInPieces(ends.of[1]), "") << "the other side sees the end";
  EXPECT_EQ(bounds_->ended().for_cancels, 1);
  EXPECT_EQ(told, std::vector<std::string>{"somebody"});
  bounds_->SetTell(nullptr);
}

TEST_F(MeteredConnectionsTest, OnlyWhatWasSentIsAcknowledged) {
  const std::string calls =
      Http2Peer::Frame(Http2Peer::kHeaders, 0, 1, "") + Http2Peer::Frame(Http2Peer::kHeaders, 0, 3, "");
  const std::string acknowledges =
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Http2Peer::Frame(Http2Peer::kSettings, 1, 0, "");
  for (const bool has_sent : {true, false}) {
    Ends ends;
    Add(ends.of[0]);
    if (has_sent) {
      EXPECT_EQ(SendOnce(ends.of[0], "x"), 1);
    }
    Send(ends.of[1], acknowledges + calls);
    EXPECT_EQ(ReceiveInPieces(ends.of[0]), has_sent ? acknowledges + calls : "");
  }
  EXPECT_EQ(bounds_->ended().for_settings, 1);
}

TEST_F(MeteredConnectionsTest, BytesThatAreLookedAtTwiceCountOnce) {
  Ends ends;
  Add(ends.of[0]);
  const std::string bytes = Flood().substr(0, Flood().size() - 13);
  Send(ends.of[1], bytes);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ReceiveInPieces(ends.of[0], MSG_PEEK), bytes);
  EXPECT_EQ(ReceiveInPieces(ends.of[0]), bytes);
  EXPECT_EQ(bounds_->ended().for_cancels, 0);
}

TEST_F(MeteredConnectionsTest, AnotherSocketOfTheSameNumberIsNobodysBusiness) {
  int number = -1;
  {
    const Ends gone;
    number = gone.of[0];
    Add(number);
  }
  const Ends next;
  ASSERT_EQ(next.of[0], number);
  for (int i = 0; i < 3; ++i) {
    Send(next.of[1], Flood());
    EXPECT_EQ(ReceiveInPieces(next.of[0]), Flood());
  }
  EXPECT_EQ(bounds_->ended().for_cancels, 0);
}

TEST_F(MeteredConnectionsTest, AClientThatReadsNothingLosesItsConnection) {
  const Ends idle, read, unread;
  for (const Ends* ends : {&idle, &read, &unread}) Add(ends->of[0]);
  Fill(read.of[0]);
  Fill(unread.of[0]);
  const auto now = SendProgress::Clock::now();
  MeteredConnections::OfProcess().EndUnread(now + std::chrono::seconds(29));
  EXPECT_FALSE(IsOver(unread.of[1]));
  while (!ReceiveInPieces(read.of[1], MSG_DONTWAIT).empty()) {
  }
  ASSERT_GT(SendOnce(read.of[0], "the rest"), 0);
  MeteredConnections::OfProcess().EndUnread(now + std::chrono::seconds(31));
  EXPECT_TRUE(IsOver(unread.of[1]));
  EXPECT_FALSE(IsOver(read.of[1])) << "it read in the meantime";
  EXPECT_FALSE(IsOver(idle.of[1])) << "nothing waits for it";
  EXPECT_EQ(bounds_->ended().for_unread, 1);
}

// Its socket has room again, as poll says it, only when three quarters of it are free.
TEST_F(MeteredConnectionsTest, ASlowReaderKeepsItsConnection) {
  const Ends ends;
  Add(ends.of[0]);
  Fill(ends.of[0]);
  auto now = SendProgress::Clock::now();
  MeteredConnections::OfProcess().EndUnread(now);
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(ReceiveInPieces(ends.of[1]).empty());  // 64 KiB
    if (i % 3 == 2) Fill(ends.of[0]);
    MeteredConnections::OfProcess().EndUnread(now += std::chrono::seconds(5));
    ASSERT_FALSE(IsOver(ends.of[1])) << i;
  }
  Fill(ends.of[0]);
  for (int i = 0; i < 7; ++i) MeteredConnections::OfProcess().EndUnread(now += std::chrono::seconds(5));
  EXPECT_TRUE(IsOver(ends.of[1])) << "it reads no more";
}

TEST(SendProgressTest, OnlyWhoTakesEnoughGetsMoreTime) {
  constexpr int64_t kEnough = SendProgress::kProgressBytes;
  const auto at = [](int seconds) { return SendProgress::Clock::time_point() + std::chrono::seconds(seconds); };
  SendProgress progress;
  EXPECT_FALSE(progress.is_stalled());
  progress.Sent(1'000'000, 400'000, at(0));
  progress.Looked(400'000, at(1));
  EXPECT_EQ(progress.Stalled(at(3)), std::chrono::seconds(3));
  progress.Looked(400'001 - kEnough, at(4));
  EXPECT_EQ(progress.Stalled(at(5)), std::chrono::seconds(5)) << "a few bytes are nothing";
  progress.Sent(600'000, 1, at(5));
  progress.Looked(400'001 - kEnough, at(6));
  EXPECT_EQ(progress.Stalled(at(8)), std::chrono::seconds(2)) << "one more was sent, and so taken";
  progress.Sent(599'999, 0, at(9));
  progress.Looked(400'001 - kEnough, at(9));
  EXPECT_EQ(progress.Stalled(at(10)), std::chrono::seconds(4));
  progress.Sent(500, 500, at(11));
  EXPECT_FALSE(progress.is_stalled());
  EXPECT_EQ(progress.Stalled(at(90)), SendProgress::Clock::duration::zero());
}

}  // namespace
}  // namespace tensord::server
