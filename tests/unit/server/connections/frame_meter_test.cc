#include "server/connections/frame_meter.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"
#include "tests/testlib/peers/http2_peer.h"

namespace tensord::server {
namespace {

using Clock = FrameMeter::Clock;

constexpr char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr FrameLimits kLimits = {.header_bytes = 64 << 10,
                                 .cancels_at_once = 10,
                                 .cancels_per_second = 10,
                                 .early_calls = 3,
                                 .early_header_bytes = 1000};
const std::string* const kAcknowledgement = new std::string(Http2Peer::Frame(Http2Peer::kSettings, 1, 0, ""));

class FrameMeterTest : public ::testing::Test {
 protected:
  FrameMeterTest() {
    meter_.Sends();
    EXPECT_EQ(Read(kPreface + *kAcknowledgement), ConnectionExcess::kNone);
  }

  ConnectionExcess Read(const std::string& bytes) {
    return meter_.Read(bytes, now_, [this] { return reads_; });
  }
  // How many of them are within the limits, up to that many.
  int Fit(const std::string& frame, int most) {
    for (int i = 0; i < most; ++i) {
      if (Read(frame) != ConnectionExcess::kNone) return i;
    }
    return most;
  }

  Clock::time_point now_ = Clock::now();
  bool reads_ = true;
  FrameMeter meter_{kLimits, now_};
};

TEST_F(FrameMeterTest, HeadersOfOneCallAreBoundTogether) {
  const std::string part(10 << 10, 'x');
  for (uint32_t call = 1; call < 200; call += 2) {
    EXPECT_EQ(Read(Http2Peer::Frame(Http2Peer::kHeaders, 0, call, part)), ConnectionExcess::kNone);
    EXPECT_EQ(Fit(Http2Peer::Frame(Http2Peer::kContinuation, 0, call, part), 5), 5);
  }
  EXPECT_EQ(Read(Http2Peer::Frame(Http2Peer::kHeaders, 0, 201, part)), ConnectionExcess::kNone);
  EXPECT_EQ(Fit(Http2Peer::Frame(Http2Peer::kContinuation, 0, 201, part), 100), 5);
  EXPECT_EQ(Read(Http2Peer::Frame(Http2Peer::kHeaders, 0, 203, "")), ConnectionExcess::kHeaders) << "it stays so";
}

TEST_F(FrameMeterTest, EmptyPartsOfHeadersAreBoundToo) {
  EXPECT_EQ(Read(Http2Peer::Frame(Http2Peer::kHeaders, 0, 1, "")), ConnectionExcess::kNone);
  EXPECT_LT(Fit(Http2Peer::Frame(Http2Peer::kContinuation, 0, 1, ""), 100), 20);
}

TEST_F(FrameMeterTest, HeadersThatAreOnlyAnnouncedCount) {
  const std::string frame = Http2Peer::Frame(Http2Peer::kHeaders, 0, 1, std::string(1 << 20, 'x'));
  EXPECT_EQ(Read(frame.substr(0, 9)), ConnectionExcess::kHeaders);
}

TEST_F(FrameMeterTest, CancelsAreBoundAtOnceAndASecond) {
  const std::string reset = Http2Peer::Frame(Http2Peer::kReset, 0, 1, std::string(4, '\0'));
  EXPECT_EQ(Fit(reset, 10), 10);
  now_ += std::chrono::milliseconds(500);
  EXPECT_EQ(Fit(reset, 5), 5);
  now_ += std::chrono::hours(1);
  EXPECT_EQ(Fit(reset, 100), 10) << "not more than at once";
}

TEST_F(FrameMeterTest, WhoDoesNotReadGetsNoTime) {
  const std::string reset = Http2Peer::Frame(Http2Peer::kReset, 0, 1, std::string(4, '\0'));
  reads_ = false;
  EXPECT_EQ(Fit(reset, 9), 9);
  now_ += std::chrono::hours(1);
  reads_ = true;
  EXPECT_EQ(Fit(reset, 5), 5) << "until it reads";
  reads_ = false;
  now_ += std::chrono::hours(1);
  EXPECT_LE(Fit(reset, 100), 5);
}

// Answers lie unread while it takes many calls back, and are read while it makes others.
TEST_F(FrameMeterTest, WhoReadsBetweenBurstsGetsAllTheTime) {
  const std::string reset = Http2Peer::Frame(Http2Peer::kReset, 0, 1, std::string(4, '\0'));
  uint32_t stream = 1;
  for (int burst = 0; burst < 100; ++burst) {
    now_ += std::chrono::milliseconds(500);
    reads_ = true;
    for (int i = 0; i < 5; ++i, stream += 2) {
      EXPECT_EQ(Read(Http2Peer::Frame(Http2Peer::kHeaders, 0, stream, "x")), ConnectionExcess::kNone);
    }
    reads_ = false;
    now_ += std::chrono::milliseconds(500);
    ASSERT_EQ(Fit(reset, 5), 5) << burst;
  }
}

TEST_F(FrameMeterTest, SettingsCountAsCancelsAndTheirAcknowledgementsDoNot) {
  EXPECT_EQ(Fit(*kAcknowledgement, 100), 100);
  EXPECT_EQ(Fit(Http2Peer::Frame(Http2Peer::kSettings, 0, 0, std::string(6, '\0')), 1000), 10);
}

TEST_F(FrameMeterTest, EightPingsCountAsACancelAndTheirAnswersDoNot) {
  EXPECT_EQ(Fit(Http2Peer::Frame(Http2Peer::kPing, 1, 0, std::string(8, '\0')), 100), 100);
  EXPECT_EQ(Fit(Http2Peer::Frame(Http2Peer::kPing, 0, 0, std::string(8, '\0')), 1000), 80);
}

TEST_F(FrameMeterTest, HeadersOfCallsThatBeganCountAsCancels) {
  for (uint32_t stream = 1; stream < 200; stream += 2) {
    EXPECT_EQ(Read(Http2Peer::Frame(Http2Peer::kHeaders, Http2Peer::kEndHeaders, stream, "x")),
              ConnectionExcess::kNone);
  }
  EXPECT_EQ(Fit(Http2Peer::Frame(Http2Peer::kHeaders, Http2Peer::kEndHeaders, 7, "x"), 100), 10);
  EXPECT_EQ(Read(""), ConnectionExcess::kCancels);
}

// Frames that no flow control bounds.
std::vector<std::string> FramesWithoutContent() {
  const std::string number(4, '\1'), eight(8, '\0');
  return {*kAcknowledgement,
          Http2Peer::Frame(Http2Peer::kPing, 1, 0, eight),
          Http2Peer::Frame(Http2Peer::kWindow, 0, 0, number),
          Http2Peer::Frame(Http2Peer::kPriority, 0, 99, std::string(5, '\0')),
          Http2Peer::Frame(Http2Peer::kGoAway, 0, 0, eight),
          Http2Peer::Frame(Http2Peer::kUnknown, 0, 3, ""),
          Http2Peer::Frame(Http2Peer::kData, 0, 1, ""),
          Http2Peer::Frame(Http2Peer::kData, 1, 1, "")};
}

// The limits of cancels are low; those of frames never are.
TEST_F(FrameMeterTest, FramesWithoutContentAreBoundAtOnceAndASecond) {
  constexpr int kAtOnce = 20'000, kASecond = 100'000;
  now_ += std::chrono::hours(1);
  for (const std::string& frame : FramesWithoutContent()) {
    EXPECT_EQ(Fit(frame, kAtOnce * 95 / 100), kAtOnce * 95 / 100) << absl::CHexEscape(frame);
    reads_ = !reads_;
    now_ += std::chrono::seconds(1);
  }
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(Fit(FramesWithoutContent()[5], kASecond / 10), kASecond / 10);
    now_ += std::chrono::milliseconds(100);
  }
  EXPECT_LE(Fit(FramesWithoutContent()[2], 2 * kAtOnce), kAtOnce);
  EXPECT_EQ(meter_.Read(*kAcknowledgement, now_ + std::chrono::hours(1), [] { return true; }),
            ConnectionExcess::kFrames)
      << "it stays so";
}

TEST_F(FrameMeterTest, WhoMayCancelMoreMaySendMoreFrames) {
  FrameLimits limits = kLimits;
  limits.cancels_at_once = 1000;
  FrameMeter meter(limits, now_);
  const std::string unknown = Http2Peer::Frame(Http2Peer::kUnknown, 0, 3, "");
  EXPECT_EQ(meter.Read(kPreface, now_, [] { return true; }), ConnectionExcess::kNone);
  for (int i = 0; i < 32'000; ++i) {
    ASSERT_EQ(meter.Read(unknown, now_, [] { return true; }), ConnectionExcess::kNone) << i;
  }
  EXPECT_EQ(meter.Read(unknown, now_, [] { return true; }), ConnectionExcess::kFrames);
}

TEST_F(FrameMeterTest, LargeFramesWithoutContentCountByTheirBytes) {
  const std::string frame = Http2Peer::Frame(Http2Peer::kUnknown, 0, 3, std::string(16 << 10, 'x'));
  EXPECT_EQ(Fit(frame, 1000), 20'000 / 33);
}

// Each part of a message that is cut into bytes is kept for itself.
TEST_F(FrameMeterTest, DataOfAFewBytesIsHalfAFrame) {
  EXPECT_EQ(Fit(Http2Peer::Frame(Http2Peer::kData, 0, 1, std::string(128, 'x')), 100'000), 100'000);
  EXPECT_EQ(Fit(Http2Peer::Frame(Http2Peer::kData, 0, 1, "x"), 100'000), 40'000 - 2);
}

// A client that reads much opens its windows again and again.
TEST_F(FrameMeterTest, WhatIsSentMayBeAnswered) {
  const std::string opened = Http2Peer::Frame(Http2Peer::kWindow, 0, 0, std::string(4, '\1'));
  for (int i = 0; i < 1000; ++i) {
    meter_.Sent(16 << 10);
    ASSERT_EQ(Fit(opened, 250), 250) << i;
  }
}

// A meter of a client that has said nothing yet.
class EarlyFrameMeterTest : public ::testing::Test {
 protected:
  EarlyFrameMeterTest() { ReadEarly(kPreface); }
  ConnectionExcess ReadEarly(const std::string& bytes) {
    return early_.Read(bytes, now_, [] { return true; });
  }
  ConnectionExcess Call(uint32_t stream, size_t bytes = 10) {
    return ReadEarly(Http2Peer::Frame(Http2Peer::kHeaders, Http2Peer::kEndHeaders, stream, std::string(bytes, 'x')));
  }

  const Clock::time_point now_ = Clock::now();
  FrameMeter early_{kLimits, now_};
};

TEST_F(EarlyFrameMeterTest, CallsAreBoundUntilTheSettingsAreAcknowledged) {
  for (const uint32_t stream : {1, 3, 5, 3}) EXPECT_EQ(Call(stream), ConnectionExcess::kNone);
  EXPECT_EQ(ReadEarly(Http2Peer::Frame(Http2Peer::kReset, 0, 3, std::string(4, '\0'))), ConnectionExcess::kNone);
  EXPECT_EQ(Call(7), ConnectionExcess::kNone) << "for the one that was taken back";
  EXPECT_EQ(ReadEarly(Http2Peer::Frame(Http2Peer::kReset, 0, 9, std::string(4, '\0'))), ConnectionExcess::kNone);
  EXPECT_EQ(Call(9), ConnectionExcess::kSettings) << "one that was not made cannot be";
}

TEST_F(EarlyFrameMeterTest, CallsAreNotBoundAfterwards) {
  EXPECT_EQ(Call(1), ConnectionExcess::kNone);
  early_.Sends();
  EXPECT_EQ(ReadEarly(*kAcknowledgement), ConnectionExcess::kNone);
  for (uint32_t stream = 3; stream < 1000; stream += 2) EXPECT_EQ(Call(stream, 500), ConnectionExcess::kNone);
}

TEST_F(EarlyFrameMeterTest, WhatHasNotBeenSentIsNotAcknowledged) {
  EXPECT_EQ(ReadEarly(*kAcknowledgement), ConnectionExcess::kNone);
  early_.Sends();
  for (const uint32_t stream : {1, 3, 5}) EXPECT_EQ(Call(stream), ConnectionExcess::kNone);
  EXPECT_EQ(Call(7), ConnectionExcess::kSettings);
}

TEST_F(EarlyFrameMeterTest, HeadersOfAllCallsAreBoundTogether) {
  EXPECT_EQ(Call(1, 600), ConnectionExcess::kNone);
  EXPECT_EQ(Call(3, 400), ConnectionExcess::kNone);
  EXPECT_EQ(Call(5, 1), ConnectionExcess::kSettings);
}

TEST_F(FrameMeterTest, BytesMayComeInAnyParts) {
  // Data that looks like frames.
  const std::string reset = Http2Peer::Frame(Http2Peer::kReset, 0, 1, std::string(4, '\0'));
  std::string data, bytes = kPreface + *kAcknowledgement;
  for (int i = 0; i < 100; ++i) data += reset;
  for (int i = 0; i < 5; ++i) bytes += Http2Peer::Frame(Http2Peer::kData, 0, 1, data) + reset + reset;
  for (const size_t part : std::vector<size_t>{1, 2, 7, 9, 13, 1000, 100000}) {
    FrameMeter meter(kLimits, now_);
    meter.Sends();
    ConnectionExcess excess = ConnectionExcess::kNone;
    for (size_t i = 0; i < bytes.size(); i += part) {
      excess = std::max(excess, meter.Read(bytes.substr(i, part), now_, [] { return true; }));
    }
    EXPECT_EQ(excess, ConnectionExcess::kNone) << part;
    EXPECT_EQ(meter.Read(reset, now_, [] { return true; }), ConnectionExcess::kCancels) << part;
  }
}

}  // namespace
}  // namespace tensord::server
