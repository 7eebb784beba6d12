// Counts the devices twice, and twice more on another thread.
#include <cstdio>
#include <thread>

extern "C" int cuInit(unsigned);
extern "C" int cuDeviceGetCount(int*);

namespace {

void CountTwice() {
  for (int i = 0; i < 2; ++i) {
    int count = -1;
    const int answer = cuDeviceGetCount(&count);
    std::printf("answer %d devices %d\n", answer, count);
  }
}

}  // namespace

int main() {
  if (cuInit(0) != 0) return 3;
  CountTwice();
  std::thread(CountTwice).join();
  return 0;
}
