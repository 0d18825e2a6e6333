#include "backends/cpu/fused/tile_registers.h"

#include <algorithm>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "engine/base/id_vector.h"

namespace tensord::cpu {
namespace {

// Gives the values of one stage's tiles registers, from the first step that writes to the last one that reads.
class RegisterAllocation {
 public:
  explicit RegisterAllocation(FusedPlan* plan) : plan_(*plan), register_of_(plan->places.size(), kNone) {}

  // How many registers they take. Sets the places' offsets to their numbers.
  int64_t Allocate(const std::vector<FusedStep>& steps) {
    FindOwners(steps);
    IdVector<PlaceId, int64_t> last_use(plan_.places.size(), kNone);
    for (size_t i = 0; i < steps.size(); ++i) {
      for (const PlaceId owner : OwnersOf(Reads(steps[i]))) last_use[owner] = static_cast<int64_t>(i);
      for (const PlaceId owner : OwnersOf(Writes(steps[i]))) last_use[owner] = static_cast<int64_t>(i);
    }
    for (size_t i = 0; i < steps.size(); ++i) {
      const FusedStep& step = steps[i];
      const Places written = OwnersOf(Writes(step));
      const auto dies = [&](PlaceId owner) { return last_use[owner] == static_cast<int64_t>(i); };
      Places dying;
      for (const PlaceId owner : OwnersOf(Reads(step))) {
        if (!dies(owner) || Holds(written, owner) || Holds(dying, owner)) continue;
        dying.push_back(owner);
      }
      // A step may write where it reads if the elements have the same size.
      const bool fresh = written.size() == 1 && register_of_[written[0]] < 0;
      const auto in_place = [&](PlaceId owner) {
        return fresh && InPlace(step) && BytesOf(owner) == BytesOf(written[0]);
      };
      for (const PlaceId owner : dying) {
        if (in_place(owner)) Free(owner);
      }
      for (const PlaceId owner : written) {
        if (register_of_[owner] < 0) Take(owner);
      }
      for (const PlaceId owner : dying) {
        if (!in_place(owner)) Free(owner);
      }
      for (const PlaceId owner : written) {
        if (dies(owner)) Free(owner);
      }
    }
    return count_;
  }

 private:
  using Places = absl::InlinedVector<PlaceId, 8>;

  static constexpr int64_t kNone = -1;  // no register, no step

  static bool Holds(const Places& places, PlaceId place) {
    return std::find(places.begin(), places.end(), place) != places.end();
  }
  static bool InPlace(const FusedStep& step) {
    return step.kind == FusedStepKind::kFunction || step.kind == FusedStepKind::kConvert ||
           step.kind == FusedStepKind::kSelect || step.kind == FusedStepKind::kClamp;
  }
  int64_t BytesOf(PlaceId place) const { return plan_.places[place].element_bytes; }
  PlaceId Register(PlaceId place) const {
    return place.index >= 0 && plan_.places[place].kind == FusedPlace::Kind::kRegister ? place : PlaceId();
  }
  Places Reads(const FusedStep& step) const {
    if (step.kind != FusedStepKind::kRun) return {step.a, step.b, step.c};
    const FusedRun& run = plan_.runs[step.run];
    return {run.reads.begin(), run.reads.end()};
  }
  Places Writes(const FusedStep& step) const {
    if (step.kind != FusedStepKind::kRun) return {step.buffer, step.out};
    const FusedRun& run = plan_.runs[step.run];
    return {run.writes.begin(), run.writes.end()};
  }
  // Returns the owners of the places that have one, each once.
  Places OwnersOf(const Places& places) const {
    Places owners;
    for (const PlaceId place : places) {
      const PlaceId owner = place.index >= 0 ? owners_[place] : PlaceId();
      if (owner.index >= 0 && !Holds(owners, owner)) owners.push_back(owner);
    }
    return owners;
  }

  // The register that a place lies in: its own, or the buffer of the step that sets it.
  void FindOwners(const std::vector<FusedStep>& steps) {
    owners_.assign(plan_.places.size(), {});
    for (const FusedStep& step : steps) {
      for (const PlaceId place : Writes(step)) {
        if (place.index < 0) continue;
        owners_[place] = Register(place).index >= 0 ? place : Register(step.buffer);
      }
    }
    for (const FusedStep& step : steps) {  // what a step writes through an opened result is in that result's buffer
      if (step.kind == FusedStepKind::kOpen) owners_[step.out] = Register(step.buffer);
    }
  }

  void Take(PlaceId place) {
    int64_t number = count_;
    if (free_.empty()) {
      ++count_;
    } else {
      number = free_.back();  // the one that was used last is the hottest
      free_.pop_back();
    }
    register_of_[place] = number;
    plan_.places[place].offset = number;
  }

  void Free(PlaceId place) {
    const int64_t number = register_of_[place];
    if (number >= 0 && std::find(free_.begin(), free_.end(), number) == free_.end()) free_.push_back(number);
  }

  FusedPlan& plan_;
  IdVector<PlaceId, int64_t> register_of_;
  IdVector<PlaceId, PlaceId> owners_;
  std::vector<int64_t> free_;
  int64_t count_ = 0;
};

}  // namespace

int64_t AllocateRegisters(FusedPlan* plan) {
  int64_t most = 0;
  for (const FusedStage& stage : plan->stages) {
    RegisterAllocation allocation(plan);
    most = std::max(most, allocation.Allocate(stage.tile));
  }
  return most;
}

}  // namespace tensord::cpu
