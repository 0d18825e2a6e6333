#ifndef TENSORD_ENGINE_EXEC_MEMORY_MEMORY_HOLES_H_
#define TENSORD_ENGINE_EXEC_MEMORY_MEMORY_HOLES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace tensord {

// The free ranges of a piece of memory. Freed ranges are merged, and the smallest that fits is used again.
class MemoryHoles {
 public:
  enum class Ends {
    kLow,   // at the low end of a range
    kBoth,  // at the high end of the last range where the first is another: what comes in turns keeps to its end
  };
  explicit MemoryHoles(Ends ends = Ends::kLow) : ends_(ends) {}

  // Returns the smallest range of these bytes, or nothing.
  std::optional<int64_t> Take(int64_t bytes);
  // Takes a hole at the low end, whatever the ends are.
  std::optional<int64_t> TakeLow(int64_t bytes);
  // Takes as Take does; if nothing fits, the memory grows, but not beyond `end`.
  std::optional<int64_t> TakeBelow(int64_t bytes, int64_t end);
  // Takes as Take does; if nothing fits, the memory grows. Nothing if that overflows.
  std::optional<int64_t> TakeOrGrow(int64_t bytes);
  // Gives a range back, or in the first place.
  void Free(int64_t offset, int64_t bytes);
  // Returns the end of all ranges that there ever were.
  int64_t end() const { return end_; }
  // Returns one past the last byte that was ever taken.
  int64_t used() const { return used_; }

 private:
  // Returns the begin of a range that is taken by growing.
  int64_t GrowFrom() const;
  std::optional<int64_t> TakeHole(int64_t bytes, bool high);
  void Insert(int64_t offset, int64_t bytes);
  void Remove(int64_t offset, int64_t bytes);

  std::map<int64_t, int64_t> by_offset_;
  std::set<std::pair<int64_t, int64_t>> by_size_;
  const Ends ends_;
  int64_t end_ = 0;
  int64_t used_ = 0;
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_MEMORY_MEMORY_HOLES_H_
