// Before glibc 2.34 a program ran its own constructors, by a function that it passed to
// __libc_start_main. A program that is linked today passes none; this one does.

#define SPILLWAY_HIDDEN extern "C" __attribute__((visibility("hidden")))

using Main = int (*)(int, char**, char**);
using Constructor = void (*)(int, char**, char**);

extern "C" {
int older_start(Main main, int count, char** words, Constructor construct, void (*destruct)(),
                void (*end_loader)(), void* stack_end);
void _init();
// From the linker.
extern const Constructor __init_array_start[] __attribute__((visibility("hidden")));
extern const Constructor __init_array_end[] __attribute__((visibility("hidden")));
}
asm(".symver older_start, __libc_start_main@GLIBC_2.2.5");

namespace {

void Construct(int count, char** words, char** environment) {
  _init();
  for (const Constructor* one = __init_array_start; one != __init_array_end; ++one)
    (*one)(count, words, environment);
}

}  // namespace

SPILLWAY_HIDDEN int __libc_start_main(Main main, int count, char** words, Constructor construct,
                                      void (*destruct)(), void (*end_loader)(), void* stack_end) {
  return older_start(main, count, words, construct != nullptr ? construct : Construct, destruct,
                     end_loader, stack_end);
}
