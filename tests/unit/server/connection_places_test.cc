#include "server/lifecycle/connection_places.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <vector>

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

TEST(ConnectionPlacesTest, WhatIsClosedHasNoPlace) {
  ConnectionPlaces places(2);
  Pair a, b;
  EXPECT_TRUE(places.Take(a.one()));
  EXPECT_TRUE(places.Take(a.other()));
  EXPECT_FALSE(places.Take(b.one()));
  EXPECT_EQ(places.stats().open, 2);
  EXPECT_EQ(places.stats().refused, 1);
  a.Close();
  EXPECT_TRUE(places.Take(b.one()));
  EXPECT_EQ(places.stats().open, 1);
  EXPECT_EQ(places.stats().refused, 1);
}

TEST(ConnectionPlacesTest, ANumberThatIsUsedAgainIsAnotherConnection) {
  ConnectionPlaces places(2);
  int number = -1;
  {
    const Pair gone;
    number = gone.one();
    EXPECT_TRUE(places.Take(number));
    EXPECT_TRUE(places.Take(gone.other()));
  }
  const Pair next;  // somebody else's, with the same numbers
  ASSERT_EQ(next.one(), number);
  EXPECT_EQ(places.stats().open, 0);
  EXPECT_TRUE(places.Take(next.one()));
  EXPECT_EQ(places.stats().open, 1);
}

TEST(ConnectionPlacesTest, WhoIsThereStaysWhenThereAreFewer) {
  ConnectionPlaces places(3);
  Pair a, b;
  EXPECT_TRUE(places.Take(a.one()));
  EXPECT_TRUE(places.Take(a.other()));
  places.SetMost(1);
  EXPECT_EQ(places.most(), 1);
  EXPECT_EQ(places.stats().open, 2);
  EXPECT_FALSE(places.Take(b.one()));
  a.Close();
  EXPECT_TRUE(places.Take(b.one()));
}

}  // namespace
}  // namespace tensord::server
