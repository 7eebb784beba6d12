// Functions that glibc 2.32 and 2.33 brought, by what was there before.

#define SPILLWAY_HIDDEN extern "C" __attribute__((visibility("hidden")))

extern "C" {
// The first argument is the layout of the answer: 1 on x86-64.
int older_xstat(int layout, const char* path, void* answer);
int older_fxstat(int layout, int file, void* answer);
int older_lxstat(int layout, const char* path, void* answer);
extern const char* const older_error_texts[];
extern const int older_error_count;
}
asm(".symver older_xstat, __xstat@GLIBC_2.2.5");
asm(".symver older_fxstat, __fxstat@GLIBC_2.2.5");
asm(".symver older_lxstat, __lxstat@GLIBC_2.2.5");
asm(".symver older_error_texts, _sys_errlist@GLIBC_2.12");
asm(".symver older_error_count, _sys_nerr@GLIBC_2.12");

SPILLWAY_HIDDEN int stat(const char* path, void* answer) { return older_xstat(1, path, answer); }
SPILLWAY_HIDDEN int fstat(int file, void* answer) { return older_fxstat(1, file, answer); }
// The same layout on x86-64. libstdc++'s file streams call it by this name.
SPILLWAY_HIDDEN int fstat64(int file, void* answer) { return older_fxstat(1, file, answer); }
SPILLWAY_HIDDEN int lstat(const char* path, void* answer) { return older_lxstat(1, path, answer); }

SPILLWAY_HIDDEN const char* strerrordesc_np(int code) {
  return code >= 0 && code < older_error_count ? older_error_texts[code] : nullptr;
}

// False is always right: libstdc++ then counts references as among threads.
SPILLWAY_HIDDEN char __libc_single_threaded;
char __libc_single_threaded = 0;
