#ifndef TENSORD_TESTS_TESTLIB_PEERS_LOST_STEP_H_
#define TENSORD_TESTS_TESTLIB_PEERS_LOST_STEP_H_

#include "grpcpp/support/client_interceptor.h"

namespace tensord {

using LostStep = grpc::experimental::InterceptionHookPoints;

// Lets every step of a call by but that one, which never comes back; NUM_INTERCEPTION_HOOKS, which is none and not to
// be asked for, lets all of them by.
class LosesStep : public grpc::experimental::Interceptor {
 public:
  explicit LosesStep(LostStep step) : step_(step) {}
  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    const bool is_lost = step_ != LostStep::NUM_INTERCEPTION_HOOKS && methods->QueryInterceptionHookPoint(step_);
    if (!is_lost) methods->Proceed();
  }

 private:
  const LostStep step_;
};

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_PEERS_LOST_STEP_H_
