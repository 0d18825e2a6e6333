#include "backends/cpu/indexing/scatter_rows.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "backends/cpu/machine/cache_line.h"
#include "backends/cpu/machine/streamed_stores.h"
#include "backends/cpu/machine/thread_pool.h"

namespace tensord::cpu {
namespace {

// Rows that the first-level cache keeps while they take their updates.
constexpr int64_t kScatterBlockBytes = int64_t{16} << 10;
constexpr int64_t kBlocksATask = 16;
// Windows are sorted in so many parts, by sizes alone.
constexpr int64_t kScatterParts = 8;
// Rows of updates lie anywhere; asked for so many ahead they arrive in time.
constexpr int64_t kUpdatesAhead = 8;
// A task with that many times its share of the updates makes threads wait.
constexpr int64_t kMostUneven = 2;

}  // namespace

std::optional<ScatterRows> ScatterRows::Create(const WindowPlan& plan, int64_t operand_elements, int64_t element_bytes,
                                               const ScatterLoops& loops) {
  if (plan.num_windows() == 0 || !plan.is_lookup() || plan.windows_step() <= 0) return std::nullopt;
  const MergedWindow window = MergeWindowAxes(plan.window());
  const WindowPlan::Lookup lookup = plan.lookup();
  const int64_t rows = lookup.limit + 1;
  const bool are_rows = window.size() == 1 && window[0].operand_stride == 1 && window[0].windows_stride == 1 &&
                        window[0].size == lookup.operand_step && operand_elements == rows * lookup.operand_step;
  const int64_t row_bytes = lookup.operand_step * element_bytes;
  constexpr int64_t kMost = std::numeric_limits<uint32_t>::max();
  if (!are_rows || row_bytes < kLineBytes || row_bytes > kScatterBlockBytes || rows > kMost ||
      plan.num_windows() > kMost) {
    return std::nullopt;
  }
  ScatterRows made;
  made.loops_ = loops;
  made.index_dtype_ = plan.index_dtype();
  made.index_step_ = lookup.index_step;
  made.num_windows_ = plan.num_windows();
  made.num_rows_ = rows;
  made.row_elements_ = lookup.operand_step;
  made.row_bytes_ = row_bytes;
  made.update_bytes_ = plan.windows_step() * element_bytes;
  while ((row_bytes << (made.row_bits_ + 1)) <= kScatterBlockBytes) ++made.row_bits_;
  made.num_blocks_ = ((rows - 1) >> made.row_bits_) + 1;
  return made;
}

int64_t ScatterRows::scratch_bytes() const {
  return num_windows_ * static_cast<int64_t>(sizeof(Update)) +
         kScatterParts * num_blocks_ * static_cast<int64_t>(sizeof(uint32_t));
}

template <typename Index>
std::optional<ScatterRows::Sorted> ScatterRows::Sort(const Index* indices, void* scratch, ThreadPool* pool) const {
  Update* const updates = static_cast<Update*>(scratch);
  uint32_t* const counts = reinterpret_cast<uint32_t*>(updates + num_windows_);  // by part, then block
  const auto for_each = [&](int64_t part, const auto& f) {
    const int64_t end = num_windows_ * (part + 1) / kScatterParts;
    for (int64_t i = num_windows_ * part / kScatterParts; i < end; ++i) {
      const int64_t row = indices[i * index_step_];
      if (row >= 0 && row < num_rows_) f(static_cast<uint32_t>(i), static_cast<uint32_t>(row));
    }
  };
  const auto count_rows = [&](int64_t part) {
    uint32_t* const count = counts + part * num_blocks_;
    std::fill_n(count, num_blocks_, 0);
    for_each(part, [&](uint32_t, uint32_t row) { ++count[row >> row_bits_]; });
  };
  // Counts become places: without all of them nothing may follow.
  if (!pool->ParallelFor(kScatterParts, count_rows)) return std::nullopt;
  uint32_t total = 0;
  for (int64_t block = 0; block < num_blocks_; ++block) {
    for (int64_t part = 0; part < kScatterParts; ++part) {
      uint32_t& count = counts[part * num_blocks_ + block];
      const uint32_t begin = total;
      total += count;
      count = begin;
    }
  }
  const auto place = [&](int64_t part) {
    uint32_t* const next = counts + part * num_blocks_;
    for_each(part, [&](uint32_t window, uint32_t row) { updates[next[row >> row_bits_]++] = {window, row}; });
  };
  if (!pool->ParallelFor(kScatterParts, place)) return std::nullopt;
  return Sorted{.updates = updates, .ends = counts + (kScatterParts - 1) * num_blocks_};
}

int64_t ScatterRows::NumTasks() const { return (num_blocks_ - 1) / kBlocksATask + 1; }

bool ScatterRows::IsEven(const Sorted& sorted, int threads) const {
  if (threads <= 1) return true;
  const int64_t total = sorted.begin_of(num_blocks_);
  int64_t most = 0;
  for (int64_t task = 0; task < NumTasks(); ++task) {
    const int64_t end = std::min(num_blocks_, (task + 1) * kBlocksATask);
    most = std::max<int64_t>(most, sorted.begin_of(end) - sorted.begin_of(task * kBlocksATask));
  }
  return most <= std::max(total / threads, kMostUneven * total / NumTasks());
}

void ScatterRows::RunBlock(const Call& call, const Sorted& sorted, int64_t block, char* rows) const {
  const int64_t first = block << row_bits_;
  const int64_t bytes = std::min(num_rows_ - first, int64_t{1} << row_bits_) * row_bytes_;
  const char* const from = call.operand + first * row_bytes_;
  const int64_t end = sorted.ends[block], last = sorted.begin_of(num_blocks_);
  int64_t at = sorted.begin_of(block);
  if (at == end) return StreamCopy(from, call.result + first * row_bytes_, bytes);
  std::memcpy(rows, from, static_cast<size_t>(bytes));
  // The next block comes while this one takes its updates; past the end of the table that does nothing.
  uintptr_t next_block = reinterpret_cast<uintptr_t>(from) + static_cast<uintptr_t>(bytes);
  const int64_t lines_an_update = (bytes / kLineBytes - 1) / (end - at) + 1;
  for (; at < end; ++at) {
    for (int64_t line = 0; line < lines_an_update; ++line, next_block += kLineBytes) {
      __builtin_prefetch(reinterpret_cast<const char*>(next_block));
    }
    const Update& update = sorted.updates[at];
    if (at + kUpdatesAhead < last) {
      const char* const next = call.updates + sorted.updates[at + kUpdatesAhead].window * update_bytes_;
      for (int64_t line = 0; line < std::min(row_bytes_, kPrefetchedBytes); line += kLineBytes) {
        __builtin_prefetch(next + line);
      }
    }
    loops_.row(rows + (update.row - first) * row_bytes_, call.updates + update.window * update_bytes_, row_elements_, 1,
               1);
  }
  StreamCopy(rows, call.result + first * row_bytes_, bytes);
}

void ScatterRows::RunTask(const Call& call, const Sorted& sorted, int64_t task) const {
  alignas(kLineBytes) char rows[kScatterBlockBytes];
  const int64_t end = std::min(num_blocks_, (task + 1) * kBlocksATask);
  for (int64_t block = task * kBlocksATask; block < end; ++block) RunBlock(call, sorted, block, rows);
  FlushStreamed();
}

bool ScatterRows::Run(const Call& call, void* scratch, ThreadPool* pool) const {
  const std::optional<Sorted> sorted = index_dtype_ == DType::kI32
                                           ? Sort(static_cast<const int32_t*>(call.indices), scratch, pool)
                                           : Sort(static_cast<const int64_t*>(call.indices), scratch, pool);
  if (!sorted.has_value()) return true;  // nobody wants the result
  if (!IsEven(*sorted, pool->threads())) return false;
  pool->ParallelFor(NumTasks(), [&](int64_t task) { RunTask(call, *sorted, task); });
  return true;
}

}  // namespace tensord::cpu
