// Calls two functions without hooks, first through the resolver, then without.
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
    cuLinkAddData(Token<CUlinkState>(0xa1), CU_JIT_INPUT_PTX, Token<void*>(0xc3), 0xd4,
                  Token<char*>(0xe5), 6, Token<CUjit_option*>(0xf7), Token<void**>(0x18));
    cuTexRefSetMipmapLevelClamp(Token<CUtexref>(0x19), 1.5f, -2.25f);
  }
  return 0;
}
