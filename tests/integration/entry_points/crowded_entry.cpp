// Many threads make the first CUDA calls at once, while one opens a plug-in whose constructor makes
// another. Prints the number of successful calls.
#include <dlfcn.h>

#include <atomic>
#include <barrier>
#include <cstdio>
#include <thread>
#include <vector>

extern "C" int cuInit(unsigned);
extern "C" int cuDriverGetVersion(int*);

int main(int count, char** arguments) {
  constexpr int kThreads = 12;
  if (count < 2) return 2;
  std::barrier together(kThreads);
  std::atomic<int> successes{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      int version = 0;
      together.arrive_and_wait();
      if (i == 0) successes += dlopen(arguments[1], RTLD_NOW) != nullptr;
      if (i % 3 == 0) successes += dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuInit") != nullptr;
      if (i % 3 == 1) successes += cuInit(0) == 0;
      if (i % 3 == 2) successes += cuDriverGetVersion(&version) == 0 && version >= 12000;
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::printf("%d of %d\n", successes.load(), kThreads + 1);
  return 0;
}
