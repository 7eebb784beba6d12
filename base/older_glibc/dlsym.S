#include "base/older_glibc/forward.inc"
FORWARD dlsym, GLIBC_2.2.5
