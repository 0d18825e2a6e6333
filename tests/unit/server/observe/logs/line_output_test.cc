#include "server/observe/logs/line_output.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>

#include "gtest/gtest.h"

namespace tensord::server {
namespace {

class LineOutputTest : public ::testing::Test {
 protected:
  LineOutputTest() {
    signal(SIGPIPE, SIG_IGN);
    EXPECT_EQ(pipe2(ends_.data(), O_CLOEXEC), 0);
    EXPECT_GE(fcntl(ends_[1], F_SETPIPE_SZ, 4096), 0);
  }
  ~LineOutputTest() override {
    for (const int end : ends_) close(end);
  }
  std::string Read() {
    char bytes[8192];
    const ssize_t count = read(ends_[0], bytes, sizeof(bytes));
    return {bytes, count < 0 ? 0 : static_cast<size_t>(count)};
  }

  std::array<int, 2> ends_ = {-1, -1};
};

TEST_F(LineOutputTest, LinesComeAsTheyWere) {
  LineOutput output(ends_[1]);
  output.Add("first");
  output.Add("");
  output.Write();
  output.Write();  // of which there is nothing
  EXPECT_EQ(Read(), "first\n\n");
  EXPECT_EQ(output.lost_lines(), 0);
}

TEST_F(LineOutputTest, ASlowReaderGetsAll) {
  LineOutput output(ends_[1]);
  std::string sent, got;
  for (int i = 0; i < 100; ++i) {
    const std::string line(static_cast<size_t>(i % 7 == 0 ? 9000 : 100 + i), static_cast<char>('a' + i % 26));
    sent += line + "\n";
    output.Add(line);
  }
  std::thread writer([&output] { output.Write(); });
  while (got.size() < sent.size()) got += Read();
  writer.join();
  EXPECT_EQ(got, sent);
  EXPECT_EQ(output.lost_lines(), 0);
}

TEST_F(LineOutputTest, WhatAReaderHasNotTakenAtTheEndIsLost) {
  LineOutput output(ends_[1]);
  for (int i = 0; i < 10; ++i) output.Add(std::string(2047, 'x'));
  output.EndBy(std::chrono::steady_clock::now() + std::chrono::milliseconds(10));
  output.Write();
  EXPECT_EQ(output.lost_lines(), 8) << "two have room in the pipe";
}

TEST_F(LineOutputTest, WhatTheSystemDoesNotTakeIsLost) {
  close(ends_[0]);
  ends_[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
  LineOutput closed(ends_[1]);
  closed.Add("a");
  closed.Add("b");
  closed.Write();
  EXPECT_EQ(closed.lost_lines(), 2);
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  LineOutput output(full);
  output.Add("a");
  output.Write();
  output.Add("b");
  output.Write();
  EXPECT_EQ(output.lost_lines(), 2);
  close(full);
}

}  // namespace
}  // namespace tensord::server
