#include "server/rpc/tensors/read_ahead.h"

#include <grpcpp/support/slice.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace tensord::server {
namespace {

using Found = ReadAhead::Found;

void Fill(const std::string& bytes, grpc::ByteBuffer* to) {
  const grpc::Slice slice(bytes);
  *to = grpc::ByteBuffer(&slice, 1);
}

std::string Text(const grpc::ByteBuffer& bytes) {
  grpc::Slice slice;
  EXPECT_TRUE(bytes.DumpToSingleSlice(&slice).ok());
  return {reinterpret_cast<const char*>(slice.begin()), slice.size()};
}

TEST(ReadAheadTest, ReadsUntilEnoughWaits) {
  ReadAhead ahead;
  grpc::ByteBuffer message;
  Fill("0", ahead.next());
  EXPECT_TRUE(ahead.Push(true));
  ReadAhead::Step step = ahead.Begin(&message);
  EXPECT_EQ(step.found, Found::kMessage);
  EXPECT_FALSE(step.reads) << "a read is under way";
  EXPECT_EQ(Text(message), "0");
  for (size_t i = 1; i <= ReadAhead::kMost; ++i) {
    Fill(std::to_string(i), ahead.next());
    EXPECT_EQ(ahead.Push(true), i < ReadAhead::kMost);
    grpc::ByteBuffer other;
    EXPECT_EQ(ahead.Begin(&other).found, Found::kNothing) << "somebody works";
  }
  step = ahead.Continue(&message);
  EXPECT_EQ(step.found, Found::kMessage);
  EXPECT_TRUE(step.reads) << "there is room again";
  EXPECT_EQ(Text(message), "1");
}

TEST(ReadAheadTest, AMessageWithoutRoomIsTheLast) {
  ReadAhead ahead;
  grpc::ByteBuffer message;
  Fill("a", ahead.next());
  EXPECT_TRUE(ahead.Push(true));
  EXPECT_FALSE(ahead.Push(true, absl::ResourceExhaustedError("no room")));
  EXPECT_TRUE(ahead.Begin(&message).refused.ok());
  const ReadAhead::Step last = ahead.Continue(&message);
  EXPECT_EQ(last.found, Found::kMessage);
  EXPECT_FALSE(last.reads);
  EXPECT_FALSE(last.refused.ok());
}

TEST(ReadAheadTest, TheEndComesOnceAndAfterEverything) {
  ReadAhead ahead;
  grpc::ByteBuffer message;
  Fill("a", ahead.next());
  EXPECT_TRUE(ahead.Push(true));
  EXPECT_FALSE(ahead.Push(false));
  EXPECT_EQ(ahead.Begin(&message).found, Found::kMessage);
  EXPECT_EQ(ahead.Continue(&message).found, Found::kEnd);
  EXPECT_EQ(ahead.Begin(&message).found, Found::kNothing);
}

TEST(ReadAheadTest, WhoDoesNotComeBackEndsTheWork) {
  ReadAhead ahead;
  grpc::ByteBuffer message;
  Fill("a", ahead.next());
  ahead.Push(true);
  EXPECT_EQ(ahead.Begin(&message).found, Found::kMessage);
  ahead.Push(false);
  EXPECT_EQ(ahead.Begin(&message).found, Found::kNothing);
}

// Works as the transport does: each read is answered on a thread of its own, while others still work.
TEST(ReadAheadTest, OneWorksAtATimeAndInOrder) {
  constexpr int kMessages = 2000;
  ReadAhead ahead;
  std::atomic<int> reads_due = 1, at_work = 0;
  std::atomic<bool> is_over = false;
  int sent = 0;  // of the read that is under way
  std::vector<std::string> taken;
  const auto react = [&] {
    while (!is_over) {
      int due = reads_due;
      if (due == 0 || !reads_due.compare_exchange_strong(due, due - 1)) {
        std::this_thread::yield();
        continue;
      }
      EXPECT_EQ(due, 1) << "one read at a time";
      const bool ok = sent < kMessages;
      if (ok) Fill(std::to_string(sent++), ahead.next());
      if (ahead.Push(ok)) ++reads_due;
      grpc::ByteBuffer message;
      ReadAhead::Step step = ahead.Begin(&message);
      for (; step.found == Found::kMessage; step = ahead.Continue(&message)) {
        if (step.reads) ++reads_due;
        EXPECT_EQ(++at_work, 1);
        taken.push_back(Text(message));
        --at_work;
      }
      if (step.found == Found::kEnd) is_over = true;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back(react);
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(taken.size(), static_cast<size_t>(kMessages));
  for (int i = 0; i < kMessages; ++i) EXPECT_EQ(taken[static_cast<size_t>(i)], std::to_string(i));
}

}  // namespace
}  // namespace tensord::server
