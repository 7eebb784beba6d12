#include "base/older_glibc/forward.inc"
FORWARD dladdr, GLIBC_2.2.5
FORWARD dladdr1, GLIBC_2.3.3
FORWARD dlclose, GLIBC_2.2.5
FORWARD dlerror, GLIBC_2.2.5
FORWARD dlopen, GLIBC_2.2.5
FORWARD dlvsym, GLIBC_2.2.5
