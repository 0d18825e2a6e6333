#include "engine/runtime/programs/program_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/families/all_families.h"
#include "engine/runtime/programs/program_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testlib/graphs/parsed_graph.h"
#include "tests/unit/engine/runtime/gated_backend.h"
#include "tests/unit/engine/runtime/temporary_folder.h"

namespace tensord {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

Graph GraphOf(int number) {
  return ParsedGraph(absl::StrCat("graph \"g\" {\n  %x = input : f32[", number, "]\n  output \"y\" = %x\n}\n"));
}

bool IsAsleep(int thread) {
  std::ifstream stat(absl::StrCat("/proc/self/task/", thread, "/stat"));
  const std::string line((std::istreambuf_iterator<char>(stat)), std::istreambuf_iterator<char>());
  const size_t name_end = line.rfind(") ");
  return name_end != std::string::npos && line[name_end + 2] == 'S';
}

class ProgramStoreTest : public testing::Test {
 protected:
  std::unique_ptr<ProgramStore> Open(int64_t max_bytes = 1 << 20,
                                     std::function<std::vector<ProgramStore::Use>()> uses = {}) {
    auto store = ProgramStore::Open({.folder = path_,
                                     .max_bytes = max_bytes,
                                     .registry = &FamilyRegistry(),
                                     .uses = std::move(uses),
                                     .end_within = absl::Hours(1)});
    EXPECT_TRUE(store.ok()) << store.status();
    return *std::move(store);
  }
  static Fingerprint FingerprintOf(int number) {
    return MakeProgramKey(GraphOf(number), {.device = "cpu:0"}).fingerprint;
  }
  static void Put(ProgramStore* store, int number) {
    store->Put(GraphOf(number), {.device = "cpu:0"}, FingerprintOf(number));
    store->Flush();
  }
  static std::string NameOf(int number) { return FingerprintOf(number).ToHex() + ".program"; }
  // Sets when the file was last used, in seconds.
  void SetUsed(int number, int64_t seconds) const {
    const timespec times[2] = {{.tv_sec = seconds, .tv_nsec = 0}, {.tv_sec = seconds, .tv_nsec = 0}};
    EXPECT_EQ(utimensat(AT_FDCWD, folder_.Of("p/" + NameOf(number)).c_str(), times, 0), 0);
  }

  TemporaryFolder folder_;
  const std::string path_ = folder_.Of("p");
};

TEST_F(ProgramStoreTest, WhatOneServerWritesTheNextReads) {
  {
    const auto store = Open();
    EXPECT_FALSE(store->Contains(FingerprintOf(1)));
    EXPECT_EQ(DetailOf(store->Load(FingerprintOf(1)).status())->reason, "PROGRAM_NOT_FOUND");
    Put(store.get(), 1);
    EXPECT_EQ(store->stats().written, 1);
    Put(store.get(), 1);
    EXPECT_EQ(store->stats().written, 1) << "it was there";
  }
  const auto store = Open();
  EXPECT_EQ(store->stats().entries, 1);
  EXPECT_GT(store->stats().bytes, 100);
  EXPECT_TRUE(store->Contains(FingerprintOf(1)));
  const absl::StatusOr<StoredProgram> program = store->Load(FingerprintOf(1));
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(program->key.fingerprint, FingerprintOf(1));
  EXPECT_EQ(store->stats().loaded, 1);
  EXPECT_TRUE(store->Remove(FingerprintOf(1)));
  EXPECT_FALSE(store->Remove(FingerprintOf(1)));
  EXPECT_EQ(store->stats().removed, 1);
  EXPECT_EQ(store->stats().entries, 0);
  EXPECT_EQ(store->stats().bytes, 0);
}

TEST_F(ProgramStoreTest, TheEndWritesWhatWaits) {
  {
    const auto store = Open();
    for (int i = 1; i <= 20; ++i) store->Put(GraphOf(i), {.device = "cpu:0"}, FingerprintOf(i));
  }
  EXPECT_EQ(Open()->stats().entries, 20);
}

TEST_F(ProgramStoreTest, TheFolderIsForItsOwnerAlone) {
  Open();
  struct stat info {};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  // The group of a volume is given to its user like this.
  ASSERT_EQ(chmod(path_.c_str(), 02770), 0);
  EXPECT_TRUE(CheckProgramFolder(path_).ok());
  std::vector<std::string> told;
  {
    const auto again = ProgramStore::Open({.folder = path_,
                                           .max_bytes = 1 << 20,
                                           .registry = &FamilyRegistry(),
                                           .warn = [&told](absl::string_view event, const std::string& message) {
                                             told.push_back(absl::StrCat(event, ": ", message));
                                           }});
    ASSERT_TRUE(again.ok()) << again.status();
  }
  EXPECT_THAT(told, ElementsAre(AllOf(HasSubstr("program folder closed"), HasSubstr("mode 2770"))));
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
  ASSERT_EQ(symlink(path_.c_str(), folder_.Of("link").c_str()), 0);
  EXPECT_EQ(ProgramStore::Open({.folder = folder_.Of("link")}).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ProgramStore::Open({.folder = folder_.Of("no/such")}).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(ProgramStoreTest, DamageIsDeletedAndCounted) {
  const auto store = Open();
  Put(store.get(), 1);
  const std::string name = "p/" + NameOf(1), whole = folder_.Read(name);
  std::string flipped = whole;
  flipped[whole.size() / 2] ^= 1;
  const std::vector<std::pair<std::string, EntryDamage>> cases = {{"", EntryDamage::kTruncated},
                                                                  {whole.substr(0, 99), EntryDamage::kTruncated},
                                                                  {flipped, EntryDamage::kChecksum},
                                                                  {std::string(500, 'x'), EntryDamage::kFormat}};
  int64_t before = 0;
  for (const auto& [bytes, damage] : cases) {
    SCOPED_TRACE(Name(damage));
    folder_.Write(name, bytes);
    const int64_t counted = store->stats().load_errors[static_cast<size_t>(damage)];
    const absl::Status status = store->Load(FingerprintOf(1)).status();
    EXPECT_EQ(DetailOf(status)->reason, "PROGRAM_NOT_FOUND");
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(Describe(damage)))) << "not that there is none";
    EXPECT_EQ(store->stats().load_errors[static_cast<size_t>(damage)], counted + 1);
    EXPECT_FALSE(store->Contains(FingerprintOf(1)));
    Put(store.get(), 1);
    EXPECT_TRUE(store->Load(FingerprintOf(1)).ok()) << "it is written anew";
    EXPECT_EQ(folder_.Read(name), whole);
    ++before;
  }
  EXPECT_EQ(store->stats().loaded, before);
  // An entry under another one's name.
  Put(store.get(), 2);
  folder_.Write("p/" + NameOf(2), whole);
  EXPECT_FALSE(store->Load(FingerprintOf(2)).ok());
  EXPECT_EQ(store->stats().load_errors[static_cast<size_t>(EntryDamage::kKey)], 1);
}

TEST_F(ProgramStoreTest, DamageIsWrittenAnew) {
  const auto store = Open();
  Put(store.get(), 1);
  const std::string path = folder_.Of("p/" + NameOf(1));
  std::string whole;
  {
    std::ifstream file(path, std::ios::binary);
    whole.assign((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  }
  std::string turned = whole;
  turned[whole.size() / 2] = static_cast<char>(turned[whole.size() / 2] ^ 1);
  for (const std::string& damaged : {turned, whole.substr(0, whole.size() - 1), std::string("no program")}) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << damaged;
    Put(store.get(), 1);  // the graph came again
    EXPECT_TRUE(store->Load(FingerprintOf(1)).ok());
  }
  EXPECT_EQ(store->stats().written, 4);
  EXPECT_EQ(store->stats().entries, 1);
  EXPECT_EQ(store->stats().load_errors[static_cast<size_t>(EntryDamage::kChecksum)], 1);
  EXPECT_EQ(store->stats().load_errors[static_cast<size_t>(EntryDamage::kTruncated)], 1);
  EXPECT_EQ(store->stats().load_errors[static_cast<size_t>(EntryDamage::kFormat)], 1);
  Put(store.get(), 1);
  EXPECT_EQ(store->stats().written, 4) << "it is whole";
}

TEST_F(ProgramStoreTest, WhatIsNoFileIsNoEntry) {
  const auto store = Open();
  ASSERT_EQ(symlink("/etc/passwd", folder_.Of("p/" + NameOf(1)).c_str()), 0);
  EXPECT_FALSE(store->Load(FingerprintOf(1)).ok());
  ASSERT_EQ(mkfifo(folder_.Of("p/" + NameOf(2)).c_str(), 0600), 0);
  EXPECT_FALSE(store->Load(FingerprintOf(2)).ok()) << "and nobody waits for its writer";
  EXPECT_EQ(store->stats().load_errors[static_cast<size_t>(EntryDamage::kFormat)], 2);
  ASSERT_EQ(mkdir(folder_.Of("p/" + NameOf(3)).c_str(), 0700), 0);
  EXPECT_FALSE(store->Load(FingerprintOf(3)).ok());
  EXPECT_THAT(folder_.Names(), ElementsAre("p"));
}

// A file of many bytes takes no room on disk where nothing is written into it.
TEST_F(ProgramStoreTest, WhatCannotBeAnEntryCountsAsDamageAndNotAsBytes) {
  int64_t bytes = 0;
  {
    const auto store = Open();
    for (int i = 1; i <= 3; ++i) Put(store.get(), i);
    bytes = store->stats().bytes;
  }
  const auto lay = [this] {
    folder_.Write("p/" + NameOf(4), "");
    std::filesystem::resize_file(folder_.Of("p/" + NameOf(4)), uintmax_t{1} << 40);
    ASSERT_EQ(symlink("/etc/passwd", folder_.Of("p/" + NameOf(5)).c_str()), 0);
  };
  lay();
  std::filesystem::create_directory(folder_.Of("p/" + NameOf(6)));
  std::vector<std::string> warnings;
  const auto warn = [&warnings](absl::string_view event, const std::string& message) {
    EXPECT_EQ(event, "program store damaged");
    warnings.push_back(message);
  };
  auto store = ProgramStore::Open({.folder = path_, .max_bytes = 1 << 20, .registry = &FamilyRegistry(), .warn = warn});
  ASSERT_TRUE(store.ok());
  const size_t format = static_cast<size_t>(EntryDamage::kFormat);
  EXPECT_EQ((*store)->stats().entries, 3);
  EXPECT_EQ((*store)->stats().bytes, bytes);
  EXPECT_EQ((*store)->stats().evictions, 0);
  EXPECT_EQ((*store)->stats().load_errors[format], 2);
  EXPECT_THAT(warnings, UnorderedElementsAre(HasSubstr(NameOf(4)), HasSubstr(NameOf(5))));
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::symlink_status(folder_.Of("p/" + NameOf(5)))));
  EXPECT_FALSE(std::filesystem::exists(folder_.Of("p/" + NameOf(4))));
  // A later entry is found when asked for.
  lay();
  EXPECT_EQ((*store)->List().size(), 3u);
  EXPECT_FALSE((*store)->Contains(FingerprintOf(4)));
  EXPECT_FALSE((*store)->Load(FingerprintOf(4)).ok());
  EXPECT_FALSE((*store)->Remove(FingerprintOf(5)));
  EXPECT_EQ((*store)->stats().load_errors[format], 3);
  for (int i = 4; i <= 5; ++i) EXPECT_FALSE(std::filesystem::exists(folder_.Of("p/" + NameOf(i)))) << i;
  // A folder is somebody's.
  EXPECT_FALSE((*store)->Contains(FingerprintOf(6)));
  EXPECT_FALSE((*store)->Load(FingerprintOf(6)).ok());
  EXPECT_FALSE((*store)->Remove(FingerprintOf(6)));
  EXPECT_EQ((*store)->stats().load_errors[format], 3);
  EXPECT_TRUE(std::filesystem::is_directory(folder_.Of("p/" + NameOf(6))));
  EXPECT_EQ((*store)->stats().entries, 3);
  EXPECT_EQ((*store)->stats().bytes, bytes);
}

TEST_F(ProgramStoreTest, ARunOfFailedWritesIsToldOnceAndItsEndToo) {
  std::vector<std::string> warnings;  // by the writer, which nobody else is while nothing waits
  auto store = ProgramStore::Open({.folder = path_,
                                   .max_bytes = 1 << 20,
                                   .registry = &FamilyRegistry(),
                                   .warn = [&warnings](absl::string_view event, const std::string& message) {
                                     warnings.push_back(absl::StrCat(event, ": ", message));
                                   }});
  ASSERT_TRUE(store.ok());
  for (const int i : {1, 2}) std::filesystem::create_directory(folder_.Of("p/" + NameOf(i)));
  Put(store->get(), 1);
  Put(store->get(), 2);
  Put(store->get(), 1);
  EXPECT_EQ((*store)->stats().write_errors, 3);
  EXPECT_THAT(warnings, ElementsAre(AllOf(HasSubstr("program store cannot write"), HasSubstr(path_),
                                          HasSubstr("Is a directory"))));
  Put(store->get(), 3);
  Put(store->get(), 4);
  EXPECT_EQ((*store)->stats().written, 2);
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_THAT(warnings[1], AllOf(HasSubstr("program store writes again"), HasSubstr("3 were not")));
  Put(store->get(), 2);
  EXPECT_EQ(warnings.size(), 3u) << "another run";
}

TEST_F(ProgramStoreTest, LeftoversOfKilledServersGo) {
  Open();
  folder_.Write("p/0123456789abcdef.unfinished", "half");
  folder_.Write("p/somebody's notes", "kept");
  const int living = open(folder_.Of("p/aa.unfinished").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(flock(living, LOCK_EX), 0);
  Open();
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path_)) names.push_back(entry.path().filename());
  EXPECT_THAT(names, UnorderedElementsAre("aa.unfinished", "somebody's notes"));
  close(living);
  Open();
  EXPECT_FALSE(std::filesystem::exists(folder_.Of("p/aa.unfinished")));
}

TEST_F(ProgramStoreTest, TheOldestGoFirst) {
  int64_t size = 0;
  {
    const auto store = Open();
    for (int i = 11; i <= 18; ++i) Put(store.get(), i);
    size = store->stats().bytes / 8;
  }
  for (int i = 11; i <= 18; ++i) SetUsed(i, 1000 + i);
  SetUsed(12, 5000);
  const auto store = Open(8 * size);
  EXPECT_EQ(store->List()[0], FingerprintOf(12));
  EXPECT_EQ(store->List()[7], FingerprintOf(11));
  EXPECT_TRUE(store->Load(FingerprintOf(11)).ok());  // a use
  Put(store.get(), 19);
  EXPECT_GE(store->stats().evictions, 1);
  EXPECT_LE(store->stats().bytes, 8 * size);
  EXPECT_EQ(store->stats().entries, static_cast<int64_t>(store->List().size()));
  for (const int kept : {11, 12, 19}) EXPECT_TRUE(store->Contains(FingerprintOf(kept))) << kept;
  EXPECT_FALSE(store->Contains(FingerprintOf(13)));
}

TEST_F(ProgramStoreTest, ALowerBoundHoldsAtOnce) {
  const auto store = Open();
  for (int i = 11; i <= 18; ++i) Put(store.get(), i);
  const int64_t size = store->stats().bytes / 8;
  for (int i = 11; i <= 18; ++i) SetUsed(i, 1000 + i);
  store->SetMaxBytes(4 * size);
  store->Flush();
  EXPECT_LE(store->stats().bytes, 4 * size);
  EXPECT_GE(store->stats().evictions, 4);
  EXPECT_FALSE(store->Contains(FingerprintOf(14)));
  EXPECT_TRUE(store->Contains(FingerprintOf(18)));
  store->SetMaxBytes(1 << 20);
  for (int i = 11; i <= 14; ++i) Put(store.get(), i);
  EXPECT_GT(store->stats().bytes, 4 * size);
}

TEST_F(ProgramStoreTest, UsesInMemoryAreWrittenAtTheEnd) {
  {
    const auto store = Open();
    for (int i = 1; i <= 3; ++i) Put(store.get(), i);
  }
  for (int i = 1; i <= 3; ++i) SetUsed(i, 1000 + i);
  Open(1 << 20, [] { return std::vector<ProgramStore::Use>{{FingerprintOf(1), absl::FromUnixSeconds(2000)}}; });
  EXPECT_THAT(Open()->List(), ElementsAre(FingerprintOf(1), FingerprintOf(3), FingerprintOf(2)));
}

TEST_F(ProgramStoreTest, WhatIsTooLargeIsLeftOut) {
  const auto store = Open(/*max_bytes=*/100);
  Put(store.get(), 1);
  EXPECT_EQ(store->stats().left_out, 1);
  EXPECT_EQ(store->stats().entries, 0);
  EXPECT_THAT(store->List(), IsEmpty());
}

TEST_F(ProgramStoreTest, OnlySoManyWait) {
  auto store =
      ProgramStore::Open({.folder = path_, .max_bytes = 1 << 20, .registry = &FamilyRegistry(), .max_waiting = 0});
  ASSERT_TRUE(store.ok());
  Put(store->get(), 1);
  EXPECT_EQ((*store)->stats().left_out, 1);
  const Graph constant =
      ParsedGraph("graph \"g\" {\n  %k = constant() {value = f32[2] [1, 2]}\n  output \"y\" = %k\n}\n");
  auto small = ProgramStore::Open(
      {.folder = path_, .max_bytes = 1 << 20, .registry = &FamilyRegistry(), .max_waiting_bytes = 7});
  ASSERT_TRUE(small.ok());
  (*small)->Put(constant, {.device = "cpu:0"}, MakeProgramKey(constant, {.device = "cpu:0"}).fingerprint);
  Put(small->get(), 1);
  EXPECT_EQ((*small)->stats().left_out, 1) << "the constant";
  EXPECT_EQ((*small)->stats().written, 1);
}

// The writer asks for uses between two writes, and is held there until the end has begun.
TEST_F(ProgramStoreTest, TheEndIsNotPutOffForEver) {
  Event ends;
  auto store = ProgramStore::Open({.folder = path_,
                                   .max_bytes = 1 << 20,
                                   .registry = &FamilyRegistry(),
                                   .uses =
                                       [&ends] {
                                         ends.Wait();
                                         return std::vector<ProgramStore::Use>();
                                       },
                                   .uses_period = absl::ZeroDuration(),
                                   .end_within = absl::ZeroDuration()});
  ASSERT_TRUE(store.ok());
  for (int i = 1; i <= 20; ++i) (*store)->Put(GraphOf(i), {.device = "cpu:0"}, FingerprintOf(i));
  std::atomic<int> ending{0};
  std::thread end([&] {
    ending = static_cast<int>(syscall(SYS_gettid));
    store->reset();
  });
  while (ending == 0 || !IsAsleep(ending)) std::this_thread::yield();  // it waits for the writer and for nothing else
  ends.Set();
  end.join();
  EXPECT_LE(Open()->stats().entries, 1) << "the one that was being written";
}

TEST_F(ProgramStoreTest, WhoFlushesDoesNotWaitForWhatOthersPut) {
  std::atomic<ProgramStore*> fed{nullptr};
  auto store = ProgramStore::Open({.folder = path_,
                                   .max_bytes = 1 << 20,
                                   .registry = &FamilyRegistry(),
                                   .uses =
                                       [&fed] {
                                         // Whenever one is to be written another one waits already.
                                         ProgramStore* const into = fed;
                                         if (into != nullptr)
                                           into->Put(GraphOf(1), {.device = "cpu:0"}, FingerprintOf(1));
                                         return std::vector<ProgramStore::Use>();
                                       },
                                   .uses_period = absl::ZeroDuration()});
  ASSERT_TRUE(store.ok());
  fed = store->get();
  Put(store->get(), 2);
  EXPECT_TRUE((*store)->Contains(FingerprintOf(2)));
  fed = nullptr;
}

TEST_F(ProgramStoreTest, AFolderThatIsGoneFailsNobody) {
  const auto store = Open();
  Put(store.get(), 1);
  std::filesystem::remove_all(path_);
  Put(store.get(), 2);
  EXPECT_EQ(store->stats().write_errors, 1);
  EXPECT_FALSE(store->Load(FingerprintOf(1)).ok());
  EXPECT_THAT(store->List(), IsEmpty());
}

TEST_F(ProgramStoreTest, SeveralServersShareAFolder) {
  const auto a = Open(), b = Open();
  std::vector<std::thread> threads;
  for (ProgramStore* store : {a.get(), b.get()}) {
    threads.emplace_back([store] {
      for (int i = 1; i <= 30; ++i) {
        Put(store, i);
        const absl::StatusOr<StoredProgram> program = store->Load(FingerprintOf(i));
        EXPECT_TRUE(program.ok()) << program.status();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(a->List().size(), 30u);
  EXPECT_EQ(a->stats().written + b->stats().written >= 30, true);
  for (const auto& count : a->stats().load_errors) EXPECT_EQ(count, 0);
}

}  // namespace
}  // namespace tensord
