#include "base/older_glibc/forward.inc"
FORWARD exp, GLIBC_2.2.5
FORWARD pow, GLIBC_2.2.5
