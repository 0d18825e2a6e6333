#include "engine/runtime/programs/quarantine.h"

#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "engine/base/refusal.h"
#include "engine/runtime/programs/crash_record.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/engine/runtime/temporary_folder.h"

namespace tensord {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Fingerprint kA = Fingerprint::Of("a"), kB = Fingerprint::Of("b");

class QuarantineTest : public ::testing::Test {
 protected:
  std::unique_ptr<Quarantine> Open(const std::string& version = "1") {
    events_.clear();
    auto opened =
        Quarantine::Open({.folder = folder_.path(),
                          .version = version,
                          .warn = [this](absl::string_view event, const std::string&) { events_.emplace_back(event); },
                          .added = [this](const Fingerprint& added) { added_.push_back(added.ToHex()); }});
    EXPECT_TRUE(opened.ok()) << opened.status();
    return *std::move(opened);
  }
  // Acts as a server that dies while it runs that program.
  void Crash(const Fingerprint& fingerprint, bool is_known = true, const std::string& version = "1") {
    const ProgramAtWork at_work(fingerprint, ProgramWork::kRun);
    Open(version)->WriteCrash(11, is_known);
  }
  std::string quarantine_path() const { return folder_.path() + "/quarantine"; }
  std::string FileOf(const Fingerprint& fingerprint) const {
    return folder_.path() + "/quarantine/" + fingerprint.ToHex() + ".crash";
  }
  void Write(const std::string& path, const std::string& bytes) {
    fs::create_directory(folder_.path() + "/quarantine");
    std::ofstream(path, std::ios::binary) << bytes;
  }
  static bool IsIn(const std::unique_ptr<Quarantine>& quarantine, const Fingerprint& fingerprint) {
    const absl::Status status = quarantine->Check(fingerprint);
    EXPECT_TRUE(status.ok() || IsRefusal(status, Refusal::kQuarantined)) << status;
    return !status.ok();
  }

  TemporaryFolder folder_;
  std::vector<std::string> events_;
  std::vector<std::string> added_;
};

TEST_F(QuarantineTest, WithoutACrashThereIsNothing) {
  const auto quarantine = Open();
  EXPECT_FALSE(IsIn(quarantine, kA));
  EXPECT_THAT(quarantine->List(), IsEmpty());
  quarantine->WriteCrash(11, true);  // nobody was at work
  EXPECT_FALSE(fs::exists(folder_.path() + "/quarantine"));
}

TEST_F(QuarantineTest, WhatWasAtWorkIsThereUntilItIsReleased) {
  Crash(kA);
  {
    const auto quarantine = Open();
    EXPECT_THAT(events_, ElementsAre("program in quarantine"));
    EXPECT_TRUE(IsIn(quarantine, kA));
    EXPECT_FALSE(IsIn(quarantine, kB));
    EXPECT_THAT(std::string(quarantine->Check(kA).message()),
                AllOf(HasSubstr(kA.ToHex()), HasSubstr("SIGSEGV"), HasSubstr("--release")));
    ASSERT_EQ(quarantine->List().size(), 1u);
    const Quarantine::Entry entry = quarantine->List()[0];
    EXPECT_EQ(entry.signal, 11);
    EXPECT_EQ(entry.work, ProgramWork::kRun);
    EXPECT_TRUE(entry.is_known);
    EXPECT_GT(entry.since, absl::UnixEpoch());
    EXPECT_EQ(quarantine->counts().known, 1);
    EXPECT_THAT(quarantine->Release({kB, kA, kA}).fingerprints, ElementsAre(kA));
    EXPECT_THAT(quarantine->Release({kA}).fingerprints, IsEmpty());
    EXPECT_FALSE(IsIn(quarantine, kA));
  }
  EXPECT_FALSE(IsIn(Open(), kA));
}

TEST_F(QuarantineTest, AnotherVersionLetsAllOut) {
  Crash(kA);
  EXPECT_FALSE(IsIn(Open("2"), kA));
  EXPECT_THAT(events_, ElementsAre("quarantine ended"));
  EXPECT_FALSE(IsIn(Open("1"), kA));
  const std::string prefix(CrashRecord::kVersionBytes + 9, 'v');
  Crash(kA, true, prefix + "1");
  EXPECT_TRUE(IsIn(Open(prefix + "2"), kA)) << "what is too long is cut";
}

TEST_F(QuarantineTest, WhereTheCulpritIsNotKnownAllAreSuspects) {
  Crash(kA, /*is_known=*/false);
  const auto quarantine = Open();
  EXPECT_TRUE(IsIn(quarantine, kA));
  EXPECT_EQ(quarantine->counts().suspected, 1);
  EXPECT_EQ(quarantine->counts().known, 0);
}

// Several servers share a folder.
TEST_F(QuarantineTest, WhatAnotherServerAddsAndReleasesIsSeen) {
  const auto first = Open();
  EXPECT_FALSE(IsIn(first, kA));
  added_.clear();
  Crash(kA);
  EXPECT_FALSE(IsIn(first, kA)) << "a call does not read the folder";
  first->Look();
  EXPECT_TRUE(IsIn(first, kA));
  EXPECT_THAT(added_, testing::Contains(kA.ToHex()));
  EXPECT_THAT(Open()->Release({kA}).fingerprints, ElementsAre(kA));
  first->Look();
  EXPECT_FALSE(IsIn(first, kA));
}

TEST_F(QuarantineTest, ALookSaysWhetherToLookAgain) {
  const auto quarantine = Open();
  EXPECT_TRUE(quarantine->Look()) << "there is no folder";
  Crash(kA);
  const auto age = [this](std::chrono::hours hours) {
    fs::last_write_time(quarantine_path(), fs::file_time_type::clock::now() - hours);
  };
  age(std::chrono::hours(0));
  EXPECT_FALSE(quarantine->Look()) << "what comes in the same tick would not show";
  age(std::chrono::hours(1));
  EXPECT_TRUE(quarantine->Look());
  EXPECT_TRUE(IsIn(quarantine, kA));
}

// A folder may have so many files that a look takes long, and calls must not wait for it.
TEST_F(QuarantineTest, NobodyWaitsForALook) {
  Crash(kA);
  Write(FileOf(kB), "damaged");
  const Quarantine* reading = nullptr;
  absl::Status within = absl::UnknownError("not asked");
  const auto opened = Quarantine::Open({.folder = folder_.path(), .version = "1", .warn = [&](auto, const auto&) {
                                          if (reading != nullptr) within = reading->Check(kA);
                                        }});
  ASSERT_TRUE(opened.ok()) << opened.status();
  reading = opened->get();
  Write(FileOf(kB), "damaged");
  (*opened)->Look();
  EXPECT_TRUE(IsRefusal(within, Refusal::kQuarantined)) << within;
}

TEST_F(QuarantineTest, WhatCannotBeRemovedStaysAndTheErrorSaysWhy) {
  Crash(kA);
  const auto quarantine = Open();
  const auto is_unchanged = [this, time = fs::file_time_type::clock::now() - std::chrono::hours(1)] {
    fs::last_write_time(quarantine_path(), time);
  };
  is_unchanged();
  EXPECT_TRUE(quarantine->Look());
  // unlinkat refuses this to root too.
  fs::remove(FileOf(kA));
  fs::create_directory(FileOf(kA));
  is_unchanged();
  const Quarantine::Released released = quarantine->Release({kA});
  EXPECT_EQ(released.failure.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(released.fingerprints, IsEmpty());
  EXPECT_THAT(std::string(released.failure.message()), AllOf(HasSubstr(FileOf(kA)), HasSubstr("Is a directory")));
  EXPECT_TRUE(IsIn(quarantine, kA));
  fs::remove(FileOf(kA));
  is_unchanged();
  EXPECT_THAT(quarantine->Release({kA}).fingerprints, ElementsAre(kA)) << "somebody else removed it";
}

TEST_F(QuarantineTest, WhatIsNoRecordIsRemovedAndTold) {
  Crash(kA);
  std::string record(sizeof(CrashRecord), 0);
  std::ifstream(FileOf(kA), std::ios::binary).read(record.data(), static_cast<std::streamsize>(record.size()));
  std::mt19937_64 random(5);
  std::vector<std::string> damaged = {std::string("x"), record.substr(1), record + "x", std::string(100000, 'x')};
  for (size_t i = 0; i < record.size(); ++i) {
    damaged.push_back(record);
    damaged.back()[i] = static_cast<char>(damaged.back()[i] ^ (1 << (random() % 8)));
  }
  for (const std::string& bytes : damaged) {
    Write(FileOf(kA), bytes);
    EXPECT_FALSE(IsIn(Open(), kA));
    EXPECT_THAT(events_, ElementsAre("quarantine damaged"));
    EXPECT_FALSE(fs::exists(FileOf(kA)));
  }
  Write(FileOf(kB), record);  // of another program
  EXPECT_FALSE(IsIn(Open(), kB));
  Write(FileOf(kA), "");  // the disk was full
  const auto quarantine = Open();
  EXPECT_TRUE(IsIn(quarantine, kA));
  EXPECT_EQ(quarantine->List()[0].signal, 0);
}

TEST_F(QuarantineTest, NeitherFollowsNorReadsWhatIsNoFile) {
  Write(folder_.path() + "/quarantine/other.crash", "x");
  Write(folder_.path() + "/quarantine/other", "x");
  fs::create_symlink("/etc/passwd", FileOf(kA));
  fs::create_directory(FileOf(kB));
  const Fingerprint pipe = Fingerprint::Of("pipe");
  ASSERT_EQ(mkfifo(FileOf(pipe).c_str(), 0600), 0);
  const auto quarantine = Open();
  EXPECT_THAT(quarantine->List(), IsEmpty());
  EXPECT_TRUE(fs::exists("/etc/passwd"));
  fs::remove_all(folder_.path() + "/quarantine");
  std::ofstream(folder_.path() + "/quarantine") << "a file";
  Crash(kA);
  EXPECT_FALSE(IsIn(Open(), kA)) << "there is no folder to write it into";
  fs::remove(folder_.path() + "/quarantine");
  fs::create_directory_symlink("/tmp", folder_.path() + "/quarantine");
  EXPECT_FALSE(IsIn(Open(), kA));
}

TEST_F(QuarantineTest, KeepsABoundedNumber) {
  fs::create_directory(folder_.path() + "/quarantine");
  for (int i = 0; i < 5000; ++i) Write(FileOf(Fingerprint::Of(std::to_string(i))), "");
  EXPECT_EQ(Open()->List().size(), 4096u);
}

}  // namespace
}  // namespace tensord
