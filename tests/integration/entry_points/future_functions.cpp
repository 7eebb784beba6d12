// Fifty functions of no released driver.
#define FUTURE(number)                                                              \
  extern "C" __attribute__((visibility("default"))) int cuFromTheFuture##number() { \
    return 9000 + 1##number;                                                        \
  }
#define FUTURE_TEN(tens) \
  FUTURE(tens##0)        \
  FUTURE(tens##1)        \
  FUTURE(tens##2)        \
  FUTURE(tens##3)        \
  FUTURE(tens##4) FUTURE(tens##5) FUTURE(tens##6) FUTURE(tens##7) FUTURE(tens##8) FUTURE(tens##9)
FUTURE_TEN(0) FUTURE_TEN(1) FUTURE_TEN(2) FUTURE_TEN(3) FUTURE_TEN(4)
