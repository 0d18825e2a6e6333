#ifndef TENSORD_ENGINE_FAMILIES_EINSUM_STEP_RANDOM_H_
#define TENSORD_ENGINE_FAMILIES_EINSUM_STEP_RANDOM_H_

#include <cstdint>

namespace tensord {

// Pseudo-random numbers of a search, the same for the same seed everywhere: SplitMix64 (Steele, Lea, Flood, "Fast
// splittable pseudorandom number generators", OOPSLA 2014). A value; thread-compatible.
class StepRandom {
 public:
  explicit StepRandom(uint64_t seed) : state_(seed) {}

  uint64_t Bits() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  // Returns a number in (0, 1).
  double Uniform() { return (static_cast<double>(Bits() >> 12) + 0.5) * 0x1p-52; }

 private:
  uint64_t state_;
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_EINSUM_STEP_RANDOM_H_
