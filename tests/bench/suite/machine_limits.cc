#include "tests/bench/suite/machine_limits.h"

#include <sys/mman.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/bench/suite/machine_limits.cc"
#include "hwy/aligned_allocator.h"
#include "hwy/foreach_target.h"  // must stand before highway.h
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tensord {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kBlockElements = 512;  // of 8 bytes, of each side at a time

// Reads and writes its share in turns of blocks, as a kernel does.
uint64_t ReadAndWrite(const uint64_t* from, int64_t read, uint64_t* to, int64_t written) {
  const hn::ScalableTag<uint64_t> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto sum = hn::Zero(d);
  for (int64_t i = 0, o = 0; i < read || o < written;) {
    for (const int64_t end = std::min(read, i + kBlockElements); i < end; i += lanes) {
      sum = hn::Xor(sum, hn::Load(d, from + i));
    }
    // As many of the results as the read operands stand for.
    const int64_t due =
        i >= read
            ? written
            : static_cast<int64_t>(static_cast<double>(written) / static_cast<double>(read) * static_cast<double>(i)) /
                  kBlockElements * kBlockElements;
    for (; o < due; o += lanes) hn::Stream(sum, d, to + o);
  }
  return hn::GetLane(sum);
}

template <typename T>
double MultiplyAdd(int64_t rounds) {
  const hn::ScalableTag<T> d;
  const auto x = hn::Set(d, T(0.5)), y = hn::Set(d, T(1));
  // Chains that start alike would be computed once.
  const auto start = [d, rounds](int64_t chain) HWY_ATTR { return hn::Set(d, static_cast<T>(rounds + chain)); };
  auto a = start(0), b = start(1), c = start(2), e = start(3), f = start(4), g = start(5), h = start(6), i = start(7),
       j = start(8), k = start(9);
  for (int64_t round = 0; round < rounds; ++round) {
    a = hn::MulAdd(a, x, y), b = hn::MulAdd(b, x, y), c = hn::MulAdd(c, x, y), e = hn::MulAdd(e, x, y);
    f = hn::MulAdd(f, x, y), g = hn::MulAdd(g, x, y), h = hn::MulAdd(h, x, y), i = hn::MulAdd(i, x, y);
    j = hn::MulAdd(j, x, y), k = hn::MulAdd(k, x, y);
  }
  const auto sum = hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, e)), hn::Add(hn::Add(f, g), hn::Add(h, i)));
  return static_cast<double>(hn::GetLane(hn::Add(sum, hn::Add(j, k))));
}

double MultiplyAddF32(int64_t rounds) { return MultiplyAdd<float>(rounds); }
double MultiplyAddF64(int64_t rounds) { return MultiplyAdd<double>(rounds); }
constexpr int kSumsAtOnce = 6;  // with their factors in registers of any machine, and more than an op takes cycles

// Products of which each is made of the one before it, in chains apart, and their sums: nothing is read from memory.
template <typename T, class Make, class Add>
double AddProducts(int64_t rounds, const Make& make, const Add& add) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const V factor = hn::Set(d, static_cast<T>(1));
  const auto start = [d, rounds](int64_t chain) HWY_ATTR { return hn::Set(d, static_cast<T>((rounds + chain) % 5)); };
  V p0 = start(0), p1 = start(1), p2 = start(2), p3 = start(3), p4 = start(4), p5 = start(5);
  V s0 = p0, s1 = p1, s2 = p2, s3 = p3, s4 = p4, s5 = p5;
  for (int64_t round = 0; round < rounds; ++round) {
    p0 = make(p0, factor), s0 = add(s0, p0), p1 = make(p1, factor), s1 = add(s1, p1);
    p2 = make(p2, factor), s2 = add(s2, p2), p3 = make(p3, factor), s3 = add(s3, p3);
    p4 = make(p4, factor), s4 = add(s4, p4), p5 = make(p5, factor), s5 = add(s5, p5);
  }
  const V all = hn::Xor(hn::Xor(hn::Xor(s0, s1), hn::Xor(s2, s3)), hn::Xor(s4, s5));
  return static_cast<double>(hn::GetLane(all));
}

template <typename T>
double AddProductsOf(Algebra algebra, int64_t rounds) {
  using V = hn::Vec<hn::ScalableTag<T>>;
  const auto sum = [](V a, V b) HWY_ATTR { return hn::Add(a, b); };
  const auto product = [](V a, V b) HWY_ATTR { return hn::Mul(a, b); };
  const auto least = [](V a, V b) HWY_ATTR { return hn::Min(a, b); };
  const auto greatest = [](V a, V b) HWY_ATTR { return hn::Max(a, b); };
  switch (algebra) {
    case Algebra::kMinPlus:
      return AddProducts<T>(rounds, sum, least);
    case Algebra::kMaxTimes:
      return AddProducts<T>(rounds, product, greatest);
    default:
      return AddProducts<T>(rounds, sum, greatest);
  }
}

// Ors of ands, each one instruction where the machine has it.
double AddBits(int64_t rounds) {
  using V = hn::Vec<hn::ScalableTag<uint64_t>>;
  const V factor = hn::Set(hn::ScalableTag<uint64_t>(), static_cast<uint64_t>(rounds));
  const auto or_and = [factor](V a, V b) HWY_ATTR { return hn::OrAnd(a, b, factor); };
  return AddProducts<uint64_t>(rounds, or_and, or_and);
}

double AddSemiringProducts(Algebra algebra, DType dtype, int64_t rounds) {
  switch (dtype) {
    case DType::kF32:
      return AddProductsOf<float>(algebra, rounds);
    case DType::kF64:
      return AddProductsOf<double>(algebra, rounds);
    case DType::kI32:
      return AddProductsOf<int32_t>(algebra, rounds);
    case DType::kI64:
      return AddProductsOf<int64_t>(algebra, rounds);
    default:
      return AddBits(rounds);
  }
}

// Returns the products of a round. A product of bits is one op, of which a round has two a sum.
int64_t ProductsARound(DType dtype) {
  const int64_t bits = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<uint64_t>())) * 64;
  return kSumsAtOnce * (dtype == DType::kBool ? 2 * bits : bits / (8 * SizeOf(dtype)));
}

int64_t LanesF32() { return static_cast<int64_t>(hn::Lanes(hn::ScalableTag<float>())); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tensord
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord {
namespace {

HWY_EXPORT(ReadAndWrite);
HWY_EXPORT(MultiplyAddF32);
HWY_EXPORT(MultiplyAddF64);
HWY_EXPORT(LanesF32);
HWY_EXPORT(AddSemiringProducts);
HWY_EXPORT(ProductsARound);

constexpr int kRounds = 7;
constexpr int64_t kBlock = 512;
constexpr int64_t kHugePage = int64_t{2} << 20;

// Milliseconds of the best round of a work that the threads share.
double BestMs(int threads, const std::function<void(int)>& share) {
  std::barrier start(threads), end(threads);
  double best = 1e9;
  const auto work = [&](int t) {
    for (int round = 0; round < kRounds; ++round) {
      start.arrive_and_wait();
      const auto begin = std::chrono::steady_clock::now();
      share(t);
      end.arrive_and_wait();
      const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
      if (t == 0) best = std::min(best, took.count());
    }
  };
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(work, t);
  work(0);
  for (std::thread& other : others) other.join();
  return best;
}

struct Unmap {
  size_t bytes;
  void operator()(uint64_t* memory) const { munmap(memory, bytes); }
};
using Memory = std::unique_ptr<uint64_t[], Unmap>;

// Touched memory of so many elements of 8 bytes.
Memory MapMemory(int64_t elements) {
  const size_t bytes = static_cast<size_t>((elements * 8 + kHugePage) / kHugePage * kHugePage);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return Memory(nullptr, Unmap{0});
  madvise(memory, bytes, MADV_HUGEPAGE);
  std::memset(memory, 1, bytes);
  return Memory(static_cast<uint64_t*>(memory), Unmap{bytes});
}

double PeakFlops(int threads, int64_t lanes, const std::function<double(int64_t)>& multiply_add) {
  constexpr int64_t kTimes = 200000, kChains = 10;
  volatile double used = 0;
  const double ms = BestMs(threads, [&](int t) {
    const double sum = multiply_add(kTimes);
    if (t == 0) used = sum;
  });
  return static_cast<double>(threads * kTimes * kChains * lanes * 2) / ms;
}

}  // namespace

double MemoryFloorMs(int64_t read_bytes, int64_t written_bytes, int threads) {
  // Elements of 8 bytes a thread, whole blocks.
  const auto share = [threads](int64_t bytes) { return (bytes / 8 / threads + kBlock - 1) / kBlock * kBlock; };
  const int64_t read = share(read_bytes), written = share(written_bytes);
  std::vector<Memory> from, to;
  for (int t = 0; t < threads; ++t) {
    from.push_back(MapMemory(read));
    to.push_back(MapMemory(written));
    if (from.back() == nullptr || to.back() == nullptr) return 0;
  }
  volatile uint64_t used = 0;
  return BestMs(threads, [&](int t) {
    const size_t mine = static_cast<size_t>(t);
    const uint64_t sum = HWY_DYNAMIC_DISPATCH(ReadAndWrite)(from[mine].get(), read, to[mine].get(), written);
    if (t == 0) used = sum;
  });
}

double CachedCopyRate(int threads) {
  constexpr int64_t kElements = int64_t{1} << 18;  // of each side: past the caches of a core
  constexpr int kTimes = 16;
  std::vector<Memory> from, to;
  for (int t = 0; t < threads; ++t) {
    from.push_back(MapMemory(kElements));
    to.push_back(MapMemory(kElements));
    if (from.back() == nullptr || to.back() == nullptr) return 0;
  }
  const double ms = BestMs(threads, [&](int t) {
    const size_t mine = static_cast<size_t>(t);
    for (int time = 0; time < kTimes; ++time) std::memcpy(to[mine].get(), from[mine].get(), kElements * 8);
  });
  return static_cast<double>(threads) * kTimes * kElements * 8 * 2 / ms / 1e6;
}

double PeakSemiringProducts(Algebra algebra, DType dtype, int threads) {
  constexpr int64_t kTimes = 100000;
  volatile double used = 0;
  const double ms = BestMs(threads, [&](int t) {
    const double sum = HWY_DYNAMIC_DISPATCH(AddSemiringProducts)(algebra, dtype, kTimes);
    if (t == 0) used = sum;
  });
  return static_cast<double>(threads * kTimes * HWY_DYNAMIC_DISPATCH(ProductsARound)(dtype)) / ms;
}

double PeakFlopsF32(int threads) {
  return PeakFlops(threads, HWY_DYNAMIC_DISPATCH(LanesF32)(), HWY_DYNAMIC_DISPATCH(MultiplyAddF32));
}

double PeakFlopsF64(int threads) {
  return PeakFlops(threads, HWY_DYNAMIC_DISPATCH(LanesF32)() / 2, HWY_DYNAMIC_DISPATCH(MultiplyAddF64));
}

}  // namespace tensord
#endif  // HWY_ONCE
