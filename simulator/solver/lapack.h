// LAPACK's routines, by overloads for float and double.
//
// Matrices are column-major; info is LAPACK's.
#pragma once

#define SPILLWAY_LAPACK(letter, Real)                                                            \
  extern "C" {                                                                                   \
  void letter##getrf_(const int* rows, const int* columns, Real* a, const int* lda, int* pivots, \
                      int* info);                                                                \
  void letter##getrs_(const char* turned, const int* n, const int* columns, const Real* a,       \
                      const int* lda, const int* pivots, Real* b, const int* ldb, int* info);    \
  void letter##potrf_(const char* part, const int* n, Real* a, const int* lda, int* info);       \
  void letter##potrs_(const char* part, const int* n, const int* columns, const Real* a,         \
                      const int* lda, Real* b, const int* ldb, int* info);                       \
  void letter##geqrf_(const int* rows, const int* columns, Real* a, const int* lda, Real* tau,   \
                      Real* work, const int* work_count, int* info);                             \
  void letter##ormqr_(const char* side, const char* turned, const int* rows, const int* columns, \
                      const int* reflectors, const Real* a, const int* lda, const Real* tau,     \
                      Real* c, const int* ldc, Real* work, const int* work_count, int* info);    \
  }                                                                                              \
  namespace spillway::simulator::solver::lapack {                                                \
  inline int Getrf(int rows, int columns, Real* a, int lda, int* pivots) {                       \
    int info = 0;                                                                                \
    letter##getrf_(&rows, &columns, a, &lda, pivots, &info);                                     \
    return info;                                                                                 \
  }                                                                                              \
  inline int Getrs(char turned, int n, int columns, const Real* a, int lda, const int* pivots,   \
                   Real* b, int ldb) {                                                           \
    int info = 0;                                                                                \
    letter##getrs_(&turned, &n, &columns, a, &lda, pivots, b, &ldb, &info);                      \
    return info;                                                                                 \
  }                                                                                              \
  inline int Potrf(char part, int n, Real* a, int lda) {                                         \
    int info = 0;                                                                                \
    letter##potrf_(&part, &n, a, &lda, &info);                                                   \
    return info;                                                                                 \
  }                                                                                              \
  inline int Potrs(char part, int n, int columns, const Real* a, int lda, Real* b, int ldb) {    \
    int info = 0;                                                                                \
    letter##potrs_(&part, &n, &columns, a, &lda, b, &ldb, &info);                                \
    return info;                                                                                 \
  }                                                                                              \
  inline int Geqrf(int rows, int columns, Real* a, int lda, Real* tau, Real* work,               \
                   int work_count) {                                                             \
    int info = 0;                                                                                \
    letter##geqrf_(&rows, &columns, a, &lda, tau, work, &work_count, &info);                     \
    return info;                                                                                 \
  }                                                                                              \
  inline int Ormqr(char side, char turned, int rows, int columns, int reflectors, const Real* a, \
                   int lda, const Real* tau, Real* c, int ldc, Real* work, int work_count) {     \
    int info = 0;                                                                                \
    letter##ormqr_(&side, &turned, &rows, &columns, &reflectors, a, &lda, tau, c, &ldc, work,    \
                   &work_count, &info);                                                          \
    return info;                                                                                 \
  }                                                                                              \
  }
SPILLWAY_LAPACK(s, float)
SPILLWAY_LAPACK(d, double)
#undef SPILLWAY_LAPACK
