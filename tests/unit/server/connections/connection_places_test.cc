#include "server/connections/connection_places.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace tensord::server {
namespace {

// Two sockets, closed with the object or before.
class Pair {
 public:
  Pair() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_.data()), 0); }
  ~Pair() { Close(); }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;
  void Close() {
    for (int& end : ends_) {
      if (end >= 0) close(end);
      end = -1;
    }
  }
  int one() const { return ends_[0]; }
  int other() const { return ends_[1]; }

 private:
  std::array<int, 2> ends_ = {-1, -1};
};

const ConnectionPeer kUnix;

ConnectionPeer Tcp(const std::string& address, int port) {
  return {.name = absl::StrCat("ipv4:", address, ":", port), .address = "ipv4:" + address, .text = ""};
}

bool IsOver(int descriptor) {
  char byte = 0;
  return recv(descriptor, &byte, 1, MSG_DONTWAIT) == 0;
}

TEST(ConnectionPlacesTest, WhatIsClosedHasNoPlace) {
  ConnectionPlaces places({.most = 2});
  Pair a, b;
  EXPECT_TRUE(places.Take(a.one(), kUnix));
  EXPECT_TRUE(places.Take(a.other(), kUnix));
  EXPECT_FALSE(places.Take(b.one(), kUnix));
  EXPECT_EQ(places.stats().open, 2);
  EXPECT_EQ(places.stats().refused, 1);
  a.Close();
  EXPECT_TRUE(places.Take(b.one(), kUnix));
  EXPECT_EQ(places.stats().open, 1);
  EXPECT_EQ(places.stats().refused, 1);
}

TEST(ConnectionPlacesTest, ANumberThatIsUsedAgainIsAnotherConnection) {
  ConnectionPlaces places({.most = 2});
  int number = -1;
  {
    const Pair gone;
    number = gone.one();
    EXPECT_TRUE(places.Take(number, kUnix));
    EXPECT_TRUE(places.Take(gone.other(), kUnix));
  }
  const Pair next;  // somebody else's, with the same numbers
  ASSERT_EQ(next.one(), number);
  EXPECT_EQ(places.stats().open, 0);
  EXPECT_TRUE(places.Take(next.one(), kUnix));
  EXPECT_EQ(places.stats().open, 1);
}

TEST(ConnectionPlacesTest, WhoIsThereStaysWhenThereAreFewer) {
  ConnectionPlaces places({.most = 3});
  Pair a, b;
  EXPECT_TRUE(places.Take(a.one(), kUnix));
  EXPECT_TRUE(places.Take(a.other(), kUnix));
  places.SetBounds({.most = 1});
  EXPECT_EQ(places.bounds().most, 1);
  EXPECT_EQ(places.stats().open, 2);
  EXPECT_FALSE(places.Take(b.one(), kUnix));
  a.Close();
  EXPECT_TRUE(places.Take(b.one(), kUnix));
}

TEST(ConnectionPlacesTest, TheOldestWithoutACallGoesForOneThatComes) {
  ConnectionPlaces places({.most = 3});
  Pair used, idle, second, third;
  EXPECT_TRUE(places.Take(used.one(), Tcp("192.0.2.1", 1)));
  EXPECT_TRUE(places.Take(idle.one(), Tcp("192.0.2.1", 2)));
  EXPECT_TRUE(places.Take(second.one(), Tcp("192.0.2.2", 1)));
  places.Admitted("ipv4:192.0.2.1:1");
  places.Admitted("ipv4:192.0.2.9:1");  // of whom there is none
  EXPECT_TRUE(places.Take(third.one(), Tcp("192.0.2.3", 1)));
  EXPECT_TRUE(IsOver(idle.one()));
  EXPECT_FALSE(IsOver(used.one()));
  EXPECT_FALSE(IsOver(second.one()));
  EXPECT_EQ(places.stats().unused, 1);
  places.Admitted("ipv4:192.0.2.2:1");
  places.Admitted("ipv4:192.0.2.3:1");
  Pair fourth;
  EXPECT_FALSE(places.Take(fourth.one(), Tcp("192.0.2.4", 1))) << "all are in use";
  EXPECT_EQ(places.stats().refused, 1);
  EXPECT_EQ(places.stats().open, 3);
}

TEST(ConnectionPlacesTest, AnAddressHasItsPartAndPaysWithItsOwn) {
  ConnectionPlaces places({.most = 4, .most_of_address = 2});
  Pair other, first, second, third;
  EXPECT_TRUE(places.Take(other.one(), Tcp("192.0.2.2", 1)));
  EXPECT_TRUE(places.Take(first.one(), Tcp("192.0.2.1", 1)));
  EXPECT_TRUE(places.Take(second.one(), Tcp("192.0.2.1", 2)));
  EXPECT_TRUE(places.Take(third.one(), Tcp("192.0.2.1", 3)));
  EXPECT_TRUE(IsOver(first.one()));
  EXPECT_FALSE(IsOver(other.one()));
  places.Admitted("ipv4:192.0.2.1:2");
  places.Admitted("ipv4:192.0.2.1:3");
  Pair fourth;
  EXPECT_FALSE(places.Take(fourth.one(), Tcp("192.0.2.1", 4)));
  EXPECT_FALSE(IsOver(other.one())) << "another address does not pay";
  second.Close();
  EXPECT_TRUE(places.Take(fourth.one(), Tcp("192.0.2.1", 4)));
}

TEST(ConnectionPlacesTest, UnixSocketsHaveAPart) {
  ConnectionPlaces places({.most = 3, .for_unix = 1});
  Pair first, second, third, local;
  EXPECT_TRUE(places.Take(first.one(), Tcp("192.0.2.1", 1)));
  EXPECT_TRUE(places.Take(second.one(), Tcp("192.0.2.1", 2)));
  places.Admitted("ipv4:192.0.2.1:1");
  places.Admitted("ipv4:192.0.2.1:2");
  EXPECT_FALSE(places.Take(third.one(), Tcp("192.0.2.1", 3)));
  EXPECT_TRUE(places.Take(local.one(), kUnix));
  EXPECT_FALSE(places.Take(local.other(), kUnix));
}

TEST(ConnectionPlacesTest, ShutDownEndsThoseThatAreOpen) {
  ConnectionPlaces places({.most = 3});
  Pair open, other;
  int number = -1;
  {
    const Pair gone;
    number = gone.one();
    EXPECT_TRUE(places.Take(number, kUnix));
  }
  EXPECT_TRUE(places.Take(open.one(), kUnix));
  const Pair next;  // somebody else's, with the number of one that is gone
  ASSERT_EQ(next.one(), number);
  places.ShutDown();
  EXPECT_TRUE(IsOver(open.one()));
  EXPECT_FALSE(IsOver(next.one()));
}

}  // namespace
}  // namespace tensord::server
