// Calls two functions that no hook covers, each twice: the first call goes through the resolver, the second does not.
#define CUDA_ENABLE_DEPRECATED  // texture references
#include <cuda.h>

#include <cstdint>

namespace {

template <typename T>
T Token(uintptr_t number) {
  return reinterpret_cast<T>(number);
}

}  // namespace

int main() {
  for (int call = 0; call < 2; ++call) {
    CUlibrary* const library = Token<CUlibrary*>(0xa1);
    cuLibraryLoadData(library, Token<void*>(0xb2), Token<CUjit_option*>(0xc3), Token<void**>(0xd4), 5,
                      Token<CUlibraryOption*>(0xe6), Token<void**>(0xf7), 8);
    cuTexRefSetMipmapLevelClamp(Token<CUtexref>(0x19), 1.5f, -2.25f);
  }
  return 0;
}
