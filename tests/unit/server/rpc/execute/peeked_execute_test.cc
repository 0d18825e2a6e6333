#include "server/rpc/execute/peeked_execute.h"

#include <cstdint>
#include <optional>
#include <random>
#include <string>

#include "gtest/gtest.h"
#include "tensord/v1/compute.pb.h"
#include "tests/testlib/peers/byte_slices.h"
#include "tests/testlib/peers/bytes_field.h"
#include "tests/testlib/peers/received_execute_oracle.h"

namespace tensord::server {
namespace {

// Cut at random; also held to what protobuf reads.
std::optional<PeekedExecute> Peek(const std::string& bytes) {
  std::mt19937_64 random(bytes.size());
  for (int i = 0; i < 4; ++i) EXPECT_EQ(DifferenceFromProtobuf(bytes, &random), "");
  return PeekExecute(InSlices(bytes, &random));
}

const std::string& Digits() {
  static const auto* const digits = new std::string(Fingerprint::Of("a").ToHex());
  return *digits;
}

v1::ExecuteRequest OrdinaryRequest() {
  v1::ExecuteRequest request;
  request.set_request_id(uint64_t{1} << 40);
  request.set_fingerprint(Digits());
  request.add_arguments()->mutable_tensor()->set_data(std::string(9000, 'd'));
  request.add_arguments()->mutable_tensor()->set_data("e");
  request.add_results()->set_delivery(v1::ResultOption::DELIVERY_INLINE);
  request.set_profile(true);
  return request;
}

TEST(PeekedExecuteTest, FindsWhatDecidesOfAPlace) {
  for (const int32_t priority : {0, 3, -3}) {
    v1::ExecuteRequest request = OrdinaryRequest();
    request.set_priority(priority);
    const auto peeked = Peek(request.SerializeAsString());
    ASSERT_TRUE(peeked.has_value());
    EXPECT_EQ(peeked->fingerprint, Fingerprint::Of("a"));
    EXPECT_EQ(peeked->priority, priority);
  }
}

TEST(PeekedExecuteTest, TheLastOfAFieldCounts) {
  const std::string other = Fingerprint::Of("b").ToHex();
  const auto peeked = Peek(BytesField(2, other) + "\x40\x05" + OrdinaryRequest().SerializeAsString() + "\x40\x06");
  ASSERT_TRUE(peeked.has_value());
  EXPECT_EQ(peeked->fingerprint, Fingerprint::Of("a"));
  EXPECT_EQ(peeked->priority, 6);
}

TEST(PeekedExecuteTest, IsSilentWhereThereIsMoreToKnow) {
  const std::string bytes = OrdinaryRequest().SerializeAsString();
  EXPECT_TRUE(Peek(bytes).has_value());
  EXPECT_FALSE(Peek("").has_value()) << "no program";
  EXPECT_FALSE(Peek(bytes + BytesField(7, "session")).has_value());
  EXPECT_FALSE(Peek(bytes + BytesField(3, "")).has_value()) << "a graph";
  EXPECT_FALSE(Peek(bytes + BytesField(4, "")).has_value()) << "options";
  EXPECT_FALSE(Peek(bytes + "\x50\x01").has_value()) << "an unknown field";
  EXPECT_FALSE(Peek(bytes + BytesField(2, Digits().substr(1))).has_value()) << "no fingerprint";
  EXPECT_FALSE(Peek(bytes + BytesField(2, std::string(64, 'A'))).has_value()) << "likewise";
  EXPECT_FALSE(Peek(bytes + std::string("\x40\x80\x00", 3)).has_value()) << "a number written too long";
  EXPECT_FALSE(Peek(bytes + "\x2A\x05").has_value()) << "an argument that is cut off";
  EXPECT_FALSE(Peek(bytes + "\x08").has_value()) << "an id that is cut off";
  EXPECT_FALSE(Peek(bytes + "\x12\x40").has_value()) << "a fingerprint that is cut off";
}

}  // namespace
}  // namespace tensord::server
