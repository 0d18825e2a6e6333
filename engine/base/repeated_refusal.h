#ifndef TENSORD_ENGINE_BASE_REPEATED_REFUSAL_H_
#define TENSORD_ENGINE_BASE_REPEATED_REFUSAL_H_

#include "absl/status/status.h"

namespace tensord {

// What was made of the last refusal, for when it comes again: a server that is overloaded gives many calls the very
// same. Thread-compatible.
template <typename Made>
class RepeatedRefusal {
 public:
  template <typename Make>
  const Made& Get(const absl::Status& refusal, const Make& make) {
    if (refusal != refusal_) {
      made_ = make(refusal);
      refusal_ = refusal;
    }
    return made_;
  }

 private:
  absl::Status refusal_;
  Made made_{};
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_BASE_REPEATED_REFUSAL_H_
