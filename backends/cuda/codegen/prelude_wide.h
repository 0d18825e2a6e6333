#ifndef TENSORD_BACKENDS_CUDA_CODEGEN_PRELUDE_WIDE_H_
#define TENSORD_BACKENDS_CUDA_CODEGEN_PRELUDE_WIDE_H_

// Computes NAME##Wide on c128, for either complex type.
#define TENSORD_WIDE(Name)                                                                                       \
  {                                                                                                              \
#Name "Complex", #Name "Wide",                                                                               \
        "template <typename R>\nTENSORD_FN Complex<R> " #Name "Complex(Complex<R> z) {\n  const c128 w = " #Name \
        "Wide(c128{(f64)z.re, (f64)z.im});\n  return Complex<R>{(R)w.re, (R)w.im};\n}\n"                         \
  }

#endif  // TENSORD_BACKENDS_CUDA_CODEGEN_PRELUDE_WIDE_H_
