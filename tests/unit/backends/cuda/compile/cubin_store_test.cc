#include "backends/cuda/compile/cubin_store.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "backends/cuda/compile/kernel_compiler.h"
#include "backends/cuda/cuda_backend.h"
#include "engine/base/allocated_bytes.h"
#include "engine/base/refusal.h"
#include "engine/base/stop_signal.h"
#include "engine/runtime/compile/compiler.h"
#include "gmock/gmock.h"
#include "tests/testlib/graphs/parsed_graph.h"
#include "tests/testlib/reason_of.h"
#include "tests/unit/backends/cuda/cuda_test.h"

namespace tensord::cuda {
namespace {

namespace fs = std::filesystem;

class CubinStoreTest : public CudaTest {
 protected:
  CubinStoreTest() : folder_(fs::path(testing::TempDir()) / absl::StrCat("cubin_store_", getpid())) {
    fs::remove_all(folder_);
  }
  ~CubinStoreTest() override { fs::remove_all(folder_); }

  std::unique_ptr<CubinStore> Opened(int64_t disk_bytes = 1 << 20, int64_t memory_bytes = 1 << 20) {
    auto store = CubinStore::Open({.folder = folder_, .memory_bytes = memory_bytes, .disk_bytes = disk_bytes});
    EXPECT_TRUE(store.ok()) << store.status();
    return *std::move(store);
  }
  static CubinStore::Source SourceOf(absl::string_view text) {
    return {.text = text, .options = {}, .compiler = "nvrtc 13.0", .architecture = "sm_90"};
  }
  // Returns the code of a text, and counts if it was compiled.
  std::string Got(CubinStore* store, absl::string_view text) {
    const auto image = store->Get(SourceOf(text), [&]() -> absl::StatusOr<std::string> {
      ++compiled_;
      return absl::StrCat("code of ", text);
    });
    EXPECT_TRUE(image.ok()) << image.status();
    return **image;
  }
  std::vector<fs::path> Files(absl::string_view ending) const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      if (absl::EndsWith(entry.path().string(), ending)) files.push_back(entry.path());
    }
    return files;
  }

  const std::string folder_;
  std::atomic<int> compiled_{0};
};

TEST_F(CubinStoreTest, WhatOneProcessCompilesTheNextReads) {
  auto store = Opened();
  EXPECT_EQ(Got(store.get(), "a"), "code of a");
  EXPECT_EQ(Got(store.get(), "a"), "code of a");
  EXPECT_EQ(compiled_, 1);
  store = Opened();
  EXPECT_EQ(Got(store.get(), "a"), "code of a");
  EXPECT_EQ(compiled_, 1);
  EXPECT_EQ(store->stats().from_disk, 1);
  EXPECT_EQ(Got(store.get(), "a"), "code of a");
  EXPECT_EQ(store->stats().from_memory, 1);
  EXPECT_EQ(Got(store.get(), "b"), "code of b");
  EXPECT_EQ(compiled_, 2);
  EXPECT_EQ(store->stats().memory_bytes, 2 * static_cast<int64_t>(std::string("code of a").size()));
  int64_t on_disk = 0;
  for (const fs::path& file : Files(".cubin")) on_disk += static_cast<int64_t>(fs::file_size(file));
  EXPECT_EQ(store->stats().disk_bytes, on_disk);
  const auto info = fs::status(folder_).permissions();
  EXPECT_EQ(info & (fs::perms::group_all | fs::perms::others_all), fs::perms::none);
}

TEST_F(CubinStoreTest, CompilationsAreCountedAndTimed) {
  const auto store = Opened();
  const auto compile = [](absl::StatusOr<std::string> code) {
    return [code] {
      const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(2);
      while (std::chrono::steady_clock::now() < until) {
      }
      return code;
    };
  };
  EXPECT_TRUE(store->Get(SourceOf("a"), compile("code")).ok());
  EXPECT_EQ(store->Get(SourceOf("b"), compile(absl::InternalError("no"))).status(), absl::InternalError("no"));
  const CubinStore::Stats stats = store->stats();
  EXPECT_EQ(stats.compiled, 1);
  EXPECT_EQ(stats.refused, 1);
  EXPECT_GE(stats.compiling, absl::Milliseconds(4));
  EXPECT_EQ(stats.from_memory + stats.from_disk + stats.damaged + stats.write_errors, 0);
}

TEST_F(CubinStoreTest, AllThatDecidesTheCodeIsInTheKey) {
  const absl::string_view fast[] = {"--fmad=true"}, two[] = {"a", "b"}, one[] = {"a\n1:b"};
  const CubinStore::Source plain = SourceOf("t");
  CubinStore::Source other = plain;
  const auto expect_another = [&] { EXPECT_FALSE(CubinStore::KeyOf(plain) == CubinStore::KeyOf(other)); };
  other.text = "u";
  expect_another();
  other = plain;
  other.options = fast;
  expect_another();
  other = plain;
  other.compiler = "nvrtc 13.1";
  expect_another();
  other = plain;
  other.architecture = "sm_100";
  expect_another();
  other.options = two;
  CubinStore::Source joined = other;
  joined.options = one;
  EXPECT_FALSE(CubinStore::KeyOf(joined) == CubinStore::KeyOf(other));
}

TEST_F(CubinStoreTest, BadBytesAreCompiledAgain) {
  Got(Opened().get(), "a");
  ASSERT_EQ(Files(".cubin").size(), 1u);
  const fs::path file = Files(".cubin")[0];
  std::ifstream in(file, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  std::vector<std::string> damaged = {"", whole + "x", std::string(whole.size(), '\0')};
  for (size_t at = 0; at < whole.size(); ++at) {
    damaged.push_back(whole.substr(0, at));
    damaged.push_back(whole);
    damaged.back()[at] = static_cast<char>(damaged.back()[at] ^ 1);
  }
  for (const std::string& bytes : damaged) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
    const int before = compiled_;
    const auto store = Opened();
    EXPECT_EQ(Got(store.get(), "a"), "code of a");
    EXPECT_EQ(compiled_, before + 1);
    EXPECT_EQ(store->stats().damaged, 1);
    EXPECT_EQ(Got(Opened().get(), "a"), "code of a") << "it is written anew";
    EXPECT_EQ(compiled_, before + 1);
  }
  fs::remove(file);
  fs::create_symlink("/etc/hostname", file);
  const auto store = Opened();
  EXPECT_EQ(Got(store.get(), "a"), "code of a");
  EXPECT_EQ(store->stats().damaged, 1);
}

TEST_F(CubinStoreTest, AKilledProcessLeavesWholeEntriesAlone) {
  const std::string code(8 << 20, 'x');
  Opened();  // makes the folder
  const pid_t child = fork();
  if (child == 0) {
    const auto store = CubinStore::Open({.folder = folder_, .memory_bytes = 0, .disk_bytes = int64_t{1} << 40});
    for (int i = 0; store.ok(); ++i) {
      (*store)->Get(SourceOf(absl::StrCat(i)), [&] { return absl::StatusOr<std::string>(code); }).IgnoreError();
    }
    _exit(1);
  }
  ASSERT_GT(child, 0);
  while (Files(".cubin").empty() || Files(".unfinished").empty()) std::this_thread::yield();
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  const size_t entries = Files(".cubin").size();
  const auto store = Opened(int64_t{1} << 40);
  EXPECT_TRUE(Files(".unfinished").empty()) << "the next one clears up";
  for (size_t i = 0; i < entries; ++i) {
    const auto image = store->Get(SourceOf(absl::StrCat(i)), [&]() -> absl::StatusOr<std::string> {
      ADD_FAILURE() << i << " is not whole";
      return code;
    });
    EXPECT_TRUE(**image == code);
  }
  EXPECT_EQ(store->stats().damaged, 0);
}

TEST_F(CubinStoreTest, BothPlacesAreBounded) {
  const auto store = Opened(1000, 25);
  for (int i = 0; i < 30; ++i) Got(store.get(), absl::StrCat(i));  // of 9 or 10 bytes in memory, 91 on disk
  EXPECT_EQ(compiled_, 30);
  uint64_t bytes = 0;
  for (const fs::path& file : Files(".cubin")) bytes += fs::file_size(file);
  EXPECT_LE(bytes, 1000u);
  EXPECT_GE(bytes, 500u);
  Got(store.get(), "29");
  EXPECT_EQ(store->stats().from_memory, 1);
  Got(store.get(), "25");
  EXPECT_EQ(store->stats().from_disk, 1);
  Got(store.get(), "0");
  EXPECT_EQ(compiled_, 31);
}

TEST_F(CubinStoreTest, ItIsCompiledOnceForAllWhoAsk) {
  const auto store = CubinStore::InMemory();
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) EXPECT_EQ(Got(store.get(), absl::StrCat(i)), absl::StrCat("code of ", i));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(compiled_, 50);
}

// As a request does that is cancelled while another one compiles the same kernel.
TEST_F(CubinStoreTest, WhoWaitsForACompilationMayGiveUp) {
  const auto store = CubinStore::InMemory();
  std::promise<void> begun, go;
  std::future<std::string> compiler = std::async(std::launch::async, [&] {
    const auto image = store->Get(SourceOf("a"), [&]() -> absl::StatusOr<std::string> {
      begun.set_value();
      go.get_future().wait();
      ++compiled_;
      return "code of a";
    });
    return **image;
  });
  begun.get_future().wait();
  std::future<absl::Status> waiting = std::async(std::launch::async, [&] {
    const StopSignal::Check gone = [] { return Refuse(Refusal::kCancelled, "the client is gone"); };
    StopSignal stop(gone);
    const StopSignal::Scope scope(&stop);
    return store->Get(SourceOf("a"), [] { return absl::StatusOr<std::string>("another code"); }).status();
  });
  std::future<std::string> patient = std::async(std::launch::async, [&] { return Got(store.get(), "a"); });
  EXPECT_EQ(waiting.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  go.set_value();
  EXPECT_EQ(ReasonOf(waiting.get()), "CANCELLED");
  EXPECT_EQ(compiler.get(), "code of a");
  EXPECT_EQ(patient.get(), "code of a");
  EXPECT_EQ(compiled_, 1);
}

TEST_F(CubinStoreTest, ARefusalIsNotKept) {
  const auto store = CubinStore::InMemory();
  const auto refuse = []() -> absl::StatusOr<std::string> { return absl::InternalError("no"); };
  EXPECT_EQ(store->Get(SourceOf("a"), refuse).status(), absl::InternalError("no"));
  EXPECT_EQ(Got(store.get(), "a"), "code of a");
}

TEST_F(CubinStoreTest, AFolderThatCannotBeUsedIsNamed) {
  std::ofstream(folder_) << "a file";
  const absl::Status refused = CubinStore::Open({.folder = folder_}).status();
  EXPECT_TRUE(absl::IsUnavailable(refused));
  EXPECT_THAT(std::string(refused.message()),
              testing::StartsWith("the folder of kernels, " + folder_ + ", cannot be opened"));
}

// A process with the folder that compiles a program, whose nodes are named by `name`. Returns how often it asked NVRTC.
class CubinStoreOfProgramsTest : public CubinStoreTest {
 protected:
  long Compiles(absl::string_view name) {
    auto store = CubinStore::Open({.folder = folder_});
    auto backend = MakeCudaBackend({.libraries = libraries_.get(),
                                    .tensor_bytes = 16 * kMiB,
                                    .host_memory = host_memory_,
                                    .cubins = *std::move(store)});
    EXPECT_TRUE(backend.ok()) << backend.status();
    const std::string text =
        absl::StrCat("graph \"g\" {\n  %", name, "_x = input : i32[64,50]\n  %", name, "_s = multiply(%", name, "_x, %",
                     name, "_x)\n  %", name, "_r = reduce(%", name,
                     "_s) {kind = sum, dimensions = [1]}\n  output \"sum\" = %", name, "_r\n}");
    const long before = hostCudaCalls("nvrtcCompileProgram");
    const auto program = Compile(ParsedGraph(text), {.device = "d:0"}, Fingerprint(), backend->get());
    EXPECT_TRUE(program.ok()) << program.status();
    return hostCudaCalls("nvrtcCompileProgram") - before;
  }

  const std::shared_ptr<HostBufferPool> host_memory_ = HostBufferPool::Create(1 << 30, 0);
};

TEST_F(CubinStoreOfProgramsTest, KernelsDoNotDependOnNames) {
  EXPECT_GT(Compiles("a"), 0);
  EXPECT_EQ(Compiles("b"), 0);
}

// As after another driver: the entries are whole.
TEST_F(CubinStoreOfProgramsTest, CodeThatTheDriverRefusesIsCompiledAnew) {
  const long kernels = Compiles("a");
  const std::string code = "no code of this driver";
  for (const fs::path& file : Files(".cubin")) {
    std::ofstream(file) << "tensord cubin 1\n" << Fingerprint::Of(code).ToHex() << "\n" << code;
  }
  EXPECT_EQ(Compiles("a"), kernels);
  EXPECT_EQ(Compiles("a"), 0);
}

// The bytes of a program, by which caches are bounded: what is dropped meanwhile was others'.
TEST_F(CubinStoreTest, WhatIsDroppedIsNotTakenOffWhatANewOneTakes) {
  const std::unique_ptr<CubinStore> store = Opened(1 << 20, 1 << 20);
  const auto get = [&](absl::string_view text, size_t bytes) {
    return *store->Get(SourceOf(text), [&]() -> absl::StatusOr<std::string> { return std::string(bytes, 'c'); });
  };
  get("large", 1 << 20);
  const AllocatedBytes allocated;
  const CubinStore::Image kept = get("small", 1 << 16);
  EXPECT_EQ(store->stats().memory_bytes, 1 << 16);
  EXPECT_GE(allocated.bytes(), 1 << 16);
  EXPECT_LT(allocated.bytes(), 1 << 17);
}

TEST_F(CubinStoreTest, KernelsThatAreGoneAreNotTakenOffWhatANewOneTakes) {
  const std::shared_ptr<Context> context = Entered();
  const auto compiler = KernelCompiler::Create(context, *libraries_->nvrtc(), CubinStore::InMemory());
  ASSERT_TRUE(compiler.ok()) << compiler.status();
  const std::string source =
      absl::StrCat("// ", std::string(1 << 14, 'x'), "\nextern \"C\" __global__ void nothing() {}\n");
  const auto compile = [&](int64_t blocks) {
    return *(*compiler)->Compile({.source = source, .launches = {{.entry = "nothing", .blocks = blocks}}});
  };
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int64_t blocks = 1; blocks < 100; ++blocks) {
    const AllocatedBytes allocated;
    const auto kernel = compile(blocks);
    least = std::min(least, allocated.bytes());
  }
  EXPECT_GE(least, 0);
}

TEST_F(CubinStoreTest, KernelsThatAreGoneHoldNoText) {
  const std::shared_ptr<Context> context = Entered();
  const auto compiler = KernelCompiler::Create(context, *libraries_->nvrtc(), CubinStore::InMemory());
  ASSERT_TRUE(compiler.ok()) << compiler.status();
  const std::string source =
      absl::StrCat("// ", std::string(1 << 16, 'x'), "\nextern \"C\" __global__ void nothing() {}\n");
  const auto compile = [&](int64_t blocks) {
    return (*compiler)->Compile({.source = source, .launches = {{.entry = "nothing", .blocks = blocks}}});
  };
  ASSERT_TRUE(compile(1).ok());
  const AllocatedBytes allocated;
  for (int64_t blocks = 2; blocks < 40; ++blocks) ASSERT_TRUE(compile(blocks).ok());
  EXPECT_LT(allocated.bytes(), 1 << 16);
}

// It may say of itself that it is of the same version.
TEST_F(CubinStoreTest, AnotherBuildOfTheCompilerCompilesAnew) {
  const std::shared_ptr<Context> context = Entered();
  const std::shared_ptr<CubinStore> store = CubinStore::InMemory();
  const Nvrtc* const nvrtc = *libraries_->nvrtc();
  Nvrtc other = *nvrtc;
  other.nvrtcVersion = [](int* major, int* minor) {
    *major = 13;
    *minor = 0;
    return kNvrtcSuccess;
  };
  for (const Nvrtc* const table : {nvrtc, nvrtc, const_cast<const Nvrtc*>(&other)}) {
    const auto compiler = KernelCompiler::Create(context, table, store);
    ASSERT_TRUE(compiler.ok()) << compiler.status();
    const auto kernel = (*compiler)->Compile(
        {.source = "extern \"C\" __global__ void nothing() {}", .launches = {{.entry = "nothing"}}});
    EXPECT_TRUE(kernel.ok()) << kernel.status();
  }
  EXPECT_EQ(store->stats().compiled, 2);
}

}  // namespace
}  // namespace tensord::cuda
