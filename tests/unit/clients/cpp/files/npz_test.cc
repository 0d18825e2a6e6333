#include "tensord/npy.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tensord::client {
namespace {

using ::testing::HasSubstr;

class NpzTest : public ::testing::Test {
 protected:
  ~NpzTest() override { std::remove(path_.c_str()); }

  std::string Contents() const {
    std::ifstream file(path_, std::ios::binary);
    std::stringstream all;
    all << file.rdbuf();
    return all.str();
  }
  absl::StatusOr<std::vector<NamedTensor>> Parse(const std::string& contents) const {
    std::ofstream(path_, std::ios::binary) << contents;
    return ReadNpz(path_);
  }

  const std::string path_ = absl::StrCat(::testing::TempDir(), "/tensord-", getpid(), ".npz");
  const std::vector<NamedTensor> tensors_ = {
      {.name = "x", .tensor = *HostTensor::FromVector(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3})},
      {.name = "später", .tensor = HostTensor::Scalar(true)},
      {.name = "none", .tensor = *HostTensor::FromVector(std::vector<double>(), {0, 2})}};
};

TEST_F(NpzTest, GivesBackWhatWasWritten) {
  ASSERT_TRUE(WriteNpz(path_, tensors_).ok());
  const absl::StatusOr<std::vector<NamedTensor>> read = ReadNpz(path_);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), tensors_.size());
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const HostTensor &there = (*read)[i].tensor, &here = tensors_[i].tensor;
    EXPECT_EQ((*read)[i].name, tensors_[i].name);
    EXPECT_EQ(there.dtype(), here.dtype());
    EXPECT_EQ(there.shape(), here.shape());
    EXPECT_EQ(std::string(there.bytes(), there.size_bytes()), std::string(here.bytes(), here.size_bytes()));
  }
  ASSERT_TRUE(WriteNpz(path_, {}).ok());
  EXPECT_TRUE(ReadNpz(path_)->empty());
  // As numpy.savez writes it; numpy.load knows an empty archive by these bytes.
  EXPECT_EQ(Contents(), "PK\x05\x06" + std::string(18, '\0'));
}

// Python writes sizes of 64 bits from 65,536 members on.
TEST_F(NpzTest, ReadsAsManyMembersAsTheNarrowEndCounts) {
  std::vector<NamedTensor> many;
  for (int i = 0; i < 65535; ++i) many.push_back({.name = absl::StrCat(i), .tensor = HostTensor::Scalar(1.0f)});
  ASSERT_TRUE(WriteNpz(path_, many).ok());
  std::string contents = Contents();
  // Replaces the wide end and its locator by a narrow end that says all by itself.
  const size_t wide_end = contents.rfind("PK\x06\x06");
  ASSERT_NE(wide_end, std::string::npos);
  std::string end = contents.substr(contents.size() - 22);
  end.replace(12, 4, contents.substr(wide_end + 40, 4));
  end.replace(16, 4, contents.substr(wide_end + 48, 4));
  const absl::StatusOr<std::vector<NamedTensor>> read = Parse(contents.substr(0, wide_end) + end);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->size(), 65535u);
  EXPECT_FALSE(Parse(contents.substr(0, wide_end) + contents.substr(contents.size() - 22)).ok());
}

TEST_F(NpzTest, DamagedFilesAreRefused) {
  ASSERT_TRUE(WriteNpz(path_, tensors_).ok());
  const std::string file = Contents();
  for (size_t size = 0; size < file.size(); ++size) EXPECT_FALSE(Parse(file.substr(0, size)).ok()) << size;
  // Each byte changed: an answer or a refusal, and nothing else.
  for (size_t at = 0; at < file.size(); ++at) {
    std::string changed = file;
    changed[at] = static_cast<char>(changed[at] ^ 0x55);
    const auto read = Parse(changed);
    EXPECT_TRUE(!read.ok() || read->size() <= tensors_.size()) << at;
  }
}

TEST_F(NpzTest, AnotherPayloadIsNoticed) {
  ASSERT_TRUE(WriteNpz(path_, tensors_).ok());
  std::string file = Contents();
  const size_t payload = file.find(std::string("\x00\x00\x80\x3f", 4));  // 1.0f
  ASSERT_NE(payload, std::string::npos);
  file[payload] = 1;
  const absl::Status refused = Parse(file).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("x.npy"));
}

TEST_F(NpzTest, NamesAreChecked) {
  const HostTensor one = HostTensor::Scalar(1.0f);
  EXPECT_EQ(WriteNpz(path_, {{.name = "", .tensor = one}}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(WriteNpz(path_, {{.name = "a", .tensor = one}, {.name = "a", .tensor = one}}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(WriteNpz(path_, {{.name = std::string(70000, 'a'), .tensor = one}}).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(NpzTest, NamesOfAFileAreNoCommandsToATerminal) {
  const NamedTensor odd{.name = "\x1b[2Jspäter", .tensor = HostTensor::Scalar(true)};
  ASSERT_TRUE(WriteNpz(path_, {odd}).ok());
  EXPECT_EQ(ReadNpz(path_)->front().name, odd.name);
  std::string contents = Contents();
  for (size_t at = 0; (at = contents.find(".npy", at)) != std::string::npos;) contents.replace(at, 4, ".txt");
  EXPECT_EQ(Parse(contents).status().message(),
            absl::StrCat(path_, ", \\x1b[2Jspäter.txt: the members of a .npz file are .npy files"));
}

TEST_F(NpzTest, SaysWhichFileCannotBeRead) {
  EXPECT_EQ(ReadNpz("/nowhere/x.npz").status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(ReadNpz("/nowhere/x.npz").status().message()), HasSubstr("/nowhere/x.npz"));
  EXPECT_EQ(ReadNpz("/dev/zero").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(ReadNpz("/").ok());
}

// Made by NumPy 1.24: savez and savez_compressed of a=float32[1.5, 2.5].
constexpr char kStored[] =
    "UEsDBBQAAAAAAAAAIQBU5Hd9iAAAAIgAAAAFABQAYS5ucHkBABAAiAAAAAAAAACIAAAAAAAAAJNOVU1QWQEAdgB7J2Rlc2NyJzogJzxmNCcs"
    "ICdmb3J0cmFuX29yZGVyJzogRmFsc2UsICdzaGFwZSc6ICgyLCksIH0gICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAg"
    "ICAgICAgICAgICAgICAgICAgICAKAADAPwAAIEBQSwECFAMUAAAAAAAAACEAVOR3fYgAAACIAAAABQAAAAAAAAAAAAAAgAEAAAAAYS5ucHlQ"
    "SwUGAAAAAAEAAQAzAAAAvwAAAAAA";
constexpr char kCompressed[] =
    "UEsDBBQAAAAIAAAAIQBU5Hd9TAAAAIgAAAAFABQAYS5ucHkBABAAiAAAAAAAAABMAAAAAAAAAJvsF+obEMnIUMZQrZ6SWpxcpG6loG6TZqKu"
    "o6Cell9UUpSYF59flJIKEndLzClOBYoXZyQWpAL5GkY6mjoKtQoUAC4GhgP2DAwKDgBQSwECFAMUAAAACAAAACEAVOR3fUwAAACIAAAABQAA"
    "AAAAAAAAAAAAgAEAAAAAYS5ucHlQSwUGAAAAAAEAAQAzAAAAgwAAAAAA";

TEST_F(NpzTest, ReadsWhatNumPyStores) {
  std::string file;
  ASSERT_TRUE(absl::Base64Unescape(kStored, &file));
  const absl::StatusOr<std::vector<NamedTensor>> read = Parse(file);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), 1u);
  EXPECT_EQ((*read)[0].name, "a");
  EXPECT_THAT(*(*read)[0].tensor.Values<float>(), ::testing::ElementsAre(1.5f, 2.5f));
}

TEST_F(NpzTest, RefusesWhatNumPyCompresses) {
  std::string file;
  ASSERT_TRUE(absl::Base64Unescape(kCompressed, &file));
  EXPECT_EQ(Parse(file).status().code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace tensord::client
