#include "base/older_glibc/forward.h"
FORWARD dlsym, GLIBC_2.2.5
