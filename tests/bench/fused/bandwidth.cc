#include "tests/bench/fused/bandwidth.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "hwy/aligned_allocator.h"
#include "hwy/highway.h"

namespace tensord {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr int kRounds = 7;
constexpr int64_t kBlock = 4096;  // bytes of each side at a time

// Reads and writes its share in turns of blocks, as a kernel does.
uint64_t ReadAndWrite(const uint64_t* from, int64_t read, uint64_t* to, int64_t written) {
  const hn::ScalableTag<uint64_t> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), block = kBlock / 8;
  auto sum = hn::Zero(d);
  for (int64_t i = 0, o = 0; i < read || o < written;) {
    for (const int64_t end = std::min(read, i + block); i < end; i += lanes) sum = hn::Xor(sum, hn::Load(d, from + i));
    // As many of the results as the operands that were read stand for.
    const int64_t due =
        i >= read
            ? written
            : static_cast<int64_t>(static_cast<double>(written) / static_cast<double>(read) * static_cast<double>(i)) /
                  block * block;
    for (; o < due; o += lanes) hn::Stream(sum, d, to + o);
  }
  return hn::GetLane(sum);
}

}  // namespace

double MemoryFloorMs(int64_t read_bytes, int64_t written_bytes, int threads) {
  // Elements of 8 bytes a thread, whole blocks.
  const auto share = [threads](int64_t bytes) {
    return (bytes / 8 / threads + kBlock / 8 - 1) / (kBlock / 8) * (kBlock / 8);
  };
  const int64_t read = share(read_bytes), written = share(written_bytes);
  std::vector<hwy::AlignedFreeUniquePtr<uint64_t[]>> from, to;
  for (int t = 0; t < threads; ++t) {
    from.push_back(hwy::AllocateAligned<uint64_t>(static_cast<size_t>(read)));
    to.push_back(hwy::AllocateAligned<uint64_t>(static_cast<size_t>(written)));
    std::memset(from.back().get(), 1, static_cast<size_t>(read) * 8);
    std::memset(to.back().get(), 1, static_cast<size_t>(written) * 8);
  }
  std::barrier start(threads), end(threads);
  double best = 1e9;
  volatile uint64_t used = 0;
  const auto work = [&](int t) {
    const size_t mine = static_cast<size_t>(t);
    for (int round = 0; round < kRounds; ++round) {
      start.arrive_and_wait();
      const auto begin = std::chrono::steady_clock::now();
      const uint64_t sum = ReadAndWrite(from[mine].get(), read, to[mine].get(), written);
      end.arrive_and_wait();
      if (t != 0) continue;
      used = sum;
      best =
          std::min(best, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
    }
  };
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(work, t);
  work(0);
  for (std::thread& other : others) other.join();
  return best;
}

}  // namespace tensord
