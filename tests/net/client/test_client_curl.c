#include "rig.h"
static void x(void **s)
{
    (void)s;
}
WEIR_TESTS(test(x))
