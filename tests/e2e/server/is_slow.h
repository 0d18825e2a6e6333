#ifndef TENSORD_TESTS_E2E_SERVER_IS_SLOW_H_
#define TENSORD_TESTS_E2E_SERVER_IS_SLOW_H_

namespace tensord {

// True under a sanitizer, where everything takes many times as long.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kIsSlow = true;
#else
inline constexpr bool kIsSlow = false;
#endif

}  // namespace tensord

#endif  // TENSORD_TESTS_E2E_SERVER_IS_SLOW_H_
