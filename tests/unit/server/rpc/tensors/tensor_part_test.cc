#include "server/rpc/tensors/tensor_part.h"

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/base/refusal.h"
#include "gtest/gtest.h"
#include "proto/checksum/crc32c.h"
#include "tests/testlib/peers/byte_slices.h"
#include "tests/testlib/peers/tensor_chunk.h"

namespace tensord::server {
namespace {

using Put = v1::PutTensorRequest;

TEST(TensorPartTest, ReadsChunksFromAnySlices) {
  std::mt19937_64 random(3);
  TensorPart part;
  for (const int64_t offset : {int64_t{0}, int64_t{1}, int64_t{5} << 30, int64_t{-1}}) {
    for (const size_t size : {0, 1, 127, 128, 5000, 200'000}) {
      const std::string data(size, 'd');
      grpc::ByteBuffer buffer = InSlices(ChunkOf(offset, data).SerializeAsString(), &random);
      ASSERT_TRUE(part.Read(&buffer).ok());
      EXPECT_EQ(part.header(), nullptr);
      EXPECT_EQ(part.offset(), offset);
      ASSERT_EQ(part.size(), static_cast<int64_t>(size));
      std::string copy(size + 1, 'x');
      EXPECT_TRUE(part.CopyTo(copy.data()));
      EXPECT_TRUE(copy == data + 'x');
    }
  }
}

TEST(TensorPartTest, AWrongChecksumIsSeen) {
  std::mt19937_64 random(4);
  for (const size_t at : {0, 999, 1999}) {
    Put message = ChunkOf(8, std::string(2000, 'd'));
    (*message.mutable_chunk()->mutable_data())[at] ^= 1;
    grpc::ByteBuffer buffer = InSlices(message.SerializeAsString(), &random);
    TensorPart part;
    ASSERT_TRUE(part.Read(&buffer).ok());
    std::string copy(2000, 'x');
    EXPECT_FALSE(part.CopyTo(copy.data()));
  }
}

// Whatever the bytes are, the part equals protobuf's reading.
TEST(TensorPartTest, MutatedMessagesMeanWhatProtobufSays) {
  std::mt19937_64 random(5);
  const auto below = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  Put header;
  header.mutable_header()->set_session("s");
  header.mutable_header()->add_shape(300);
  Put shared = header;
  shared.mutable_header()->mutable_shared()->set_region("r");
  shared.mutable_header()->mutable_shared()->set_offset(64);
  shared.mutable_header()->mutable_shared()->set_byte_count(300);
  const std::string seeds[] = {ChunkOf(70'000, std::string(300, 'd')).SerializeAsString(), header.SerializeAsString(),
                               ChunkOf(0, "").SerializeAsString(), shared.SerializeAsString()};
  TensorPart part;
  for (int i = 0; i < 6000; ++i) {
    std::string bytes = seeds[below(4)];
    if (below(5) == 0) bytes += seeds[below(4)];
    for (size_t changes = below(3); changes > 0 && !bytes.empty(); --changes) {
      const size_t at = below(std::min<size_t>(bytes.size(), 24));
      if (below(3) == 0) {
        bytes.insert(at, 1, static_cast<char>(below(256)));
      } else {
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
      }
    }
    grpc::ByteBuffer buffer = InSlices(bytes, &random);
    const absl::Status read = part.Read(&buffer);
    Put expected;
    const bool parsed = expected.ParseFromString(bytes);
    if (!read.ok()) {
      const std::string reason = DetailOf(read)->reason;
      const bool has_part = expected.part_case() != Put::PART_NOT_SET;
      EXPECT_TRUE(reason == "MALFORMED_MESSAGE" ? !parsed || !has_part : reason == "UNSUPPORTED_REQUEST" && parsed)
          << i;
      continue;
    }
    ASSERT_TRUE(parsed) << i;
    if (part.header() != nullptr) {
      EXPECT_EQ(part.header()->SerializeAsString(), expected.header().SerializeAsString());
      continue;
    }
    ASSERT_TRUE(expected.has_chunk());
    EXPECT_EQ(part.offset(), expected.chunk().offset());
    ASSERT_EQ(part.size(), static_cast<int64_t>(expected.chunk().data().size()));
    std::string copy(expected.chunk().data().size(), 'x');
    EXPECT_EQ(part.CopyTo(copy.data()), Crc32c(expected.chunk().data()) == expected.chunk().crc32c());
    EXPECT_EQ(copy, expected.chunk().data());
  }
}

TEST(TensorPartTest, EncodedChunksAreThoseOfProtobufAndShareTheirData) {
  const auto owner = std::make_shared<std::string>(100'000, 'o');
  for (const int64_t offset : {int64_t{0}, int64_t{1} << 20, int64_t{5} << 30}) {
    for (const size_t size : {size_t{1}, size_t{127}, size_t{100'000}}) {
      const absl::string_view data = absl::string_view(*owner).substr(0, size);
      v1::GetTensorResponse expected;
      expected.mutable_chunk()->set_offset(offset);
      expected.mutable_chunk()->set_crc32c(Crc32c(data));
      expected.mutable_chunk()->set_data(std::string(data));
      const grpc::ByteBuffer encoded = EncodeChunk(offset, data, std::shared_ptr<const void>(owner, owner->data()));
      EXPECT_TRUE(Flatten(encoded) == expected.SerializeAsString());
      EXPECT_EQ(owner.use_count(), 2);
      std::vector<grpc::Slice> slices;
      ASSERT_TRUE(encoded.Dump(&slices).ok());
      EXPECT_EQ(reinterpret_cast<const char*>(slices.back().begin()), owner->data());
    }
  }
  EXPECT_EQ(owner.use_count(), 1);
}

}  // namespace
}  // namespace tensord::server
