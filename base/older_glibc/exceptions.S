#include "base/older_glibc/forward.inc"
FORWARD pthread_once, GLIBC_2.2.5
FORWARD __pthread_key_create, GLIBC_2.2.5
