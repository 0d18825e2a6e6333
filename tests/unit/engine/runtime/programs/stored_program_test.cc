#include "engine/runtime/programs/stored_program.h"

#include <string>

#include "absl/strings/str_replace.h"
#include "engine/families/all_families.h"
#include "engine/ir/printer.h"
#include "gtest/gtest.h"
#include "tests/testlib/graphs/parsed_graph.h"

namespace tensord {
namespace {

constexpr char kGraph[] = R"(graph "g" {
  %x = input : f32[n,3]
  %k = constant() {value = f32[2] [1, -inf]}
  %y = transpose(%x) {permutation = [1, 0]}
  output "y" = %y
}
)";

class StoredProgramTest : public testing::Test {
 protected:
  StoredProgramTest() : graph_(ParsedGraph(kGraph)) {
    settings_ = {.device = "cpu:0", .row_major = true, .disabled_passes = {"fuse"}, .enabled_passes = {}};
    fingerprint_ = MakeProgramKey(graph_, settings_).fingerprint;
    entry_ = EncodeStoredProgram(graph_, settings_, fingerprint_);
  }

  EntryDamage Decode(const std::string& bytes, StoredProgram* program = nullptr) const {
    StoredProgram ignored;
    return DecodeStoredProgram(bytes, fingerprint_, FamilyRegistry(), program == nullptr ? &ignored : program);
  }

  // The entry with something else in its fields, and a checksum that is right.
  std::string Forged(const std::string& from, const std::string& to) const {
    std::string entry = entry_.substr(0, entry_.size() - 64);
    EXPECT_EQ(from.size(), to.size());
    EXPECT_EQ(absl::StrReplaceAll({{from, to}}, &entry), 1) << from;
    return entry + Fingerprint::Of(entry).ToHex();
  }

  Graph graph_;
  CompileSettings settings_;
  Fingerprint fingerprint_;
  std::string entry_;
};

TEST_F(StoredProgramTest, ComesBack) {
  StoredProgram program;
  ASSERT_EQ(Decode(entry_, &program), EntryDamage::kNone);
  EXPECT_EQ(PrintGraph(program.graph), PrintGraph(graph_));
  EXPECT_EQ(program.key.bytes, MakeProgramKey(graph_, settings_).bytes);
  EXPECT_EQ(program.key.fingerprint, fingerprint_);
  EXPECT_EQ(program.settings.device, "cpu:0");
  EXPECT_TRUE(program.settings.row_major);
  EXPECT_EQ(program.settings.disabled_passes, settings_.disabled_passes);
  EXPECT_TRUE(program.settings.enabled_passes.empty());
}

TEST_F(StoredProgramTest, WhoseItIsComesBack) {
  settings_.tenant = "team-a";
  const ProgramKey key = MakeProgramKey(graph_, settings_);
  const std::string entry = EncodeStoredProgram(graph_, settings_, key.fingerprint);
  StoredProgram program;
  ASSERT_EQ(DecodeStoredProgram(entry, key.fingerprint, FamilyRegistry(), &program), EntryDamage::kNone);
  EXPECT_EQ(program.settings.tenant, "team-a");
  EXPECT_EQ(program.key.bytes, key.bytes);
  EXPECT_EQ(DecodeStoredProgram(EncodeStoredProgram(graph_, settings_, fingerprint_), fingerprint_, FamilyRegistry(),
                                &program),
            EntryDamage::kKey)
      << "another's";
}

TEST_F(StoredProgramTest, NoChangedByteGetsThrough) {
  for (size_t at = 0; at < entry_.size(); ++at) {
    for (const char flip : {'\x01', '\x80'}) {
      std::string damaged = entry_;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      EXPECT_NE(Decode(damaged), EntryDamage::kNone) << "byte " << at;
    }
  }
}

TEST_F(StoredProgramTest, NoOtherLengthGetsThrough) {
  for (size_t size = 0; size < entry_.size(); ++size) {
    EXPECT_EQ(Decode(entry_.substr(0, size)), EntryDamage::kTruncated) << size;
  }
  EXPECT_EQ(Decode(entry_ + "x"), EntryDamage::kChecksum);
  EXPECT_EQ(Decode(entry_ + entry_), EntryDamage::kChecksum);
  EXPECT_EQ(Decode(std::string(1000, 'x')), EntryDamage::kFormat);
  EXPECT_EQ(Decode(std::string(1000, '\0')), EntryDamage::kFormat);
}

TEST_F(StoredProgramTest, WhatIsForgedIsNotUsed) {
  EXPECT_EQ(Decode(Forged("tensord-1", "tensord-0")), EntryDamage::kVersion);
  EXPECT_EQ(Decode(Forged("f32[n,3]", "f32[n,4]")), EntryDamage::kKey);
  EXPECT_EQ(Decode(Forged("fuse", "fold")), EntryDamage::kContent) << "no such pass";
  EXPECT_EQ(Decode(Forged("transpose", "transpoze")), EntryDamage::kContent);
  EXPECT_EQ(Decode(Forged("cpu:0", "cpu:1")), EntryDamage::kKey);
  const std::string hex = fingerprint_.ToHex();
  EXPECT_EQ(Decode(Forged(hex, Fingerprint::Of("another").ToHex())), EntryDamage::kKey);
  std::string other_format = entry_;
  other_format[8] = 2;
  EXPECT_EQ(Decode(other_format), EntryDamage::kFormat);
}

TEST_F(StoredProgramTest, AnEntryIsOfItsFingerprintAlone) {
  StoredProgram program;
  EXPECT_EQ(DecodeStoredProgram(entry_, Fingerprint::Of("another"), FamilyRegistry(), &program), EntryDamage::kKey);
}

}  // namespace
}  // namespace tensord
