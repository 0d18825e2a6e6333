#ifndef TENSORD_BACKENDS_CPU_MATH_PRAGMA_H_
#define TENSORD_BACKENDS_CPU_MATH_PRAGMA_H_

// Stands before a loop: no iteration reads the elements that another one writes, though pointers may be equal. Without
// it a compiler guards its vector code by an overlap test, which an operation in place fails.
#if defined(__clang__)
#define TENSORD_INDEPENDENT_ITERATIONS _Pragma("clang loop vectorize(assume_safety)")
#else
#define TENSORD_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#endif

#endif  // TENSORD_BACKENDS_CPU_MATH_PRAGMA_H_
