/* SPDX-License-Identifier: MIT */
/* fuzz_host.c - fuzzes hosts: each is refused, or becomes a key that is its own key and has only
 * characters of host names (D7). */
#include "base/ascii.h"

#include "fuzz/fuzz.h"
#include <string.h>
#include <weir/pace.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char key[WEIR_PACE_KEY_MAX + 1], again[WEIR_PACE_KEY_MAX + 1];
    size_t key_bytes, again_bytes;

    if (weir_host_key((const char *)data, bytes, key, sizeof key, &key_bytes) != 0)
        return 0;
    fuzz_check(key_bytes > 0 && key_bytes <= WEIR_PACE_KEY_MAX && strlen(key) == key_bytes);
    for (size_t i = 0; i < key_bytes; i++)
        fuzz_check(wr_ascii_is_alnum(key[i]) || strchr("-_.:[]", key[i]) != NULL);
    fuzz_check(weir_host_key(key, key_bytes, again, sizeof again, &again_bytes) == 0);
    fuzz_check(again_bytes == key_bytes && memcmp(again, key, key_bytes) == 0);
    return 0;
}
