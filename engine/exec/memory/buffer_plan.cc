#include "engine/exec/memory/buffer_plan.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "engine/base/at.h"
#include "engine/base/checked_math.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/base/stop_signal.h"
#include "engine/exec/backend/overwrites.h"
#include "engine/exec/memory/block_placement.h"
#include "engine/exec/program/changing_memory.h"
#include "engine/exec/program/sessions.h"

namespace tensord {
namespace {

// Less memory than that is not worth being filled with temporaries before it is needed.
constexpr int64_t kLeastRegionBytes = 256;
// The part of its size by which a result's buffer may grow, so that slightly larger temporaries fit.
constexpr int64_t kGrowthPart = 8;

// Memory that one or more slots share.
struct Storage {
  SlotHome home;
  int64_t bytes = 0;
  int32_t birth = 0;        // index of the instruction that first writes it
  int32_t death = 0;        // index of the last instruction that touches it
  bool may_change = false;  // an argument that is donated, or what an instruction computed
};

struct Place {
  int32_t storage = -1;
  int64_t offset = 0;
};

class Planner {
 public:
  explicit Planner(const BufferPlanRequest& request)
      : program_(request.program),
        request_(request),
        end_(static_cast<int32_t>(request.program.instructions.size())),
        last_reads_(LastReads(request.program)),
        moments_(request.program.instructions.size()),
        is_chained_(request.program.instructions.size()),
        is_unplaced_(request.slot_types.size()),
        destination_of_(request.slot_types.size(), -1),
        places_(request.slot_types.size()) {
    std::iota(moments_.begin(), moments_.end(), 0);
    if (request.chains.empty()) return;
    const std::vector<int32_t> segments = SegmentsOf(request.views);
    for (const SegmentChain& chain : request.chains) {
      const int32_t last = segments[chain.end - 1];
      for (int32_t i = segments[chain.begin]; i <= last; ++i) {
        moments_[At(i)] = last;
        is_chained_[At(i)] = true;
      }
      for (Slot slot : chain.unplaced) is_unplaced_[At(slot)] = true;
    }
  }

  // Returns nothing if a sum overflows, or the work is stopped.
  std::optional<BufferPlan> Plan() {
    AddLeaves();
    FindDestinations();
    for (int32_t i = 0; i < end_; ++i) {
      if (StopRequested()) return std::nullopt;
      if (request_.views[At(i)].has_value()) {
        ShareView(i, program_.instructions[At(i)]);
      } else {
        StoreResults(i, program_.instructions[At(i)]);
      }
    }
    AddScratch();
    PlaceOutputs();
    const std::optional<int64_t> arena = PlaceInArena();
    if (!arena.has_value()) return std::nullopt;
    plan_.homes.resize(places_.size());
    for (size_t slot = 0; slot < places_.size(); ++slot) {
      if (places_[slot].storage >= 0) plan_.homes[slot] = HomeOf(places_[slot]);
    }
    plan_.scratch.resize(request_.scratch_bytes.size());
    for (const auto& [segment, storage] : scratch_) plan_.scratch[segment] = HomeOf({.storage = storage});
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      const Slot slot = program_.outputs[i].slot;
      plan_.outputs.push_back({.home = plan_.homes[At(slot)], .bytes = BytesOf(slot)});
    }
    if (!AddUp(*arena)) return std::nullopt;
    return std::move(plan_);
  }

 private:
  int64_t BytesOf(Slot slot) const { return request_.slot_types[At(slot)].num_bytes(); }
  bool IsDonated(size_t argument) const { return !request_.donated.empty() && request_.donated[argument]; }
  Storage& StorageOf(Slot slot) { return storages_[At(places_[At(slot)].storage)]; }

  SlotHome HomeOf(const Place& place) const {
    SlotHome home = storages_[At(place.storage)].home;
    home.offset += place.offset;
    return home;
  }

  // Returns the end of a slot that exists from `birth` on. The end of the program is an index past its instructions.
  int32_t DeathOf(Slot slot, int32_t birth) const {
    if (!program_.knows_last_uses) return end_;
    const int32_t last = last_reads_[At(slot)];
    return std::clamp(last >= 0 && last < end_ ? moments_[At(last)] : last, birth, end_);
  }

  void NewStorage(Slot slot, Storage storage) {
    storage.bytes = BytesOf(slot);
    storage.death = DeathOf(slot, storage.birth);
    places_[At(slot)] = {.storage = static_cast<int32_t>(storages_.size())};
    storages_.push_back(storage);
  }

  void AddLeaves() {
    for (size_t i = 0; i < program_.inputs.size(); ++i) {
      NewStorage(
          static_cast<Slot>(i),
          {.home = {SlotHome::Kind::kArgument, static_cast<int32_t>(i)}, .birth = -1, .may_change = IsDonated(i)});
    }
    for (size_t i = 0; i < program_.constants.size(); ++i) {
      NewStorage(program_.constants[i].slot,
                 {.home = {SlotHome::Kind::kConstant, static_cast<int32_t>(i)}, .birth = -1});
    }
  }

  // Finds destinations of values whose memory is all of one output's, and of no other's.
  void FindDestinations() {
    if (request_.destinations.empty()) return;
    std::vector<Slot> whole(places_.size(), -1);  // by slot: what an instruction computed, whose memory it is in
    for (size_t i = 0; i < program_.instructions.size(); ++i) {
      const ExecInstruction& instruction = program_.instructions[i];
      for (Slot slot : instruction.results) {
        whole[At(slot)] = request_.views[i].has_value() ? whole[At(instruction.operands[0])] : slot;
      }
    }
    std::vector<int32_t> num_outputs(places_.size());
    for (const ProgramOutput& output : program_.outputs) {
      if (whole[At(output.slot)] >= 0) ++num_outputs[At(whole[At(output.slot)])];
    }
    const std::vector<bool> may_change = ResultsThatMayChange(program_);
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      const Slot slot = whole[At(program_.outputs[i].slot)];
      if (!request_.destinations[i] || slot < 0 || num_outputs[At(slot)] > 1 || !may_change[At(slot)]) continue;
      const int64_t bytes = BytesOf(program_.outputs[i].slot);
      if (bytes > 0 && bytes == BytesOf(slot)) destination_of_[At(slot)] = static_cast<int32_t>(i);
    }
  }

  void ShareView(int32_t i, const ExecInstruction& instruction) {
    const Place& whole = places_[At(instruction.operands[0])];
    const Slot result = instruction.results[0];
    places_[At(result)] = {whole.storage, whole.offset + request_.views[At(i)]->offset_bytes};
    Storage& storage = StorageOf(result);
    storage.death = std::max(storage.death, DeathOf(result, moments_[At(i)]));
  }

  void StoreResults(int32_t i, const ExecInstruction& instruction) {
    const MicroProgram* const micro = request_.micro_programs.empty() ? nullptr : request_.micro_programs[At(i)].get();
    const OverwritePairs allowed = MayOverwrite(instruction, micro);
    OverwritePairs pairs;
    if (!is_chained_[At(i)]) {
      std::copy_if(allowed.begin(), allowed.end(), std::back_inserter(pairs), [&](const auto& pair) {
        return destination_of_[At(instruction.results[At(pair.first)])] < 0 && IsFree(i, instruction, allowed, pair);
      });
    }
    while (!pairs.empty()) {
      const auto [result, operand] = NextOverwrite(instruction, pairs);
      const int32_t storage = places_[At(instruction.operands[At(operand)])].storage;
      const Slot slot = instruction.results[At(result)];
      places_[At(slot)] = {.storage = storage};
      storages_[At(storage)].death = DeathOf(slot, i);
      pairs.erase(std::remove_if(pairs.begin(), pairs.end(),
                                 [&, taken = result](const auto& pair) {
                                   return pair.first == taken ||
                                          places_[At(instruction.operands[At(pair.second)])].storage == storage;
                                 }),
                  pairs.end());
    }
    for (Slot slot : instruction.results) {
      if (places_[At(slot)].storage >= 0 || is_unplaced_[At(slot)]) continue;
      const int32_t destination = destination_of_[At(slot)];
      const SlotHome home =
          destination >= 0 ? SlotHome{SlotHome::Kind::kDestination, destination} : SlotHome{SlotHome::Kind::kArena};
      NewStorage(slot, {.home = home, .birth = moments_[At(i)], .may_change = true});
    }
  }

  void AddScratch() {
    if (request_.scratch_bytes.empty()) return;
    const bool may_lie_in_argument =
        std::find(request_.donated.begin(), request_.donated.end(), true) != request_.donated.end();
    const std::vector<int32_t> segments = SegmentsOf(request_.views);
    for (size_t i = 0; i < segments.size(); ++i) {
      int64_t bytes = request_.scratch_bytes[i];
      if (bytes <= 0) continue;
      if (may_lie_in_argument) bytes = CheckedAdd(bytes, kBufferAlignment - 1).value_or(bytes);
      scratch_.push_back({i, static_cast<int32_t>(storages_.size())});
      const int32_t moment = moments_[At(segments[i])];
      storages_.push_back({.home = {SlotHome::Kind::kArena}, .bytes = bytes, .birth = moment, .death = moment});
    }
  }

  // Tells whether nobody needs the operand's memory afterwards, and the result is as large as all of it.
  bool IsFree(int32_t i, const ExecInstruction& instruction, const OverwritePairs& allowed,
              const std::pair<int32_t, int32_t>& pair) {
    const auto [result, operand] = pair;
    const Slot over = instruction.operands[At(operand)];
    const Storage& storage = StorageOf(over);
    const int64_t bytes = BytesOf(instruction.results[At(result)]);
    if (!storage.may_change || storage.death != i || bytes == 0 || storage.bytes != bytes || BytesOf(over) != bytes) {
      return false;
    }
    for (size_t k = 0; k < instruction.operands.size(); ++k) {
      const Slot other = instruction.operands[k];
      if (places_[At(other)].storage != places_[At(over)].storage) continue;
      const bool may_too =
          std::find(allowed.begin(), allowed.end(), std::make_pair(result, static_cast<int32_t>(k))) != allowed.end();
      if (BytesOf(other) != bytes || !may_too) return false;
    }
    return true;
  }

  // Returns the next pair, for the result with the fewest operands to choose from. An argument comes first, because its
  // memory exists anyway, then a temporary.
  std::pair<int32_t, int32_t> NextOverwrite(const ExecInstruction& instruction, const OverwritePairs& pairs) {
    const auto choices = [&](const std::pair<int32_t, int32_t>& pair) {
      return std::count_if(pairs.begin(), pairs.end(), [&](const auto& p) { return p.first == pair.first; });
    };
    const auto is_argument = [&](const std::pair<int32_t, int32_t>& pair) {
      return StorageOf(instruction.operands[At(pair.second)]).home.kind == SlotHome::Kind::kArgument;
    };
    const std::pair<int32_t, int32_t>* best = &pairs[0];
    for (const auto& pair : pairs) {
      const auto mine = choices(pair), bests = choices(*best);
      if (mine < bests || (pair.first == best->first && is_argument(pair) && !is_argument(*best))) best = &pair;
    }
    return *best;
  }

  // Gives the memory of outputs a buffer of its own, or the place of a donated argument of the same size whose reads
  // are over.
  void PlaceOutputs() {
    taken_from_.assign(program_.inputs.size(), end_);
    absl::flat_hash_map<int64_t, std::vector<int32_t>> free_arguments;  // by size, the first one last
    for (int32_t i = static_cast<int32_t>(program_.inputs.size()); i-- > 0;) {
      const Storage& storage = storages_[At(i)];
      if (storage.may_change && storage.death < end_ && storage.bytes > 0) free_arguments[storage.bytes].push_back(i);
    }
    for (const ProgramOutput& output : program_.outputs) {
      Storage& storage = StorageOf(output.slot);
      if (storage.home.kind != SlotHome::Kind::kArena) continue;
      const auto candidates = free_arguments.find(storage.bytes);
      if (candidates != free_arguments.end()) {
        std::vector<int32_t>& arguments = candidates->second;
        const auto free = std::find_if(arguments.rbegin(), arguments.rend(),
                                       [&](int32_t a) { return storages_[At(a)].death < storage.birth; });
        if (free != arguments.rend()) {
          storage.home = {SlotHome::Kind::kArgument, *free};
          taken_from_[At(*free)] = storage.birth;
          arguments.erase(std::next(free).base());
          continue;
        }
      }
      storage.home = {SlotHome::Kind::kResult, static_cast<int32_t>(plan_.result_bytes.size())};
      plan_.result_bytes.push_back(storage.bytes);
    }
  }

  // The arena's bytes, or nothing if they overflow or the work is stopped.
  std::optional<int64_t> PlaceInArena() {
    std::vector<FreeRegion> regions;
    std::vector<SlotHome> region_homes;
    std::vector<MemoryBlock> blocks;
    std::vector<int32_t> block_storages;
    const auto add_region = [&](const Storage& storage, int64_t growth, int32_t first, int32_t last) {
      if (storage.bytes < kLeastRegionBytes || first > last) return;
      regions.push_back({.bytes = storage.bytes,
                         .most_bytes = CheckedAdd(storage.bytes, growth).value_or(storage.bytes),
                         .first_free = first,
                         .last_free = last});
      region_homes.push_back(storage.home);
    };
    for (size_t s = 0; s < storages_.size(); ++s) {
      const Storage& storage = storages_[s];
      if (storage.home.kind == SlotHome::Kind::kResult) {
        add_region(storage, storage.bytes / kGrowthPart, 0, storage.birth - 1);
      }
      if (s < program_.inputs.size() && storage.may_change) {
        add_region(storage, 0, storage.death + 1, taken_from_[s] - 1);
      }
      if (storage.home.kind != SlotHome::Kind::kArena) continue;
      blocks.push_back({.bytes = storage.bytes, .birth = storage.birth, .death = std::min(storage.death, end_ - 1)});
      block_storages.push_back(static_cast<int32_t>(s));
    }
    const std::optional<BlockPlacement> placement = PlaceBlocks(regions, end_, blocks);
    if (!placement.has_value()) return std::nullopt;
    for (size_t b = 0; b < blocks.size(); ++b) {
      const BlockPlace& place = placement->places[b];
      SlotHome& home = storages_[At(block_storages[b])].home;
      if (place.region >= 0) home = region_homes[At(place.region)];
      home.offset = place.offset;
    }
    for (size_t r = 0; r < regions.size(); ++r) {
      if (region_homes[r].kind != SlotHome::Kind::kResult) continue;
      plan_.result_bytes[At(region_homes[r].index)] = placement->region_bytes[r];
    }
    return placement->arena_bytes;
  }

  // Returns false if a sum overflows.
  bool AddUp(int64_t arena_bytes) {
    plan_.arena_bytes = arena_bytes;
    std::optional<int64_t> sum = arena_bytes;
    const auto add = [&](int64_t bytes) {
      if (sum.has_value()) sum = CheckedAdd(*sum, bytes);
    };
    for (size_t i = 0; i < program_.inputs.size(); ++i) add(BytesOf(static_cast<Slot>(i)));
    for (int64_t bytes : plan_.result_bytes) add(bytes);
    plan_.peak_bytes = sum.value_or(0);
    return sum.has_value();
  }

  const ExecProgram& program_;
  const BufferPlanRequest& request_;
  const int32_t end_;
  const std::vector<int32_t> last_reads_;  // by slot
  std::vector<int32_t> moments_;           // by instruction: its index, or that of the last one of its chain
  std::vector<bool> is_chained_;           // by instruction
  std::vector<bool> is_unplaced_;          // by slot
  std::vector<int32_t> destination_of_;    // by slot: the output in whose destination it lies; -1: in none
  std::vector<Place> places_;              // by slot
  std::vector<Storage> storages_;          // the arguments' first
  std::vector<int32_t> taken_from_;        // by argument: since when an output lies there that is not in place
  std::vector<std::pair<size_t, int32_t>> scratch_;  // segment, storage
  BufferPlan plan_;
};

}  // namespace

absl::StatusOr<BufferPlan> PlanBuffers(const BufferPlanRequest& request) {
  std::optional<BufferPlan> plan = Planner(request).Plan();
  RETURN_IF_ERROR(CheckStopped());
  if (!plan.has_value()) return Refuse(Refusal::kShapeOverflow, "the memory that a run needs overflows 64 bits");
  return *std::move(plan);
}

std::string ToString(const SlotHome& home) {
  absl::string_view owner;
  switch (home.kind) {
    case SlotHome::Kind::kNone:
      return "nowhere";
    case SlotHome::Kind::kArena:
      return absl::StrCat("temporary at ", home.offset);
    case SlotHome::Kind::kArgument:
      owner = "argument";
      break;
    case SlotHome::Kind::kConstant:
      owner = "constant";
      break;
    case SlotHome::Kind::kResult:
      owner = "result";
      break;
    case SlotHome::Kind::kDestination:
      owner = "destination";
      break;
  }
  std::string text = absl::StrCat(owner, " ", home.index);
  if (home.offset > 0) absl::StrAppend(&text, " at ", home.offset);
  return text;
}

std::string ToString(const BufferPlan& plan) {
  std::string text = absl::StrCat("memory: ", plan.arena_bytes, " bytes of temporaries, ", plan.peak_bytes,
                                  " with arguments and results\n");
  for (size_t slot = 0; slot < plan.homes.size(); ++slot) {
    if (plan.homes[slot].kind == SlotHome::Kind::kNone) continue;
    absl::StrAppend(&text, "  %", slot, ": ", ToString(plan.homes[slot]), "\n");
  }
  for (size_t i = 0; i < plan.scratch.size(); ++i) {
    if (plan.scratch[i].kind == SlotHome::Kind::kNone) continue;
    absl::StrAppend(&text, "  scratch of segment ", i, ": ", ToString(plan.scratch[i]), "\n");
  }
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    absl::StrAppend(&text, "  output ", i, ": ", ToString(plan.outputs[i].home), "\n");
  }
  return text;
}

}  // namespace tensord
