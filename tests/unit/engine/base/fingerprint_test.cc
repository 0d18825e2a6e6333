#include "engine/base/fingerprint.h"

#include <string>

#include "gtest/gtest.h"

namespace tensord {
namespace {

TEST(FingerprintTest, IsSha256) {
  EXPECT_EQ(Fingerprint::Of("").ToHex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Fingerprint::Of("abc").ToHex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(FingerprintTest, HexComesBack) {
  const Fingerprint fingerprint = Fingerprint::Of("some content");
  const std::optional<Fingerprint> again = Fingerprint::FromHex(fingerprint.ToHex());
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(*again, fingerprint);
  EXPECT_FALSE(*again == Fingerprint::Of("other content"));
}

TEST(FingerprintTest, OtherTextIsNone) {
  const std::string hex = Fingerprint::Of("x").ToHex();
  std::string upper = hex;
  upper[0] = 'A';
  std::string beyond = hex;
  beyond[63] = 'g';
  for (const std::string& text : {std::string(), hex.substr(1), hex + "0", upper, beyond}) {
    EXPECT_FALSE(Fingerprint::FromHex(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace tensord
