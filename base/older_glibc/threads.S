#include "base/older_glibc/forward.inc"
FORWARD pthread_attr_setstacksize, GLIBC_2.2.5
FORWARD pthread_create, GLIBC_2.2.5
FORWARD pthread_mutex_trylock, GLIBC_2.2.5
FORWARD pthread_setname_np, GLIBC_2.12
FORWARD pthread_sigmask, GLIBC_2.2.5
