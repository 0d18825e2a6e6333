#ifndef TENSORD_CLIENTS_LOAD_SPLIT_MIX_H_
#define TENSORD_CLIENTS_LOAD_SPLIT_MIX_H_

#include <cstdint>

namespace tensord::load {

// SplitMix64: pseudo-random numbers from 8 bytes of state, the same on every machine. Thread-compatible.
class SplitMix {
 public:
  explicit SplitMix(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15u;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // Returns a number in [0, 1).
  double Fraction() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
};

}  // namespace tensord::load

#endif  // TENSORD_CLIENTS_LOAD_SPLIT_MIX_H_
