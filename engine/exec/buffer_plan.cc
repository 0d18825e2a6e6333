#include "engine/exec/buffer_plan.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/checked_math.h"
#include "engine/base/refusal.h"
#include "engine/ops/core_ops.h"

namespace tensord {
namespace {

// Nothing where that overflows.
std::optional<int64_t> Align(int64_t bytes) {
  const std::optional<int64_t> last = CheckedAdd(bytes, kBufferAlignment - 1);
  if (!last.has_value()) return std::nullopt;
  return *last / kBufferAlignment * kBufferAlignment;
}

// Up to that many blocks the plan is made in two ways, and the smaller one is taken.
constexpr size_t kMaxCompared = 2048;

// Memory that one or more slots share.
struct Storage {
  SlotHome home{.kind = SlotHome::Kind::kArena};
  int64_t bytes = 0;
  int64_t block_bytes = 0;    // of the arena, where it lies there
  int64_t pending_reads = 0;  // operand positions and outputs that have not been passed yet
  int32_t birth = 0;          // index of the instruction that first writes it
  int32_t death = 0;          // index of the last instruction that touches it
};

// Offsets in one growing arena; freed ranges are merged and the smallest that fits is used again.
class Arena {
 public:
  // Nothing where the arena overflows.
  std::optional<int64_t> Allocate(int64_t bytes) {
    const auto fit = by_size_.lower_bound({bytes, 0});
    if (fit != by_size_.end()) {
      const auto [size, offset] = *fit;
      Remove(offset, size);
      if (size > bytes) Insert(offset + bytes, size - bytes);
      return offset;
    }
    int64_t offset = end_;
    if (!by_offset_.empty()) {
      const auto [last, size] = *by_offset_.rbegin();
      if (last + size == end_) {
        offset = last;
        Remove(last, size);
      }
    }
    const std::optional<int64_t> end = CheckedAdd(offset, bytes);
    if (!end.has_value()) return std::nullopt;
    end_ = *end;
    return offset;
  }

  void Free(int64_t offset, int64_t bytes) {
    const auto next = by_offset_.find(offset + bytes);
    if (next != by_offset_.end()) {
      const int64_t size = next->second;
      Remove(offset + bytes, size);
      bytes += size;
    }
    auto previous = by_offset_.lower_bound(offset);
    if (previous != by_offset_.begin()) {
      --previous;
      const auto [start, size] = *previous;
      if (start + size == offset) {
        Remove(start, size);
        offset = start;
        bytes += size;
      }
    }
    Insert(offset, bytes);
  }

  int64_t end() const { return end_; }

 private:
  void Insert(int64_t offset, int64_t bytes) {
    by_offset_[offset] = bytes;
    by_size_.insert({bytes, offset});
  }
  void Remove(int64_t offset, int64_t bytes) {
    by_offset_.erase(offset);
    by_size_.erase({bytes, offset});
  }

  std::map<int64_t, int64_t> by_offset_;
  std::set<std::pair<int64_t, int64_t>> by_size_;
  int64_t end_ = 0;
};

class Planner {
 public:
  Planner(const ExecProgram& program, absl::Span<const ConcreteType> types)
      : program_(program), types_(types), reads_(types.size()), storage_of_(types.size(), -1) {}

  // Nothing where the arena overflows.
  std::optional<BufferPlan> Plan(int64_t scratch_bytes) {
    CountReads();
    ShareStorage();
    PlaceOutputs();
    if (!PlaceInArena()) return std::nullopt;
    plan_.homes.resize(types_.size());
    for (size_t slot = 0; slot < types_.size(); ++slot) {
      if (storage_of_[slot] >= 0) plan_.homes[slot] = StorageOf(slot).home;
    }
    plan_.scratch_offset = arena_end_;
    const std::optional<int64_t> scratch = Align(scratch_bytes);
    const std::optional<int64_t> end = scratch.has_value() ? CheckedAdd(arena_end_, *scratch) : std::nullopt;
    if (!end.has_value()) return std::nullopt;
    plan_.arena_bytes = *end;
    return std::move(plan_);
  }

 private:
  Storage& StorageOf(size_t slot) { return storages_[static_cast<size_t>(storage_of_[slot])]; }

  int32_t NewStorage(Storage storage) {
    storages_.push_back(storage);
    return static_cast<int32_t>(storages_.size()) - 1;
  }

  void CountReads() {
    for (const ExecInstruction& instruction : program_.instructions) {
      for (Slot slot : instruction.operands) ++reads_[static_cast<size_t>(slot)];
    }
    for (const ProgramOutput& output : program_.outputs) ++reads_[static_cast<size_t>(output.slot)];
    for (size_t i = 0; i < program_.inputs.size(); ++i) {
      storage_of_[i] = NewStorage({.home = {SlotHome::Kind::kArgument, static_cast<int64_t>(i)}});
    }
    for (size_t i = 0; i < program_.constants.size(); ++i) {
      storage_of_[static_cast<size_t>(program_.constants[i].slot)] =
          NewStorage({.home = {SlotHome::Kind::kConstant, static_cast<int64_t>(i)}});
    }
  }

  // The operand that an elementwise instruction may write over: in the arena, of the result's size, and not read again.
  int32_t InPlaceStorage(const ExecInstruction& instruction, int64_t bytes) {
    if (!instruction.op->has(kElementwise) || bytes == 0) return -1;
    for (Slot slot : instruction.operands) {
      const size_t s = static_cast<size_t>(slot);
      const Storage& storage = StorageOf(s);
      const auto uses = std::count_if(instruction.operands.begin(), instruction.operands.end(), [&](Slot other) {
        return storage_of_[static_cast<size_t>(other)] == storage_of_[s];
      });
      if (storage.home.kind == SlotHome::Kind::kArena && storage.bytes == bytes && storage.pending_reads == uses &&
          types_[s].num_bytes() == bytes) {
        return storage_of_[s];
      }
    }
    return -1;
  }

  void ShareStorage() {
    for (size_t i = 0; i < program_.instructions.size(); ++i) {
      const ExecInstruction& instruction = program_.instructions[i];
      const size_t result = static_cast<size_t>(instruction.results[0]);
      const int64_t bytes = types_[result].num_bytes();
      int32_t shared = IsAlias(instruction) ? storage_of_[static_cast<size_t>(instruction.operands[0])]
                                            : InPlaceStorage(instruction, bytes);
      for (Slot operand : instruction.operands) {
        Storage& storage = StorageOf(static_cast<size_t>(operand));
        --storage.pending_reads;
        storage.death = static_cast<int32_t>(i);
      }
      if (shared < 0) shared = NewStorage({.bytes = bytes, .birth = static_cast<int32_t>(i)});
      storage_of_[result] = shared;
      Storage& storage = StorageOf(result);
      storage.death = static_cast<int32_t>(i);
      storage.pending_reads += reads_[result];
    }
  }

  // The first output in a piece of memory makes that memory its result; every further one is a copy.
  void PlaceOutputs() {
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      const Slot slot = program_.outputs[i].slot;
      Storage& storage = StorageOf(static_cast<size_t>(slot));
      if (storage.home.kind == SlotHome::Kind::kArena) {
        storage.home = {SlotHome::Kind::kResult, static_cast<int64_t>(i)};
      } else {
        plan_.copies.push_back({.output = static_cast<int32_t>(i), .from = slot});
      }
    }
  }

  // False where the arena overflows.
  bool PlaceInArena() {
    std::vector<int32_t> blocks;
    for (size_t s = 0; s < storages_.size(); ++s) {
      Storage& storage = storages_[s];
      if (storage.home.kind != SlotHome::Kind::kArena) continue;
      const std::optional<int64_t> aligned = Align(std::max<int64_t>(storage.bytes, 1));
      if (!aligned.has_value()) return false;
      storage.block_bytes = *aligned;
      blocks.push_back(static_cast<int32_t>(s));
    }
    const std::optional<int64_t> in_order = PlaceInOrder(blocks);
    if (!in_order.has_value()) return false;
    arena_end_ = *in_order;
    if (blocks.size() > kMaxCompared) return true;
    std::vector<int64_t> positions;
    for (int32_t s : blocks) positions.push_back(storages_[static_cast<size_t>(s)].home.position);
    const std::optional<int64_t> largest_first = PlaceLargestFirst(blocks);
    if (largest_first.has_value() && *largest_first < arena_end_) {
      arena_end_ = *largest_first;
    } else {
      for (size_t i = 0; i < blocks.size(); ++i) {
        storages_[static_cast<size_t>(blocks[i])].home.position = positions[i];
      }
    }
    return true;
  }

  // As the program runs, each in the smallest hole that is there. Takes n log n; gives the end of the arena, or nothing
  // where that overflows.
  std::optional<int64_t> PlaceInOrder(const std::vector<int32_t>& blocks) {
    std::vector<std::vector<int32_t>> dying(program_.instructions.size()), born(program_.instructions.size());
    for (int32_t s : blocks) {
      const Storage& storage = storages_[static_cast<size_t>(s)];
      born[static_cast<size_t>(storage.birth)].push_back(s);
      dying[static_cast<size_t>(storage.death)].push_back(s);
    }
    Arena arena;
    for (size_t i = 0; i < program_.instructions.size(); ++i) {
      for (int32_t s : born[i]) {
        Storage& storage = storages_[static_cast<size_t>(s)];
        const std::optional<int64_t> offset = arena.Allocate(storage.block_bytes);
        if (!offset.has_value()) return std::nullopt;
        storage.home.position = *offset;
      }
      for (int32_t s : dying[i]) {
        const Storage& storage = storages_[static_cast<size_t>(s)];
        arena.Free(storage.home.position, storage.block_bytes);
      }
    }
    return arena.end();
  }

  // The largest first, each as low as those that live at the same time let it: closer to what is alive where sizes
  // grow, and quadratic. Nothing where it overflows.
  std::optional<int64_t> PlaceLargestFirst(std::vector<int32_t> blocks) {
    const auto at = [this](int32_t s) -> Storage& { return storages_[static_cast<size_t>(s)]; };
    std::stable_sort(blocks.begin(), blocks.end(),
                     [&](int32_t a, int32_t b) { return at(a).block_bytes > at(b).block_bytes; });
    std::vector<int32_t> placed;  // by position
    int64_t end = 0;
    for (int32_t s : blocks) {
      Storage& storage = at(s);
      int64_t position = 0;
      for (int32_t other : placed) {
        const Storage& neighbour = at(other);
        if (neighbour.death < storage.birth || storage.death < neighbour.birth) continue;
        if (neighbour.home.position - position >= storage.block_bytes) break;
        position = std::max(position, neighbour.home.position + neighbour.block_bytes);
      }
      const std::optional<int64_t> block_end = CheckedAdd(position, storage.block_bytes);
      if (!block_end.has_value()) return std::nullopt;
      storage.home.position = position;
      end = std::max(end, *block_end);
      placed.insert(std::upper_bound(placed.begin(), placed.end(), s,
                                     [&](int32_t a, int32_t b) { return at(a).home.position < at(b).home.position; }),
                    s);
    }
    return end;
  }

  const ExecProgram& program_;
  const absl::Span<const ConcreteType> types_;
  std::vector<int64_t> reads_;       // by slot
  std::vector<int32_t> storage_of_;  // by slot
  std::vector<Storage> storages_;
  int64_t arena_end_ = 0;
  BufferPlan plan_;
};

}  // namespace

bool IsAlias(const ExecInstruction& instruction) {
  return Is(*instruction.op, CoreOp::kReshape) &&
         static_cast<Order>(instruction.attrs.Int("order")) != Order::kRowMajor;
}

absl::StatusOr<BufferPlan> PlanBuffers(const ExecProgram& program, absl::Span<const ConcreteType> slot_types,
                                       int64_t scratch_bytes) {
  std::optional<BufferPlan> plan = Planner(program, slot_types).Plan(scratch_bytes);
  if (!plan.has_value()) {
    return Refuse(Refusal::kShapeOverflow, "the memory that a run needs for temporaries overflows 64 bits");
  }
  return *std::move(plan);
}

std::string ToString(const BufferPlan& plan) {
  std::string text = absl::StrCat("memory: ", plan.arena_bytes, " bytes of temporaries\n");
  for (size_t slot = 0; slot < plan.homes.size(); ++slot) {
    const SlotHome& home = plan.homes[slot];
    switch (home.kind) {
      case SlotHome::Kind::kNone:
        continue;
      case SlotHome::Kind::kArgument:
        absl::StrAppend(&text, "  %", slot, ": argument ", home.position, "\n");
        break;
      case SlotHome::Kind::kConstant:
        absl::StrAppend(&text, "  %", slot, ": constant ", home.position, "\n");
        break;
      case SlotHome::Kind::kArena:
        absl::StrAppend(&text, "  %", slot, ": temporary at ", home.position, "\n");
        break;
      case SlotHome::Kind::kResult:
        absl::StrAppend(&text, "  %", slot, ": result ", home.position, "\n");
        break;
    }
  }
  for (const OutputCopy& copy : plan.copies) {
    absl::StrAppend(&text, "  result ", copy.output, ": copy of %", copy.from, "\n");
  }
  return text;
}

}  // namespace tensord
