#ifndef TENSORD_CLIENTS_LOAD_ARRIVALS_H_
#define TENSORD_CLIENTS_LOAD_ARRIVALS_H_

#include <cstdint>

#include "absl/time/time.h"
#include "clients/load/split_mix.h"

namespace tensord::load {

enum class ArrivalKind {
  kFixed,    // as far apart as the rate says
  kPoisson,  // independent of each other, as those of many users are
};

// The times at which the calls of an open loop are to be sent, whatever became of earlier ones. Thread-compatible.
class Arrivals {
 public:
  // `rate` is calls a second, above 0.
  Arrivals(ArrivalKind kind, double rate, uint64_t seed) : kind_(kind), rate_(rate), random_(seed) {}

  // Returns the next one, since the loop began; never before the one before it.
  absl::Duration Next();

 private:
  const ArrivalKind kind_;
  const double rate_;
  SplitMix random_;
  int64_t count_ = 0;
  double seconds_ = 0;
};

}  // namespace tensord::load

#endif  // TENSORD_CLIENTS_LOAD_ARRIVALS_H_
