#ifndef TENSORD_TESTS_TESTLIB_LOST_STEP_H_
#define TENSORD_TESTS_TESTLIB_LOST_STEP_H_

#include "grpcpp/support/client_interceptor.h"

namespace tensord {

using LostStep = grpc::experimental::InterceptionHookPoints;

// Lets every step of a call by but that one, which never comes back.
class LosesStep : public grpc::experimental::Interceptor {
 public:
  explicit LosesStep(LostStep step) : step_(step) {}
  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    if (!methods->QueryInterceptionHookPoint(step_)) methods->Proceed();
  }

 private:
  const LostStep step_;
};

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_LOST_STEP_H_
