#include "base/older_glibc/forward.h"
FORWARD exp, GLIBC_2.2.5
FORWARD pow, GLIBC_2.2.5
