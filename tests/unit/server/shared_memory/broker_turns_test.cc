#include "server/shared_memory/broker_turns.h"

#include <string>
#include <thread>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tensord::server {
namespace {

BrokerRequest RequestOf(const std::string& tenant, int connection, int64_t size_bytes) {
  BrokerRequest request{.connection = connection};
  request.wanted = {.tenant = tenant, .size_bytes = size_bytes, .freed = ""};
  return request;
}

constexpr int64_t kLarge = BrokerTurns::kSmallBytes + 1;

TEST(BrokerTurnsTest, TenantsTakeTurns) {
  BrokerTurns turns;
  for (const int connection : {1, 2, 3}) turns.Push(RequestOf("many", connection, kLarge));
  turns.Push(RequestOf("one", 4, kLarge));
  turns.Push(RequestOf("a", 5, kLarge));
  std::vector<int> order;
  for (int i = 0; i < 5; ++i) order.push_back(turns.Take(false)->connection);
  EXPECT_THAT(order, ::testing::ElementsAre(5, 1, 4, 2, 3));
}

TEST(BrokerTurnsTest, WhoDoesSmallOnesWaitsForNoLargeOne) {
  BrokerTurns turns;
  turns.Push(RequestOf("a", 1, kLarge));
  turns.Push(RequestOf("a", 2, BrokerTurns::kSmallBytes));
  EXPECT_EQ(turns.Take(true)->connection, 2) << "also behind a large one of the same tenant";
  std::thread small([&turns] { EXPECT_EQ(turns.Take(true)->connection, 3); });
  turns.Push(RequestOf("b", 3, 0));
  small.join();
  EXPECT_EQ(turns.Take(false)->connection, 1);
}

TEST(BrokerTurnsTest, TheEndWakesAndReturnsWhatIsLeft) {
  BrokerTurns turns;
  turns.Push(RequestOf("a", 1, kLarge));
  std::thread waits([&turns] { EXPECT_FALSE(turns.Take(true).has_value()); });
  EXPECT_EQ(turns.Close().size(), 1u);
  waits.join();
  EXPECT_FALSE(turns.Take(false).has_value());
}

}  // namespace
}  // namespace tensord::server
