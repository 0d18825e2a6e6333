#include "tests/hostcuda/access_checks.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <utility>

#include "tests/hostcuda/host_fibers.h"
#include "tests/hostcuda/host_memory.h"
#include "tests/hostcuda/host_settings.h"

namespace tensord::cuda::host {
namespace {

constexpr uint32_t kCountedBlocks = 4;
constexpr size_t kMaxBytes = 16'000'000;  // that are remembered from launch to launch
constexpr uintptr_t kSectorBytes = 32, kBankBytes = 4, kBanks = 32;

// The readers of a byte that are several threads of one warp.
int32_t ReaderOfWarp(uint32_t thread) { return -3 - static_cast<int32_t>(thread / kWarp); }

std::mutex g_mutex;
HostCounts g_counts = {};
std::atomic<long> g_problems{0};

}  // namespace

HostCounts TakeCounts() {
  std::lock_guard lock(g_mutex);
  return std::exchange(g_counts, HostCounts{});
}

long AllProblems() { return g_problems; }

AccessChecks& AccessChecks::Get() {
  thread_local AccessChecks checks;
  return checks;
}

void AccessChecks::Begin(CheckedLaunch launch) {
  launch_ = std::move(launch);
  ++number_;
  problems_ = 0;
  requests_.clear();
  sites_.clear();
  if (bytes_.size() > kMaxBytes) bytes_.clear();
}

long AccessChecks::End() {
  AddCounts();
  g_problems += problems_;
  return problems_;
}

void AccessChecks::Report(const char* what, const void* at, size_t bytes) {
  if (++problems_ > 3) return;
  const ThreadPosition& here = Position();
  std::fprintf(stderr, "hostcuda: %s: %zu bytes at %p, thread %u of block %u of %s\n", what, bytes, at, here.thread,
               here.block, launch_.kernel.c_str());
}

// True if something orders the present thread behind an access that `other` made when it had waited so often.
bool AccessChecks::IsOrdered(int32_t other, uint32_t barrier, uint32_t shuffle) const {
  const ThreadPosition& here = Position();
  const auto thread = static_cast<int32_t>(here.thread);
  if (other == thread || barrier != here.barriers) return true;
  return other / static_cast<int32_t>(kWarp) == thread / static_cast<int32_t>(kWarp) && shuffle != here.shuffles;
}

// The same for reads of several threads.
bool AccessChecks::IsReadOrdered(const Byte& byte) const {
  if (byte.reader >= 0) return IsOrdered(byte.reader, byte.read_barrier, byte.read_shuffle);
  const ThreadPosition& here = Position();
  if (byte.read_barrier != here.barriers) return true;
  return byte.reader == ReaderOfWarp(here.thread) && byte.read_shuffle != here.shuffles;
}

// Returns the byte's reader when the present thread has read it as well. Reads that a shuffle has ordered before are
// forgotten: a thread of another warp that races with one of them races with the present thread too.
int32_t AccessChecks::ReaderOf(const Byte& byte) const {
  const ThreadPosition& here = Position();
  const auto thread = static_cast<int32_t>(here.thread);
  if (byte.reader == -1 || byte.reader == thread || byte.read_barrier != here.barriers) return thread;
  const int32_t warp = ReaderOfWarp(here.thread);
  if (byte.reader != warp && (byte.reader < 0 || ReaderOfWarp(static_cast<uint32_t>(byte.reader)) != warp)) return -2;
  return byte.read_shuffle == here.shuffles ? warp : thread;
}

void AccessChecks::CheckByte(Byte* byte, const char* at, size_t bytes, HostAccess kind) {
  const ThreadPosition& here = Position();
  const bool is_other_block = byte->block != here.block;
  const bool is_both_atomic = byte->is_atomic && kind == kHostAtomic;
  if (byte->writer != -1 && !is_both_atomic &&
      (is_other_block || !IsOrdered(byte->writer, byte->write_barrier, byte->write_shuffle))) {
    Report(kind == kHostRead ? "race of a write and a read" : "race of two writes", at, bytes);
  } else if (kind != kHostRead && byte->reader != -1 && (is_other_block || !IsReadOrdered(*byte))) {
    Report("race of a read and a write", at, bytes);
  }
  if (is_other_block) *byte = {number_, here.block};
  const auto thread = static_cast<int32_t>(here.thread);
  if (kind == kHostRead) {
    byte->reader = ReaderOf(*byte);
    byte->read_barrier = here.barriers;
    byte->read_shuffle = here.shuffles;
  } else {
    byte->writer = thread;
    byte->write_barrier = here.barriers;
    byte->write_shuffle = here.shuffles;
    byte->is_atomic = kind == kHostAtomic;
    byte->reader = -1;
  }
}

void AccessChecks::CheckRace(const char* at, size_t bytes, HostAccess kind, bool is_shared) {
  const ThreadPosition& here = Position();
  const long problems = problems_;
  for (size_t i = 0; i < bytes && problems_ == problems; ++i) {
    Byte& byte = bytes_[reinterpret_cast<uintptr_t>(at) + i];
    // Shared memory is another one in each block.
    if (byte.launch != number_ || (is_shared && byte.block != here.block)) byte = {number_, here.block};
    CheckByte(&byte, at, bytes, kind);
  }
}

void AccessChecks::Count(const char* at, size_t bytes, bool is_shared, void* instruction) {
  const ThreadPosition& here = Position();
  if (here.block >= kCountedBlocks) return;
  Site& site = sites_[instruction];
  site.bytes = bytes;
  site.is_shared = is_shared;
  site.turns.resize(kCountedBlocks * kMaxThreads);
  const uint32_t turn = site.turns[here.block * kMaxThreads + here.thread]++;
  std::set<uintptr_t>& touched = requests_[{instruction, here.block, here.thread / kWarp, turn}];
  const uintptr_t unit = is_shared ? kBankBytes : kSectorBytes, begin = reinterpret_cast<uintptr_t>(at);
  for (uintptr_t u = begin / unit; u <= (begin + bytes - 1) / unit; ++u) touched.insert(u);
}

void AccessChecks::Access(const void* address, size_t bytes, HostAccess kind, void* instruction) {
  const char* const at = static_cast<const char*>(address);
  if (launch_.state.Has(at)) return;
  const bool is_dynamic = launch_.shared.Has(at), is_global = DeviceMemory::Get().IsAlias(at);
  if (is_global) {
    if (!DeviceMemory::Get().Has(at, bytes)) Report("outside of every allocation", at, bytes);
  } else if (is_dynamic) {
    if (at + bytes > launch_.dynamic_bytes.end) Report("outside of the shared memory", at, bytes);
  } else if (!launch_.statics.Has(at)) {
    return;  // the thread's own
  }
  CheckRace(at, bytes, kind, !is_global);
  Count(at, bytes, !is_global, instruction);
}

void AccessChecks::AddCounts() {
  std::map<void*, HostCounts> by_site;
  for (const auto& [request, touched] : requests_) {
    void* const instruction = std::get<0>(request);
    HostCounts& counts = by_site[instruction];
    if (!sites_[instruction].is_shared) {
      ++counts.global_requests;
      counts.global_sectors += static_cast<long>(touched.size());
      continue;
    }
    std::map<uintptr_t, long> words;  // by bank
    long most = 1;
    for (uintptr_t unit : touched) most = std::max(most, ++words[unit % kBanks]);
    ++counts.shared_requests;
    counts.shared_turns += most;
  }
  const bool prints = Settings::Get().IsOn("COUNT");
  std::lock_guard lock(g_mutex);
  ++g_counts.launches;
  for (const auto& [instruction, counts] : by_site) {
    g_counts.global_requests += counts.global_requests;
    g_counts.global_sectors += counts.global_sectors;
    g_counts.shared_requests += counts.shared_requests;
    g_counts.shared_turns += counts.shared_turns;
    if (!prints) continue;
    const Site& site = sites_[instruction];
    const long requests = site.is_shared ? counts.shared_requests : counts.global_requests;
    const long units = site.is_shared ? counts.shared_turns : counts.global_sectors;
    std::fprintf(stderr, "hostcuda: %s: access of %2zu bytes, %6ld requests of warps, %.2f %s each\n",
                 launch_.kernel.c_str(), site.bytes, requests, double(units) / double(requests),
                 site.is_shared ? "turns of the banks" : "sectors");
  }
}

}  // namespace tensord::cuda::host
